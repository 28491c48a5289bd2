"""The release: venue fields change together, nothing else changes, and nothing private is inside."""

import csv
import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import same_checkins
from small_city import (
    RICH,
    SEED,
    SETS,
    Release,
    called,
    city,
    prepared,
    protect,
    release,
    rich_csv,
    rich_frame,
    rich_parquet,
    sentence,
    settings,
)  # fmt: skip

from ghostpoi import formats
from ghostpoi.data.displacement import published
from ghostpoi.draw.methods import METHODS
from ghostpoi.formats.delimited import TSMC_COLUMNS
from ghostpoi.randomness import Seed

VENUE = {"txt": ["venue_id", "category_id", "latitude", "longitude", "category"]}
VENUE["csv"] = VENUE["parquet"] = ["spot", "catid", "lat", "lng", "title", "address"]
KINDS = ["txt", "csv", "parquet"]


def table(path: Path, kind: str) -> pl.DataFrame:
    """The fields of a file, read without ghostpoi."""
    if kind == "parquet":
        return pl.read_parquet(path)
    text = path.read_text("latin-1" if kind == "txt" else "utf-8")
    rows = list(csv.reader(io.StringIO(text), delimiter="\t" if kind == "txt" else ","))
    names = TSMC_COLUMNS if kind == "txt" else rows.pop(0)
    return pl.DataFrame(rows, schema=list(names), orient="row")


@pytest.mark.parametrize("kind", KINDS)
def test_same_rows_order_and_columns_but_for_the_venue(kind: str) -> None:
    made = release("random", kind)
    assert made.data.name == f"checkins{made.file.suffix}"
    before, after = table(made.file, kind), table(made.data, kind)
    assert after.schema == before.schema
    assert after.height == before.height
    others = [c for c in before.columns if c not in VENUE[kind]]
    assert after.select(others).equals(before.select(others))
    assert set(made.manifest["columns"]["changed_with_the_venue"]) == set(VENUE[kind])
    # Every venue field of a row comes from one genuine row of the new venue.
    genuine = set(before.select(VENUE[kind]).iter_rows())
    assert set(after.select(VENUE[kind]).iter_rows()) <= genuine
    changed = (before[VENUE[kind][0]] != after[VENUE[kind][0]]).to_numpy()
    assert 0.5 < changed.mean() < 1
    assert before.select(VENUE[kind]).filter(~changed).equals(after.select(VENUE[kind]).filter(~changed))
    if kind != "txt":  # names and addresses are one to one with venues here: all of them changed
        for column in ("title", "address", "spot"):
            assert (before[column] != after[column]).to_numpy()[changed].all()


@pytest.mark.parametrize("kind", ["txt", "csv"])
def test_text_is_kept_to_the_letter(kind: str) -> None:
    made = release("random", kind)
    before, after = made.file.read_bytes().split(b"\n"), made.data.read_bytes().split(b"\n")
    assert len(before) == len(after)
    assert before[0] == after[0] or kind == "txt"
    same = [a == b for a, b in zip(before, after, strict=True)]
    group = made.manifest["rows"]
    kept = sum(group[g]["rows"] - group[g]["substituted"] for g in ("in_sessions", "outside_sessions"))
    assert same.count(True) == kept + 1 + (kind == "csv")  # the end of the file, and the header


def test_parquet_keeps_schema_and_metadata() -> None:
    made = release("random", "parquet")
    assert pq.read_schema(made.data).equals(pq.read_schema(made.file), check_metadata=True)


@pytest.mark.parametrize("method", METHODS)
def test_counts_add_up(method: str) -> None:
    made = release(method)
    rows, before = made.manifest["rows"], table(made.file, "txt")
    for group in ("in_sessions", "outside_sessions"):
        parts = ("substituted", "no_candidate", "kept_by_speed", "kept_by_method")
        assert sum(rows[group][part] for part in parts) == rows[group]["rows"]
    assert (
        rows["in_sessions"]["rows"] + rows["outside_sessions"]["rows"] == before.height == made.manifest["data"]["rows"]
    )
    changed = (before["venue_id"] != table(made.data, "txt")["venue_id"]).sum()
    assert rows["in_sessions"]["substituted"] + rows["outside_sessions"]["substituted"] == changed
    assert made.manifest["plausibility"]["substitution_rate"] == round(changed / before.height, 3)
    keeps = METHODS[method].keeps_category == "exact"
    assert (made.manifest["plausibility"]["category_match"] > 0.8) == keeps  # homes become what is near
    assert rows["withheld"] == 0
    assert (rows["hidden"]["rows"] == rows["hidden"]["borrowed"] > 0) if keeps else rows["hidden"]["borrowed"] == 0


def test_rows_without_a_candidate_can_be_withheld() -> None:
    kept, withheld = release("random"), release("random", "txt", "--no-candidate", "withhold")
    rows = withheld.manifest["rows"]
    gone = rows["in_sessions"]["no_candidate"] + rows["outside_sessions"]["no_candidate"]
    assert rows["withheld"] == gone > 0
    has = pl.Series(prepared().has_candidates)
    assert table(withheld.data, "txt").equals(table(kept.data, "txt").filter(has))
    assert withheld.manifest["data"]["rows"] == int(has.sum())


def test_the_same_seed_gives_the_same_bytes_and_another_another(tmp_path: Path) -> None:
    one = release("ghost")
    for name, seed, same in (("a", SEED, True), ("b", SEED + 1, False)):
        other = protect(city(), tmp_path / name, "--method", "ghost", "--seed", seed)
        for file in ("checkins.txt", "manifest.json"):
            assert ((other.folder / file).read_bytes() == (one.folder / file).read_bytes()) == same
    fresh = [protect(city(), tmp_path / name, "--method", "random") for name in ("c", "d")]
    assert fresh[0].data.read_bytes() != fresh[1].data.read_bytes()
    assert seed_of(fresh[0]).bit_length() > 90


def test_published_measures_are_too_coarse_to_tell_a_pair_by() -> None:
    measures = release("crowd").manifest["plausibility"]
    assert measures == published(measures)
    exact = {"p95_km": 4.123456, "beyond_1km": 0.123456}
    assert published(exact) == {"p95_km": 4.12, "beyond_1km": 0.123}


def seed_of(made: Release) -> int:
    return int(json.loads((made.private / "run.json").read_text())["seed"], 16)


def test_a_compressed_file_is_released_uncompressed(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "city.txt.gz").write_bytes(gzip.compress(city().read_bytes()))
    made = protect(tmp_path / "city.txt.gz", tmp_path / "r", "--method", "random", "--seed", SEED)
    assert made.data.read_bytes() == release("random").data.read_bytes()


def long_table(path: Path, length: int = 250) -> None:
    """Two users, one with 250 check-ins in a single session, and venues in two categories."""
    draw = random.Random(1)
    where = [(40.7 + draw.uniform(-0.004, 0.004), -74 + draw.uniform(-0.004, 0.004)) for _ in range(16)]
    rows = ["user,poi,category,lat,lon,time"]
    for user, n in (("long", length), ("short", 60)):
        for i in range(n):
            v = draw.randrange(16)
            rows.append(f"{user},v{v},c{v % 2},{where[v][0]:.6f},{where[v][1]:.6f},{1_600_000_000 + i * 1800}")
    path.write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("method", ["ghost", "random"])
def test_a_session_longer_than_the_model(method: str, tmp_path: Path) -> None:
    long_table(tmp_path / "x.csv")
    made = protect(tmp_path / "x.csv", tmp_path / "r", "--method", method, "--set", "filters.min_user_checkins=1")
    assert made.manifest["rows"]["in_sessions"]["rows"] == 310
    assert made.manifest["rows"]["in_sessions"]["substituted"] == 310
    assert called("verify", made.folder, "--against", tmp_path / "x.csv").returncode == 0


KEEP_ALL = ("method.reach=0", "--set", "filters.min_poi_checkins=1")


def test_a_method_that_keeps_everything(tmp_path: Path) -> None:
    long_table(tmp_path / "x.csv", 60)
    made = protect(tmp_path / "x.csv", tmp_path / "r", "--method", "ts-ue", "--set", *KEEP_ALL)
    assert made.data.read_bytes() == (tmp_path / "x.csv").read_bytes()
    assert made.manifest["rows"]["in_sessions"]["kept_by_method"] == 120
    assert made.manifest["plausibility"] == {
        "substitution_rate": 0.0, "category_match": 1.0, "beyond_1km": 0.0, "mean_km": 0.0, "p95_km": 0.0,
    }  # fmt: skip
    assert called("verify", made.folder, "--against", tmp_path / "x.csv").returncode == 0


def test_positions_with_variants_are_copied_whole(tmp_path: Path) -> None:
    """Every venue has three variants of its position."""
    frame = rich_frame().with_columns(step=pl.int_range(pl.len()) % 3)
    frame = frame.with_columns(lat=pl.col("lat") + pl.col("step") * 1e-6, lng=pl.col("lng") - pl.col("step") * 1e-6)
    frame.drop("step").write_csv(tmp_path / "x.csv")
    made = protect(tmp_path / "x.csv", tmp_path / "r", "--method", "random", *RICH)
    before, after = table(tmp_path / "x.csv", "csv"), table(made.data, "csv")
    assert set(after.select(VENUE["csv"]).iter_rows()) <= set(before.select(VENUE["csv"]).iter_rows())
    # A variant does not mark genuine rows: substitutes have all variants, about as often as genuine rows.
    third = (after["lat"].cast(pl.Float64) * 1e6).round().cast(pl.Int64) % 3
    assert third.n_unique() == 3
    assert called("verify", made.folder, "--against", tmp_path / "x.csv").returncode == 0


# Privacy.


def everything(folder: Path) -> bytes:
    return b"\n".join(p.name.encode() + b"\n" + p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file())


@pytest.mark.parametrize(("method", "kind"), [("random", kind) for kind in KINDS] + [("ghost", "txt")])
def test_no_secret_in_the_release_or_in_what_was_printed(method: str, kind: str) -> None:
    made = release(method, kind)
    printed = (made.done.stdout + made.done.stderr).encode()
    for text in (everything(made.folder), printed):
        for secret in (str(SEED), f"{SEED:x}", f"{SEED:X}", SEED.to_bytes(16, "big"), SEED.to_bytes(16, "little")):
            assert (secret if isinstance(secret, bytes) else secret.encode()) not in text
        note = json.loads((made.private / "run.json").read_text())
        assert note["input"].encode() not in text
        assert note["token"].encode() not in text
    for path in (made.private, made.file, made.file.resolve().parent):
        assert str(path).encode() not in everything(made.folder)
    assert made.private.name.encode() not in everything(made.folder)


@pytest.mark.parametrize("kind", KINDS)
def test_no_field_of_the_clean_venue_in_a_substituted_row(kind: str) -> None:
    made = release("random", kind)
    before, after = table(made.file, kind), table(made.data, kind)
    changed = (before[VENUE[kind][0]] != after[VENUE[kind][0]]).to_numpy()
    assert changed.any()
    private = [c for c in VENUE[kind] if c not in ("category", "category_id", "catid")]  # the category stays by design
    for old, new in zip(
        before.filter(changed).iter_rows(named=True), after.filter(changed).iter_rows(named=True), strict=True
    ):
        text = "\t".join(map(str, new.values()))
        for column in private:
            # Two venues of one building share coordinates.
            assert str(old[column]) not in text or (
                old[column] == new[column] and column in ("lat", "lng", "latitude", "longitude")
            )


KEYS = {
    "tool": {"name", "version"},
    "method": None,
    "protocol": None,
    "settings": {
        "filters",
        "candidates",
        "speed",
        "hide",
        "method",
        "identity",
        "rounds",
        "surrogate",
        "training",
        "lm",
        "lm_training",
    },
    "columns": {"fields", "changed_with_the_venue", "kept", "why", "dropped", "kept_on_request"},
    "disclosure": {"category", "category_groups", "aggregates"},
    "rows": {"in_sessions", "outside_sessions", "withheld", "hidden", "left_genuine", "drawn_own"},
    "plausibility": {"substitution_rate", "category_match", "beyond_1km", "mean_km", "p95_km"},
    "speed": {"limit_kmh", "min_gap_s", "steps", "steps_over_limit"},
    "data": {"file", "format", "rows", "sha256"},
}
GROUP = {"rows", "substituted", "no_candidate", "kept_by_speed", "kept_by_method", "slowest_taken"}


def test_the_manifest_holds_public_aggregates_and_nothing_else() -> None:
    manifest = release("ghost").manifest
    assert manifest.keys() == KEYS.keys()
    for section, keys in KEYS.items():
        assert keys is None or manifest[section].keys() == keys
    assert manifest["rows"]["in_sessions"].keys() == manifest["rows"]["outside_sessions"].keys() == GROUP
    text = json.dumps(manifest)
    assert not any(venue in text for venue in table(city(), "txt")["venue_id"].unique())


def test_files_and_modes() -> None:
    made = release("ghost")
    assert sorted(p.name for p in made.folder.iterdir()) == ["checkins.txt", "manifest.json", "manifest.sig"]
    assert sorted(p.name for p in made.private.iterdir()) == ["pairs.npz", "run.json", "signing.key", "trajectory_lm"]
    for path in (made.private, *made.private.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    assert sorted(p.name for p in made.folder.parent.iterdir()) == ["release", "release.private"]
    pairs = np.load(made.private / "pairs.npz")
    before, after = (table(path, "txt")["venue_id"].to_list() for path in (made.file, made.data))
    assert [str(pairs["poi_id"][code]) for code in pairs["clean"]] == before
    assert [str(pairs["poi_id"][code]) for code in pairs["released"]] == after


def test_a_seed_hides_itself() -> None:
    assert str(SEED) not in repr(Seed(SEED))
    assert f"{SEED:x}" not in str(Seed(SEED))
    assert repr(Seed(1)) == repr(Seed(2))


def test_a_short_seed_is_refused_unless_allowed(tmp_path: Path) -> None:
    why = "can be found by trial; "
    assert refused(tmp_path, "--seed", 2**63 - 1) == (
        f"--seed has fewer than 64 bits, so it {why}leave --seed out, or add --allow-short-seed for an experiment"
    )
    short = protect(city(), tmp_path / "r", "--method", "random", "--seed", 7, "--allow-short-seed")
    assert short.done.stderr == f"warning: a short seed {why}omit --seed for a real release\n"
    assert seed_of(short) == 7
    assert protect(city(), tmp_path / "s", "--method", "random", "--seed", 2**63).done.stderr == ""


def test_a_dictionary_of_a_parquet_file_holds_no_venue_that_is_not_released(tmp_path: Path) -> None:
    whole = pq.read_table(rich_parquet())
    at = whole.schema.get_field_index("title")
    pq.write_table(whole.set_column(at, "title", whole.column(at).dictionary_encode()), tmp_path / "x.parquet")
    made = protect(tmp_path / "x.parquet", tmp_path / "r", "--method", "random", *RICH)
    column = pq.read_table(made.data).column("title")
    assert pa.types.is_dictionary(column.type)
    shown = set(column.to_pylist())
    for chunk in column.chunks:
        assert set(chunk.dictionary.to_pylist()) <= shown


def test_carriage_returns_stay_where_they_are(tmp_path: Path) -> None:
    order = [c for c in rich_frame().columns if c != "address"]
    data = rich_frame().select(*order, "address").write_csv(line_terminator="\r\n").encode()
    (tmp_path / "x.csv").write_bytes(data)
    for seed in range(SEED, SEED + 3):
        made = protect(tmp_path / "x.csv", tmp_path / f"r{seed}", "--method", "random", "--seed", seed, *RICH)
        lines = made.data.read_bytes().split(b"\n")
        assert all(line.endswith(b"\r") and not line.endswith(b"\r\r") for line in lines[:-1])


# Refusals.


def test_an_existing_release_is_replaced_only_by_force(tmp_path: Path) -> None:
    made = protect(city(), tmp_path / "r", "--method", "random", "--seed", SEED)
    again = ("protect", city(), "-o", tmp_path / "r", "--method", "random", *SETS)
    assert (
        sentence(called(*again))
        == f"{tmp_path / 'r'} exists already; choose another folder with -o, or replace it with --force"
    )
    first = made.data.read_bytes()
    assert called(*again, "--force").returncode == 0
    assert made.data.read_bytes() != first
    assert seed_of(made) != SEED
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "r.private"]
    import shutil

    shutil.rmtree(tmp_path / "r")
    assert "holds the private files of a finished run; replace them with --force" in sentence(called(*again))
    assert "a finished run" in sentence(called(*again, "--resume"))


def refused(tmp_path: Path, *more: object, release: object = "r", file: Path | None = None) -> str:
    before = sorted(tmp_path.rglob("*"))
    done = called("protect", file or city(), "-o", tmp_path / str(release), "--method", "random", *SETS, *more)
    said = sentence(done)
    assert not done.stdout
    assert sorted(tmp_path.rglob("*")) == before
    return said


def test_private_and_release_lie_apart(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert "would be inside the release" in refused(tmp_path, "--private", tmp_path / "r" / "p")
    assert "would be inside the release" in refused(tmp_path, "--private", tmp_path / "r")
    assert "would be inside the release" in refused(tmp_path, "--private", tmp_path / "link" / "r" / "p")
    assert "would be inside the private folder" in refused(tmp_path, "--private", tmp_path)
    assert "would be inside the private folder" in refused(tmp_path, "--private", tmp_path / "x" / ".." / "link")


def test_folders_of_others_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.tex").write_text("x")
    (tmp_path / "home").mkdir(mode=0o755)
    (tmp_path / "home" / "thesis.tex").write_text("x")
    assert "is not a release, so --force does not replace it" in refused(tmp_path, "--force")
    said = refused(tmp_path, "--private", tmp_path / "home", release="s")
    assert said.endswith("holds files that are not ghostpoi's; choose an empty or new folder with --private")
    assert refused(tmp_path, "--force", "--private", tmp_path / "home", release="s") == said
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o755
    (tmp_path / "f").write_text("x")
    assert "is not a release" in refused(tmp_path, "--force", release="f")
    assert "could not be written" in refused(tmp_path, "--private", tmp_path / "f", release="s")
    assert "does not exist; create it first" in refused(tmp_path, release="no/such")
    assert "does not exist; create it first" in refused(tmp_path, "--private", tmp_path / "no" / "such")


def test_a_file_inside_the_release_folder(tmp_path: Path) -> None:
    made = protect(city(), tmp_path / "r", "--method", "random")
    assert "is inside" in refused(tmp_path, "--force", file=made.data)
    assert made.data.exists()


def test_a_folder_with_a_name_like_markup(tmp_path: Path) -> None:
    made = protect(city(), tmp_path / "r[b]", "--method", "random")
    assert "r[b]" in made.done.stdout
    assert "r[b].private" in made.done.stdout.replace("\n", "")


# Atomic writing.

Step = Callable[..., Any]


def broken(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> list[list[str]]:
    """Make the number-th call of os.replace on a path with this name fail; collect the state at each call."""
    real, seen, count = os.replace, [], 0

    def replace(source: Any, target: Any) -> None:
        nonlocal count
        seen.append([str(source), str(target)])
        if Path(target).name == name:
            count += 1
            if count == number:
                raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    return seen


@pytest.mark.parametrize("name", ["checkins.txt", "manifest.json", "r", "pairs.npz", "run.json"])
def test_an_old_release_survives_whatever_fails(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = protect(city(), tmp_path / "r", "--method", "random", "--seed", SEED)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    again = ("protect", city(), "-o", tmp_path / "r", "--method", "random", "--seed", SEED + 1, *SETS)
    with monkeypatch.context() as patch:
        broken(patch, name, 1)
        said = sentence(called(*again, "--force"))
    assert said.startswith(
        f"{tmp_path / 'r'} or {tmp_path / 'r.private'} could not be written (no space left on device)"
    )
    assert {p: p.read_bytes() for p in before} == before
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {"r", "r.private"}
    # ... and the new one can still be made.
    assert called(*again, "--resume" if name != "run.json" else "--force").returncode == 0
    expected = protect(city(), tmp_path / "s", "--method", "random", "--seed", SEED + 1)
    assert made.data.read_bytes() == expected.data.read_bytes()
    assert not (made.private / "unfinished").exists()


def test_the_manifest_comes_last_and_the_name_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        seen = broken(patch, "none", 0)
        protect(city(), tmp_path / "r", "--method", "random")
    targets = [Path(target).name for _, target in seen]
    built = ["signing.key", "run.json", "pairs.npz", "checkins.txt", "manifest.sig", "manifest.json"]
    assert targets == [*built, "r", "pairs.npz", "run.json"]


def test_what_is_read_back_is_what_was_released() -> None:
    made = release("random", "csv")
    mapping = made.manifest["columns"]["fields"]
    one = formats.read(made.data, mapping, made.manifest["data"]["format"]).table
    clean = formats.read(rich_csv(), mapping, "table").table
    assert (one.time == clean.time).all()
    assert (one.user == clean.user).all()
    same_checkins(clean, formats.read(rich_csv(), mapping).table)
    assert settings("random").public()["filters"] == made.manifest["settings"]["filters"]
