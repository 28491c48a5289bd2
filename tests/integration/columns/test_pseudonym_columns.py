"""Under pseudonyms, a column that identifies the user is refused; one that reveals no more than the time is kept."""

import random
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from small_city import MAP, SEED, SETS, called, protect, rich_frame, sentence

DAY = 86_400


@cache
def city() -> pl.DataFrame:
    """The small city by user and time, with columns as people's files have them."""
    draw = random.Random(1)
    time = pl.col("timestamp").str.to_datetime("%a %b %d %H:%M:%S %z %Y").dt.epoch("s")
    frame = rich_frame().drop("checkin", "mood", "gender").with_columns(t=time, user=pl.col("Who").cast(pl.Int64))
    frame = frame.sort("Who", "t")
    gap = pl.col("t") - pl.col("t").shift(1).over("Who")
    frame = frame.with_columns(
        gap=gap.fill_null(0), row_number=pl.int_range(pl.len()), visit_number=pl.int_range(pl.len()).over("Who"),
        session=(gap.fill_null(10**9) > DAY).cum_sum(), user_session=(gap.fill_null(0) > DAY).cum_sum().over("Who"),
    )  # fmt: skip
    east = 3600 * round(float(frame["lng"].cast(pl.Float64).median()) / 15)  # type: ignore[arg-type]
    frame = frame.with_columns(day=pl.struct("Who", (pl.col("t") + east - 4 * 3600) // DAY).rank("dense"))
    user, day = frame["user"].to_list(), frame["day"].to_list()
    random_day = {d: f"{random.Random(d).getrandbits(40):010x}" for d in dict.fromkeys(day)}
    return frame.with_columns(
        age=20 + pl.col("user") % 40,
        gender=pl.Series(["mf"[u % 2] for u in user]),
        device=pl.Series([f"{u * 7919 % 1000:04x}-{draw.randrange(2)}" for u in user]),
        link=pl.Series([f"https://example.org/c/{draw.getrandbits(40):x}/u/{u}" for u in user]),
        usual_mood=pl.Series([draw.choice("ggggbg" if u % 2 else "bbbbgb") for u in user]),
        zone=pl.Series([540 if u == 9 else -240 for u in user]),
        local_time=pl.from_epoch(pl.col("t") + 3600 * (pl.col("user") % 2)).dt.strftime("%Y-%m-%d %H:%M:%S"),
        mood=pl.Series([draw.choice(["good", "bad", ""]) for _ in user]),
        hour=pl.col("t") // 3600 % 24,
        weather=(10 * (pl.col("t") / DAY * 6.28).sin() + pl.col("t") // DAY % 5).round(0),
        time_rank=pl.col("t").rank("ordinal").cast(pl.Int64),
        random_day=pl.Series([random_day[d] for d in day]),
    )


def file(path: Path, *columns: str) -> Path:
    city().select(*rich_frame().drop("checkin", "mood", "gender").columns, *columns).write_csv(path)
    return path


SAME = "is the same in all rows of a user"
LINKS = "links the pseudonyms of a user"


REVEALING = {
    "age": SAME, "gender": SAME, "device": LINKS, "link": "contains the user id", "row_number": LINKS,
    "visit_number": LINKS, "session": LINKS, "user_session": LINKS, "usual_mood": LINKS, "zone": SAME,
    "local_time": LINKS, "gap": "holds the time since the user's previous pseudonym",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["session", "week"])
def test_columns_that_reveal_the_user_are_refused(kind: str, tmp_path: Path) -> None:
    words = ("protect", file(tmp_path / "f.csv", *REVEALING), "-o", tmp_path / "r", *SETS, *MAP, "--pseudonyms", kind)
    said = sentence(called(*words))
    assert ": 12 columns could reveal clean venues or users: " in said
    assert [name for name, why in REVEALING.items() if f"{name!r} {why}" not in said] == []
    drop, keep = (" ".join(f"{option} {name}" for name in REVEALING) for option in ("--drop", "--keep"))
    assert said.endswith(f"; leave them out with {drop}, or keep them at your own risk with {keep}")
    assert [path.name for path in tmp_path.iterdir()] == ["f.csv"]


HARMLESS = ("mood", "hour", "weather", "time_rank", "random_day")


@pytest.mark.parametrize("kind", ["session", "week"])
def test_what_follows_from_the_time_and_what_nobody_decides_is_kept(kind: str, tmp_path: Path) -> None:
    clean = file(tmp_path / "f.csv", *HARMLESS)
    made = protect(clean, tmp_path / "r", "--seed", SEED, *MAP, "--pseudonyms", kind)
    assert made.manifest["columns"]["kept"] == [*HARMLESS]
    assert called("verify", made.folder, "--against", clean).returncode == 0


def test_a_column_kept_at_ones_own_risk_is_named_by_protect_and_verify(tmp_path: Path) -> None:
    clean = file(tmp_path / "f.csv", "age", "device")
    kept = ("--keep", "age", "--drop", "device")
    made = protect(clean, tmp_path / "r", "--seed", SEED, *MAP, "--pseudonyms", "session", *kept)
    assert f"warning: the column 'age', which --keep names, {SAME}" in made.done.stderr
    done = called("verify", made.folder, "--against", clean)
    assert done.returncode == 1
    assert f"'age' {SAME}" in " ".join(done.stdout.split())
    assert "device" not in made.data.read_text().splitlines()[0]


def test_rare_values_that_single_out_few_users_are_named(tmp_path: Path) -> None:
    """As in TSMC2014, where some users have the time zone of another continent."""
    frame, draw = city(), random.Random(2)
    busy = frame.group_by("user").agg(n=pl.col("session").n_unique()).sort("n", "user")["user"][-1]
    rows = frame.filter(pl.col("user") == busy).height / frame.height
    for copies, refused in ((1, True), (6, False)):  # the share of that user falls below 1% in a larger file
        parts = [frame.with_columns(user=pl.col("user") + 1000 * i, t=pl.col("t") + 60 * i) for i in range(copies)]
        parts[0] = parts[0].with_columns(zone=pl.when(pl.col("user") == busy).then(540).otherwise(-240))
        parts[1:] = [part.with_columns(zone=pl.lit(-240)) for part in parts[1:]]
        whole = pl.concat(parts).with_columns(
            Who=pl.col("user"), timestamp=pl.from_epoch("t").dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
            zone=pl.Series([z if z == 540 else draw.choice([-240, -300]) for z in pl.concat(parts)["zone"]]),
        )  # fmt: skip
        path = tmp_path / f"{copies}.csv"
        whole.select(*rich_frame().drop("checkin", "mood", "gender").columns, "zone").write_csv(path)
        assert (rows / copies > 0.01) == refused
        done = called("protect", path, "-o", tmp_path / "r", *SETS, *MAP, "--pseudonyms", "session", "--dry-run")
        assert done.returncode == (2 if refused else 0), done.stderr
        if not refused:
            done = called("protect", path, "-o", tmp_path / "r", *SETS, *MAP, "--pseudonyms", "session")
            assert "warning: the column 'zone' has rare values that link the pseudonyms of a user (0." in done.stderr


@pytest.mark.parametrize("how", ["offset", "fraction", "spelling"])
def test_how_times_are_written_must_not_tell_the_user(how: str, tmp_path: Path) -> None:
    def written(t: int, user: int) -> str:
        odd = user % 2
        if how == "offset":
            shifted = pl.from_epoch(pl.Series([t + 3600 * odd])).dt.strftime("%Y-%m-%d %H:%M:%S")[0]
            return f"{shifted}+0{odd}:00"
        text = str(pl.from_epoch(pl.Series([t])).dt.strftime("%Y-%m-%d %H:%M:%S")[0])
        return f"{text}.{odd}00" if how == "fraction" else text.replace(" ", "T" if odd else " ") + "Z"

    times = [written(t, u) for t, u in zip(city()["t"], city()["user"], strict=True)]
    path = tmp_path / "f.csv"
    city().select(rich_frame().drop("checkin", "mood", "gender").columns).with_columns(
        timestamp=pl.Series(times)
    ).write_csv(path)
    words = ("protect", path, "-o", tmp_path / "r", *SETS, *MAP, "--dry-run")
    assert called(*words).returncode == 0
    said = sentence(called(*words, "--pseudonyms", "session"))
    assert "spelling, padding) of the values in the column 'timestamp' links the pseudonyms of a user" in said
    assert said.endswith("in one form with --normalise timestamp; write times in UTC and whole seconds")
    assert called(*words, "--pseudonyms", "session", "--normalise", "timestamp").returncode == 0


def test_choose_refuses_what_protect_would_refuse(tmp_path: Path) -> None:
    words = ("choose", file(tmp_path / "f.csv", "age"), "-o", tmp_path / "page.html", *MAP)
    said = sentence(called(*words, "--pseudonyms", "session"))
    assert f"the column 'age' {SAME}" in said
