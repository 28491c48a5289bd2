"""The steps of the Python API: the same folders and results as the commands, from a path or a data frame."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from small_city import CONFIG, RICH, SEED, SETS, SMALL, called, city, release, rich_csv, rich_frame, rich_parquet
from venue_pairs import PAIRS

import ghostpoi
from ghostpoi import InputError
from ghostpoi.audits import choose as choosing
from ghostpoi.options import option

GIVEN: dict[str, Any] = {
    "seed": SEED,
    "set": SMALL,
    "config": CONFIG,
    "map": {"user": "Who", "poi": "spot"},
    "keep": ["checkin"],
}
FILES = {"txt": city, "csv": rich_csv, "parquet": rich_parquet}
QUICK: dict[str, Any] = {"victim": "markov", "seeds": 1, "naturalness": False, "adversaries": ["frequency"]}
FILTERS = {"filters.min_poi_checkins": 5}
SHORT = FILTERS | {"filters.session_gap_s": 20_000, "filters.min_session_length": 2, "filters.min_user_checkins": 5}


def given(kind: str) -> dict[str, Any]:
    return {"seed": SEED, "set": SMALL, "config": CONFIG} if kind == "txt" else GIVEN


def frame() -> pl.DataFrame:
    return rich_frame().drop("checkin")


def made(table: Any, **more: Any) -> ghostpoi.Release[Any]:
    return ghostpoi.protect(table, "random", **(GIVEN | {"keep": []} | more))


@pytest.mark.filterwarnings("ignore:venue ids increase")  # the Parquet file numbers them
@pytest.mark.parametrize("kind", FILES)
def test_the_folder_is_the_one_of_the_command(kind: str, tmp_path: Path) -> None:
    theirs = release("random", kind)
    ours = ghostpoi.protect(FILES[kind](), "random", output=tmp_path / "release", **given(kind))
    assert (ours.folder, ours.private) == (tmp_path / "release", tmp_path / "release.private")
    for name in ("manifest.json", theirs.data.name):
        assert (tmp_path / "release" / name).read_bytes() == (theirs.folder / name).read_bytes()
    assert ours.manifest == theirs.manifest
    assert ours.counts == theirs.manifest["rows"]
    assert ours.displacement == theirs.manifest["plausibility"]


def test_the_table_of_a_folder_is_like_that_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for number, name in enumerate("ab"):
        part = rich_frame()[number::2]
        part.write_csv(tmp_path / "parts" / f"{name}.csv", quote_style="always")
    table = ghostpoi.protect(tmp_path / "parts", "random", **GIVEN).table
    assert not [name for name in table.columns if table[name].null_count() == table.height]
    assert not table["Who"].str.contains('"').any()
    assert table["lat"].dtype == pl.Float64


@pytest.mark.filterwarnings("ignore:venue ids increase")  # the Parquet file numbers them
@pytest.mark.parametrize("kind", FILES)
def test_without_a_folder_the_rows_are_the_same_and_nothing_is_written(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    theirs = release("random", kind)
    ours = ghostpoi.protect(str(FILES[kind]()), "random", **given(kind))
    assert ours.folder is ours.private is ours.pairs is None
    assert list(tmp_path.iterdir()) == []
    assert {**ours.manifest, "data": theirs.manifest["data"]} == theirs.manifest
    if kind == "parquet":
        assert ours.table.equals(pl.read_parquet(theirs.data))
    elif kind == "csv":  # with quotes and commas in names
        assert ours.table.equals(pl.read_csv(theirs.data, schema_overrides=ours.table.schema))
        assert ours.table["lat"].dtype == pl.Float64


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_a_frame_can_be_written_checked_and_exported(kind: str, tmp_path: Path) -> None:
    table = frame() if kind == "polars" else frame().to_pandas()
    ours = made(table, output=tmp_path / "release")
    assert isinstance(ours.table, type(table))
    shown = ours.table if isinstance(ours.table, pl.DataFrame) else pl.from_pandas(ours.table)
    assert pl.read_parquet(tmp_path / "release" / "checkins.parquet").equals(shown)
    assert ghostpoi.verify(ours, against=table)
    assert ghostpoi.verify(tmp_path / "release").passed
    assert [page.parent for page in ghostpoi.report(ours).pages] == [tmp_path / "release"] * 3
    assert ghostpoi.report(ours, with_clean=True).page == tmp_path / "release.private" / "report.html"
    out = ghostpoi.export(ours, "hf", tmp_path / "city")
    assert (out.folder.is_dir(), out.private) == (True, False)


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_frames_form_a_series(kind: str, tmp_path: Path) -> None:
    """The second half shows venues and categories of the first, so the lists of its columns grow and shrink."""
    whole = rich_frame()[:-1].drop("gender", "mood").with_columns(catid=pl.col("catid").cast(pl.Categorical))
    more: dict[str, Any] = {"map": GIVEN["map"], "series": tmp_path / "series"}
    for n in range(2):
        part = whole[n * whole.height // 3 : (n + 2) * whole.height // 3]
        part = part.with_columns(catid=pl.col("catid").cast(pl.Enum(part["catid"].cast(pl.String).unique().sort())))
        table = part if kind == "polars" else part.to_pandas().set_index("checkin")
        ours = ghostpoi.protect(table, output=tmp_path / f"{n}", keep=["checkin"], **more)
        assert ours.manifest["series"] == {"number": n + 1, "repeated": n * part.height // 2}
        shown = ours.table
        if isinstance(shown, pd.DataFrame):
            assert isinstance(table, pd.DataFrame)
            pd.testing.assert_index_equal(shown.index, table.index)
            assert set(shown["catid"]) == set(shown["catid"].cat.categories)
            assert [str(t) for t in shown.dtypes] == [str(t) for t in table.dtypes]
            shown = pl.from_pandas(shown.reset_index())
        else:
            assert shown["catid"].dtype == pl.Enum(shown["catid"].cast(pl.String).unique().sort())
        stored = pl.read_parquet(tmp_path / f"{n}" / "checkins.parquet")
        assert stored.cast({"catid": pl.String}).equals(shown.cast({"catid": pl.String}))
        assert ghostpoi.verify(ours, against=table)


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_venues_can_be_a_frame(kind: str, tmp_path: Path) -> None:
    pair = PAIRS["getnext"]()
    places = pl.read_csv(pair.venues)
    ours = ghostpoi.protect(
        pl.read_csv(pair.data), output=tmp_path / "release", venues=places if kind == "polars" else places.to_pandas()
    )
    assert ours.manifest["data"]["reading"] == {"venues": "venues.csv"}
    assert ghostpoi.verify(ours)
    assert ghostpoi.verify(ours, against=pl.read_csv(pair.data), venues=places)


def test_pairs_are_given_when_asked_for() -> None:
    table = frame().drop("gender", "mood")
    ours = made(table, pseudonyms="session", pairs=True)
    pairs = ours.pairs
    assert pairs is not None
    assert pairs["released"].equals(ours.table["spot"].rename("released"))
    assert pairs["clean"].equals(table["spot"].gather(pairs["row"]).rename("clean"))
    moved = pairs.filter(pl.col("clean") != pl.col("released"))
    assert pairs.height > moved.height > pairs.height / 2
    assert moved["km"].mean() == pytest.approx(ours.displacement["mean_km"], abs=0.01)
    assert pairs.filter(pl.col("clean") == pl.col("released"))["km"].max() == 0


def test_nothing_private_is_shown() -> None:
    ours = made(frame(), pairs=True)
    rows = frame().height
    rate, far = ours.displacement["substitution_rate"], ours.displacement["mean_km"]
    assert repr(ours) == f"Release({rows:,} rows, {rate:.1%} substituted with random, {far:.2f} km on average)"
    assert str(SEED) not in json.dumps(ours.manifest)
    assert "sha256" not in ours.manifest["data"]  # a hash would confirm a guess


def test_inspect_is_what_the_command_prints() -> None:
    done = called("inspect", rich_csv(), "--json", *SETS, *RICH[:4])
    theirs, ours = json.loads(done.stdout), ghostpoi.inspect(rich_csv(), set=SMALL, map=GIVEN["map"])
    for chosen in theirs["columns"].values():
        chosen["chosen_by"] = chosen["chosen_by"].replace("--map", "map=")
    assert ours.summary == theirs
    assert ours.columns == {name: chosen["column"] for name, chosen in theirs["columns"].items()}
    assert ours.summary["columns"]["poi"]["chosen_by"] == "map="


def test_a_choice_names_keywords_and_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ["method.category=any", "method.size=8"]
    trial = {"name": "one", "settings": settings, "missed": [option("min_flows", 0.9)]}
    found = {"tried": [trial], "recommended": None, "nearest": trial, "times": "keep", "tried_times": []}
    monkeypatch.setattr(choosing, "choose", lambda *given: found)
    choice = ghostpoi.choose(
        frame(), map=GIVEN["map"], set=FILTERS, cache=tmp_path, pseudonyms="week", drop=["mood", "gender"]
    )
    assert not choice
    assert choice.recommended is None
    assert choice.settings == {"method.category": "any", "method.size": "8"}
    assert choice.tried[0]["missed"] == ["min_flows=0.9"]
    assert choice.tried[0]["command"] == (
        'ghostpoi.protect(table, set={"filters.min_poi_checkins": 5, "method.category": "any", "method.size": 8}, '
        'map={"user": "Who", "poi": "spot"}, drop=["mood", "gender"], pseudonyms="week")'
    )


def test_a_failed_check_is_false_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(release("random", "csv").folder, folder)
    with (folder / "checkins.csv").open("a") as out:
        out.write("\n")
    found = ghostpoi.verify(folder)
    assert not found
    assert [check.name for check in found.failed] == ["data file"]
    assert repr(found) == "Verification(2 of 3 checks passed; failed: data file)"
    (folder / "manifest.sig").unlink()
    unsigned = ghostpoi.verify(folder).checks[0]
    assert unsigned.detail == 'unsigned, so anyone could have changed the figures; compare them with against="FILE"'


def test_an_audit_of_another_tools_frame(tmp_path: Path) -> None:
    theirs = made(frame()).table
    found = ghostpoi.audit(frame(), theirs, map=GIVEN["map"], set=SHORT, cache=tmp_path / "cache", **QUICK)
    assert found.verdict == "cannot tell"  # only two adversaries ran
    assert set(found.gives_away) == {"no_leak", "with_leak"}
    assert found  # there are no limits that it could be beyond
    assert found.accuracy["clean"]["mean"] > found.accuracy["none"]["mean"]
    frame().write_csv(tmp_path / "clean.csv")
    theirs.write_csv(tmp_path / "theirs.csv")
    words = ["--adversaries", "frequency", "--victim", "markov", "--seeds", 1, "--no-naturalness", "--json", *RICH[:4]]
    done = called(
        "audit", tmp_path / "clean.csv", tmp_path / "theirs.csv", "--cache", tmp_path / "cache", *words,
        *(word for key, value in SHORT.items() for word in ("--set", f"{key}={value}")),
    )  # fmt: skip
    command = json.loads(done.stdout)
    assert {**found.found, "release_sha256": ""} == {**command, "release_sha256": ""}
    found.write(tmp_path / "audit.json")
    assert json.loads((tmp_path / "audit.json").read_text()) == found.found


REFUSED: dict[str, tuple[Any, str]] = {
    "private without a folder": (
        lambda: made(frame(), private="x"),
        "private=, resume=True, force=True, series= and to_table= are for a release in a folder; name it with output=",
    ),
    "a release in memory": (
        lambda: ghostpoi.verify(made(frame())),
        "this release is in memory only; write it to a folder: protect(..., output=FOLDER)",
    ),
    "a short seed": (lambda: made(frame(), seed=5), "leave seed= out, or add allow_short_seed=True for an experiment"),
    "a victim": (
        lambda: ghostpoi.audit(city(), release().folder, victim="x"),
        'victim=["x"]: unknown victim; choose from ',
    ),
    "two contradictions": (
        lambda: ghostpoi.audit(city(), release().folder, replace=True, store=False),
        "replace=True and store=False contradict each other; give one of them",
    ),
    "a setting": (
        lambda: made(frame(), set={"filters.nope": 1}),
        "set={\"filters.nope\": 1}: section 'filters' has no setting 'nope'; it has ",
    ),
    "a form of times": (lambda: ghostpoi.inspect(frame(), time_format="%H"), 'time_format="%H": give the form of a '),
    "a folder that exists": (
        lambda: ghostpoi.protect(city(), output=release().folder, **given("txt")),
        "exists already; choose another folder with output=, or replace it with force=True",
    ),
    "an export": (lambda: ghostpoi.export(release().folder, "x", "y"), 'to="x": unknown export; choose one '),
    "a page": (
        lambda: ghostpoi.report(release().folder, private="a b"),
        "private= is for a page with clean data; add with_clean=True, or leave private= out",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_errors_speak_of_keywords(case: str) -> None:
    call, says = REFUSED[case]
    with pytest.raises(InputError) as e:
        call()
    assert says in str(e.value)
    assert "--" not in str(e.value)


def test_warnings_speak_of_keywords() -> None:
    with pytest.warns(UserWarning, match="^a short seed can be found .+; omit seed= for a real release"):
        made(frame(), seed=5, allow_short_seed=True)


def test_what_is_stated_about_a_file_or_a_frame(tmp_path: Path) -> None:
    comma = frame().with_columns(pl.col("lat", "lng").cast(pl.String).str.replace(".", ",", literal=True))
    with pytest.raises(InputError, match='has a decimal comma; state it with decimal=","'):
        made(comma)
    out = made(comma, decimal=",").table
    assert out["lat"].equals(made(frame()).table["lat"].cast(pl.String).str.replace(".", ",", literal=True))
    gap = pd.concat([frame().to_pandas().head(1).assign(spot=None), frame().to_pandas()], ignore_index=True)
    with pytest.warns(UserWarning, match=r"1 row with missing values \(row 1\): left out of the release"):
        assert len(made(gap, missing="drop").table) == frame().height
    with pytest.raises(TypeError, match="unexpected keyword argument 'tine_format'"):
        made(frame(), tine_format="%H")
