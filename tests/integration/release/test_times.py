"""--times: coarser times and moved sessions, in the form of the file; order, gaps, columns, verify, audit, refusals."""

import hashlib
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_releases import put_manifest
from small_city import CONFIG, MAP, SEED, SETS, SMALL, Release, called, city, protect, release, rich_frame, sentence

import ghostpoi
from ghostpoi import formats
from ghostpoi.data.checkins import Checkins
from ghostpoi.data.pseudonyms import WEEK_S, of_rows
from ghostpoi.release.identity import RESOLUTION_S, clean_rows, coarse
from ghostpoi.release.manifest import settings_of

KINDS = ("minute", "hour", "part-of-day", "shift")
FORM = "%a %b %d %H:%M:%S %z %Y"
SPLIT = ("--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2")
RANDOM = ("--method", "random", "--seed", SEED)


def table_of(made: Release) -> Checkins:
    return formats.read(made.data, made.manifest["columns"]["fields"], made.manifest["data"]["format"]).table


def failed(folder: Path, *more: object) -> set[str]:
    done = called("verify", folder, *more, "--json")
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)["checks"]
    return {one["check"] for one in found if not one["passed"]}


def rows_of(made: Release, clean: Checkins) -> np.ndarray:
    return clean_rows(made.private, clean, table_of(made), settings_of(made.manifest))


@pytest.mark.parametrize("pseudonyms", ["keep", "session"])
@pytest.mark.parametrize("kind", KINDS)
def test_times_are_coarser_and_rows_follow_them(kind: str, pseudonyms: str) -> None:
    made = release("random", "txt", "--times", kind, "--pseudonyms", pseudonyms)
    clean, shown = formats.read(city()).table, table_of(made)
    row = rows_of(made, clean)
    moved = shown.time - coarse(clean, settings_of(made.manifest))[row]
    assert not (moved % WEEK_S).any()
    assert not np.ptp(shown.time % RESOLUTION_S[kind])
    session = of_rows(clean, "session", 86_400)[row]
    for one in range(session.max() + 1):
        at = np.flatnonzero(session == one)
        assert len(set(moved[at])) == 1  # gaps stay, in hours
        assert (np.diff(clean.time[row[at]]) >= 0).all()  # and so does the order
    if kind == "shift":
        weeks = (clean.time.max() - clean.time.min()) / WEEK_S
        assert len(set(moved)) > weeks
        assert (moved == 0).mean() < 3 / weeks
        assert abs(np.corrcoef(shown.time, clean.time[row])[0, 1]) < 0.2
    else:
        assert not moved.any()
    key = list(zip(shown.time.tolist(), shown.user_ids[shown.user].tolist(), strict=True))
    assert key == sorted(key)
    assert made.manifest["identity"]["row_order"] == "time, then user id"
    assert failed(made.folder) == failed(made.folder, "--against", city()) == set()


def test_nothing_but_times_and_order_differs_from_a_release_with_its_times() -> None:
    """Draws go by the clean time, and by nothing that the release shows."""
    clean, plain = formats.read(city()).table, table_of(release("random", "txt"))
    for kind in KINDS:
        made = release("random", "txt", "--times", kind, "--pseudonyms", "keep")
        shown, row = table_of(made), rows_of(made, clean)
        assert (shown.venue_ids[shown.venue] == plain.venue_ids[plain.venue[row]]).all()
        assert (shown.user_ids[shown.user] == plain.user_ids[plain.user[row]]).all()
        text = made.data.read_text("latin-1").splitlines()
        assert len(text[0].split("\t")) == 8
        assert datetime.strptime(text[0].split("\t")[7], FORM) == datetime.fromtimestamp(int(shown.time[0]), UTC)


def test_no_second_time_of_the_week_or_gap_joins_rows() -> None:
    """What occurs once in the clean file and once in a release with moved sessions is not the same row."""
    clean = formats.read(city()).table
    made = release("random", "txt", "--times", "shift", "--pseudonyms", "session")
    shown, row = table_of(made), rows_of(made, clean)
    kept = table_of(release("random", "txt"))

    def joined(key: Callable[[Checkins], np.ndarray], after: Checkins, row: np.ndarray) -> float:
        sides = (key(clean)[row], key(after))
        once = [np.isin(side, [k for k, n in zip(*np.unique(side, return_counts=True), strict=True) if n == 1])
                for side in sides]  # fmt: skip
        return float(((sides[0] == sides[1]) & once[0] & once[1]).mean())

    def gaps(table: Checkins) -> np.ndarray:
        order = np.lexsort((table.time, table.user))
        found = np.zeros(len(table), np.int64)
        found[order[:-1]] = np.diff(table.time[order]) * (np.diff(table.user[order]) == 0)
        return found

    keys: list[Callable[[Checkins], np.ndarray]] = [
        lambda table: table.time, lambda table: table.time // 60, lambda table: table.time % WEEK_S, gaps,
    ]  # fmt: skip
    for key in keys:
        assert joined(key, shown, row) < 0.01
        assert joined(key, kept, np.arange(len(clean))) > 0.5
    assert not (shown.time % 3600).any()


def test_a_seed_gives_one_release_and_an_interrupted_run_is_repeated(tmp_path: Path) -> None:
    made = release("random", "txt", "--times", "shift", "--pseudonyms", "session")
    again = protect(city(), tmp_path / "r", *RANDOM, "--set", "identity.times=shift", "--pseudonyms", "session")
    assert again.data.read_bytes() == made.data.read_bytes()
    other = protect(city(), tmp_path / "s", *RANDOM[:3], SEED + 1, "--times", "shift", "--pseudonyms", "session")
    assert (table_of(other).time != table_of(made).time).mean() > 0.5


ZONED = {
    "2012-04-03T18:00:09Z": "%Y-%m-%dT%H:%M:%SZ",
    "2012-04-03 18:00:09.000+00:00": "%Y-%m-%d %H:%M:%S%.3f+00:00",
    "2012-04-03 18:00": "%Y-%m-%d %H:%M",
}


def written(path: Path, times: pl.Series, **more: pl.Series) -> Path:
    """The small city with these times, and other columns."""
    frame = rich_frame().drop("checkin", "mood", "gender", "title", "address").with_columns(timestamp=times, **more)
    (frame.write_parquet if path.suffix == ".parquet" else frame.write_csv)(path)
    return path


def moments() -> pl.Series:
    return rich_frame()["timestamp"].str.to_datetime(FORM).dt.replace_time_zone(None)


@pytest.mark.parametrize("form", ZONED.values(), ids=ZONED)
@pytest.mark.parametrize("kind", ["hour", "shift"])
def test_texts_keep_their_form(form: str, kind: str, tmp_path: Path) -> None:
    file = written(tmp_path / "f.csv", moments().dt.strftime(form))
    made = protect(file, tmp_path / "r", *RANDOM, *MAP, "--times", kind)
    text = pl.read_csv(made.data, schema_overrides={"timestamp": pl.String})["timestamp"]
    back = text.str.to_datetime(form.replace("%.3f", "%.f").replace("Z", "%#z").replace("+00:00", "%#z"))
    assert (back.dt.strftime(form) == text).all()
    assert (back.dt.minute() == 0).all()
    assert failed(made.folder, "--against", file) == set()


@pytest.mark.parametrize(
    "kind",
    [pl.Int64, pl.Float64, "ms", "text", pl.Datetime("us"), pl.Datetime("ns", "UTC"), pl.Datetime("ms", "Asia/Tokyo")],
    ids=str,
)  # fmt: skip
def test_types_of_parquet_stay(kind: object, tmp_path: Path) -> None:
    time, epoch = moments(), moments().dt.epoch("s")
    columns = {"ms": epoch * 1000 + 7, "text": epoch.cast(pl.String)}
    if isinstance(kind, pl.Datetime):
        column = time.dt.cast_time_unit(kind.time_unit)
        column = column.dt.replace_time_zone("UTC").dt.convert_time_zone(kind.time_zone) if kind.time_zone else column
    else:
        column = columns[kind] if isinstance(kind, str) else epoch.cast(kind)  # type: ignore[arg-type]
    file = written(tmp_path / "f.parquet", column)
    made = protect(file, tmp_path / "r", *RANDOM, *MAP, "--times", "hour")
    before, after = (pq.read_schema(path).field("timestamp").type for path in (file, made.data))
    assert after == before
    assert not pa.types.is_null(after)
    assert set(table_of(made).time) == set(epoch // 3600 * 3600)
    assert failed(made.folder, "--against", file) == set()


def test_json_workbooks_and_frames(tmp_path: Path) -> None:
    frame = rich_frame().drop("checkin", "mood", "gender", "title", "address").with_columns(timestamp=moments())
    hours = sorted(moments().dt.truncate("1h"))
    frame.with_columns(pl.col("timestamp").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).write_ndjson(tmp_path / "f.jsonl")
    frame.to_pandas().to_excel(tmp_path / "f.xlsx", index=False)
    for name in ("f.jsonl", "f.xlsx"):
        made = protect(tmp_path / name, tmp_path / f"{name}.r", *RANDOM, *MAP, "--times", "hour")
        assert sorted(table_of(made).time) == [int(one.replace(tzinfo=UTC).timestamp()) for one in hours]
        assert failed(made.folder, "--against", tmp_path / name) == set()
    options = {"method": "random", "seed": SEED, "set": SMALL, "config": CONFIG, "map": {"user": "Who", "poi": "spot"}}
    for table in (frame, frame.to_pandas()):
        released = ghostpoi.protect(table, times="hour", **options).table  # type: ignore[arg-type]
        assert type(released) is type(table)
        assert list(released["timestamp"]) == hours
        assert released["timestamp"].dtype == table["timestamp"].dtype


def test_local_times_keep_their_zone_over_a_change_of_the_clocks(tmp_path: Path) -> None:
    local = moments().dt.replace_time_zone("UTC").dt.convert_time_zone("America/New_York")
    file = written(tmp_path / "f.csv", local.dt.strftime("%Y-%m-%d %H:%M:%S"))
    zone = ("--timezone", "America/New_York")
    made = protect(file, tmp_path / "r", *RANDOM, *MAP, *zone, "--times", "part-of-day")
    assert failed(made.folder, "--against", file) == set()
    clock = pl.read_csv(made.data)["timestamp"].str.slice(11)
    assert set(clock) <= {
        "05:00:00",
        "11:00:00",
        "17:00:00",
        "23:00:00",
        "04:00:00",
        "10:00:00",
        "16:00:00",
        "22:00:00",
    }
    offsets = written(tmp_path / "g.csv", local.dt.strftime("%Y-%m-%d %H:%M:%S%z"))
    varies = (local.dt.base_utc_offset() + local.dt.dst_offset()).n_unique() > 1
    done = called("protect", offsets, "-o", tmp_path / "s", *SETS, *RANDOM, *MAP, "--times", "shift")
    assert done.returncode == (2 if varies else 0)
    if varies:
        assert "would show the season of a session that --times shift moved; write all times in UTC" in sentence(done)


# Ways around: columns that say the time again.

EPOCH = pl.Series(moments().dt.epoch("s"))
WAYS = {
    "epoch": (EPOCH, "repeats the time"),
    "local_time": (pl.from_epoch(EPOCH - 4 * 3600, "s").dt.strftime("%Y-%m-%d %H:%M:%S"), "repeats the time"),
    "minute": (EPOCH % 3600 // 60, "repeats the time"),
    "row": (pl.Series(range(len(EPOCH))), "follows the order of the clean times"),
    "counter": (EPOCH.rank("ordinal").cast(pl.Int64) * 3, "follows the order of the clean times"),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("kind", ["hour", "shift"])
def test_columns_that_repeat_the_time_are_refused(name: str, kind: str, tmp_path: Path) -> None:
    column, why = WAYS[name]
    file = written(tmp_path / "f.csv", moments().dt.strftime(FORM.replace("%z", "+0000")), **{name: column})
    words = ("protect", file, "-o", tmp_path / "r", *SETS, *RANDOM, *MAP, "--times", kind)
    said = sentence(called(*words))
    assert said.startswith(f"{file}: the column {name!r} ")
    remedy = f"leave it out with --drop {name}, or keep it at your own risk with --keep {name}"
    assert said.endswith(f", and --times {kind} hides clean times; {remedy}")
    assert why in said or name == "row"
    assert sentence(called(*words, "--dry-run")) == said
    assert [path.name for path in tmp_path.iterdir()] == ["f.csv"]
    made = protect(file, tmp_path / "r", *RANDOM, *MAP, "--times", kind, "--keep", name)
    assert f"warning: the column {name!r}, which --keep names," in made.done.stderr


@pytest.mark.parametrize(
    ("name", "column", "refused"),
    [
        ("weekday", (EPOCH // 86_400 + 3) % 7, ("part-of-day",)),  # a part spans midnight in UTC
        ("hour", EPOCH % 86_400 // 3600, ("part-of-day",)),
        ("date", pl.from_epoch(EPOCH, "s").dt.date().cast(pl.String), ("part-of-day", "shift")),
        ("season", pl.from_epoch(EPOCH, "s").dt.month(), ("shift",)),
        ("source", pl.Series(["app", "web"] * len(EPOCH))[: len(EPOCH)], ()),
    ],
)
def test_columns_that_follow_from_the_new_time_are_kept(
    name: str, column: pl.Series, refused: tuple[str, ...], tmp_path: Path
) -> None:
    file = written(tmp_path / "f.csv", moments().dt.strftime(FORM.replace("%z", "+0000")), **{name: column})
    for kind in ("hour", "part-of-day", "shift"):
        done = called("protect", file, "-o", tmp_path / kind, *SETS, *RANDOM, *MAP, "--times", kind)
        assert done.returncode == (2 if kind in refused else 0), (kind, done.stderr)


def in_a_week(line: str) -> str:
    *first, time = line.split("\t")
    return "\t".join([*first, (datetime.strptime(time, FORM) + timedelta(days=7)).strftime(FORM)])


def test_verify_finds_a_manipulated_time(tmp_path: Path) -> None:
    made, folder = release("random", "txt", "--times", "shift", "--pseudonyms", "session"), tmp_path / "t"
    for change, public, against in (
        (lambda row: row.replace(":00:00 +0000", ":00:07 +0000"), {"times"}, {"times"}),
        (in_a_week, {"row order", "speed"}, {"pseudonyms"}),
    ):
        shutil.copytree(made.folder, folder)
        lines = made.data.read_text("latin-1").splitlines()
        lines[len(lines) // 2] = change(lines[len(lines) // 2])
        data = "".join(line + "\n" for line in lines).encode("latin-1")
        (folder / "checkins.txt").write_bytes(data)
        manifest = made.manifest
        manifest["data"]["sha256"] = hashlib.sha256(data).hexdigest()
        put_manifest(folder, manifest)
        assert failed(folder) & public
        assert failed(folder, "--against", city(), "--private", made.private) & (against | {"pseudonyms"})
        shutil.rmtree(folder)


def test_the_audit_reads_released_times(tmp_path: Path) -> None:
    for words in (("--times", "shift", "--pseudonyms", "session"), ("--times", "hour")):
        made = release("random", "txt", *words)
        folder = tmp_path / words[1]
        shutil.copytree(made.folder, folder)
        done = called("audit", city(), folder, "--private", made.private, "--seeds", 1, "--adversaries", "none",
                      "--victim", "markov", "--no-naturalness", "--json", *SPLIT)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["pseudonyms"] == (words[3] if len(words) > 2 else "keep")
        assert called("report", folder).returncode == 0
        assert "Times are cut to the hour" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--times", "day"), "--times day: use keep, minute, hour, part-of-day or shift"),
        (("--times", "hour", "--set", "identity.times=minute"), "contradict each other; give one of them"),
        (("--times", "shift", "--method", "crowd", "--series", "{}"), "a row that two releases of a series show would"),
    ],
)
def test_refusals(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    given = [word.format(tmp_path / "series") for word in words]
    assert said in sentence(called("protect", city(), "-o", tmp_path / "r", *SETS, *given))
    assert not list(tmp_path.iterdir())


def test_a_series_repeats_its_coarse_times(tmp_path: Path) -> None:
    lines = city().read_text("latin-1").splitlines(keepends=True)
    for name, part in (("one", lines[: len(lines) * 2 // 3]), ("two", lines)):
        (tmp_path / f"{name}.txt").write_text("".join(part), "latin-1")
        done = called("protect", tmp_path / f"{name}.txt", "-o", tmp_path / name, "--series", tmp_path / "series",
                      "--times", "part-of-day")  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert failed(tmp_path / name, "--against", tmp_path / f"{name}.txt") == set()
    one, two = (set((tmp_path / name / "checkins.txt").read_text("latin-1").splitlines()) for name in ("one", "two"))
    assert one <= two
    assert called("series", "verify", tmp_path / "series").returncode == 0


def test_a_file_of_one_week_and_separate_dates(tmp_path: Path) -> None:
    week = pl.from_epoch(pl.Series(1_335_000_000 + np.arange(len(EPOCH)) * 60), "s").dt.strftime("%Y-%m-%d %H:%M:%S")
    file = written(tmp_path / "week.csv", week)
    said = sentence(called("protect", file, "-o", tmp_path / "r", *SETS, *RANDOM, *MAP, "--times", "shift"))
    assert said == f"{file} covers one week, so --times shift would move nothing; use --times part-of-day"
    frame = rich_frame().drop("checkin", "mood", "gender", "title", "address", "timestamp")
    file = tmp_path / "dates.csv"
    frame.with_columns(day=moments().dt.date().cast(pl.String), at=moments().dt.strftime("%H:%M:%S")).write_csv(file)
    words = ("--map", "date=day", "--map", "time=at", "--times", "hour")
    said = sentence(called("protect", file, "-o", tmp_path / "r", *SETS, *RANDOM, *MAP, *words))
    assert "--times hour needs the date and the time in one column; put them together, or use --times keep" in said


SHIFTED = ("--times", "shift", "--pseudonyms", "session")


def test_reports_put_rows_next_to_clean_ones_by_their_clean_times(tmp_path: Path) -> None:
    plain, coarse_one = release("random", "txt"), release("random", "txt", "--times", "part-of-day")
    for made in (release("random", "txt", *SHIFTED), coarse_one):
        page, private = tmp_path / "page.html", ("--private", made.private, "--with-clean")
        assert called("report", made.folder, *private, "--compare", plain.folder, "-o", page).returncode == 0
        said = sentence(called("report", made.folder, *private, "--compare", coarse_one.folder, "-o", page))
        assert "its user ids are pseudonyms or its times are not those of the file, so its rows cannot be put" in said
        assert called("report", made.folder, "--compare", plain.folder, "-o", page).returncode == 0


def test_an_audit_of_several_releases_does_not_depend_on_their_times(tmp_path: Path) -> None:
    """Draws go by the clean time, so what several releases reveal of venues is that of releases with their times."""
    found = []
    for kinds in ((("--times", "hour"), ("--times", "shift")), ((), ())):
        folder = tmp_path / str(len(found))
        for number, words in enumerate(kinds):
            made = release("random", "txt", *words)
            shutil.copytree(made.folder, folder / str(number))
            shutil.copytree(made.private, Path(f"{folder / str(number)}.private"))
        done = called("audit", city(), folder / "0", "--series", folder, "--seeds", 1, "--adversaries", "none",
                      "--victim", "markov", "--no-naturalness", "--json", *SPLIT)  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout)["series"])
    assert found[0]["recurring_visits"] == 2 * len(formats.read(city()).table)
    assert all(found[0][name] == found[1][name] for name in ("recurring_visits", "restored", "pinned"))
