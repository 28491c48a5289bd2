"""ghostpoi.protect on data frames: the same kind of frame with the same rows, or an error message."""

from typing import Any

import pandas as pd
import polars as pl
import pytest
from small_city import CONFIG, SEED, SMALL, rich_frame

import ghostpoi
from ghostpoi import InputError

COLUMNS = {"user": "Who", "poi": "spot"}
VENUE = ["spot", "catid", "lat", "lng", "title", "address"]
OTHERS = ["Who", "gender", "mood", "checkin", "timestamp"]


def protect(table: Any, method: str = "random", **more: Any) -> Any:
    given: dict[str, Any] = {"seed": SEED, "map": COLUMNS, "set": SMALL, "config": CONFIG, "keep": ["checkin"]} | more
    return ghostpoi.protect(table, method, **given).table


def as_pandas() -> pd.DataFrame:
    frame = rich_frame()
    table = pd.DataFrame({name: frame[name].to_list() for name in frame.columns})
    table["timestamp"] = pd.to_datetime(table["timestamp"], format="%a %b %d %H:%M:%S %z %Y")
    return table


@pytest.mark.parametrize("method", ["random", "ghost"])
def test_polars_in_polars_out(method: str) -> None:
    frame = rich_frame().with_columns(pl.col("catid").cast(pl.Categorical), pl.col("lat").cast(pl.Float32))
    before = frame.clone()
    after = protect(frame, method)
    assert isinstance(after, pl.DataFrame)
    assert after.schema == frame.schema
    assert after.select(OTHERS).equals(frame.select(OTHERS))
    assert frame.equals(before)
    assert 0.5 < (after["spot"] != frame["spot"]).mean() < 1
    assert set(after.select(VENUE).iter_rows()) <= set(frame.select(VENUE).iter_rows())
    assert protect(frame, method).equals(after)
    assert not protect(frame, method, seed=SEED + 1).equals(after)


def test_pandas_in_pandas_out() -> None:
    table = as_pandas().astype({"gender": "category", "mood": "string"})
    table.index = pd.Index([f"row {7 * i % 1000}" for i in range(len(table))], name="which")  # not unique
    before = table.copy(deep=True)
    after = protect(table, keep=["checkin", "which"])
    assert isinstance(after, pd.DataFrame)
    pd.testing.assert_series_equal(after.dtypes, table.dtypes)
    pd.testing.assert_index_equal(after.index, table.index)
    assert list(after.columns) == list(table.columns)
    pd.testing.assert_frame_equal(after[OTHERS], table[OTHERS])
    pd.testing.assert_frame_equal(table, before)
    assert 0.5 < (after["spot"] != table["spot"]).mean() < 1
    assert set(after[VENUE].itertuples(index=False, name=None)) <= set(table[VENUE].itertuples(index=False, name=None))


def test_the_list_of_categories_holds_released_values_alone() -> None:
    table = as_pandas()
    order = list(dict.fromkeys(table["spot"]))  # by first appearance, which would reveal when venues were new
    table["spot"] = pd.Categorical(table["spot"], [*order, "visited by nobody"])
    table["Who"] = pd.Categorical(table["Who"], sorted(set(table["Who"]), reverse=True), ordered=True)
    after = protect(table, no_candidate="withhold")
    assert list(after["spot"].cat.categories) == sorted(set(after["spot"]))
    assert list(after["Who"].cat.categories) == sorted(set(after["Who"]), reverse=True)
    assert list(table["spot"].cat.categories) == [*order, "visited by nobody"]


def test_an_enum_lists_released_values_alone_and_notes_are_dropped() -> None:
    frame = rich_frame()
    order = frame["spot"].cast(pl.String).unique(maintain_order=True)
    after = protect(frame.with_columns(pl.col("spot").cast(pl.String).cast(pl.Enum([*order, "nobody's"]))))
    assert after["spot"].dtype == pl.Enum(after["spot"].cast(pl.String).unique().sort())
    table = as_pandas()
    table.attrs = {"source": "/home/somebody/clean.csv"}
    assert protect(table).attrs == {}
    assert table.attrs == {"source": "/home/somebody/clean.csv"}


def test_both_kinds_agree() -> None:
    assert protect(as_pandas())["spot"].tolist() == protect(rich_frame())["spot"].to_list()


def test_without_a_seed_no_two_runs_are_alike() -> None:
    one, two = (protect(rich_frame(), seed=None) for _ in range(2))
    assert not one.equals(two)


@pytest.mark.parametrize("levels", [["index"], ["level_0", "level_1"]])
def test_an_index_without_a_name_is_dropped_by_the_name_of_its_column(levels: list[str]) -> None:
    table = as_pandas().sample(frac=1, random_state=0).sort_values("timestamp")
    if len(levels) > 1:
        table.index = pd.MultiIndex.from_arrays([table.index, table.index[::-1]])
    after = protect(table, drop=levels)
    assert list(after.index) == list(range(len(table)))
    assert after["timestamp"].tolist() == table["timestamp"].tolist()


def test_an_index_changes_with_the_venue_or_is_refused() -> None:
    table = as_pandas()
    assert protect(table.set_index("spot")).index.tolist() == protect(table)["spot"].tolist()
    places = protect(table.set_index(pd.Index(table["title"], name="place")))
    assert places.index.tolist() == places["title"].tolist() != table["title"].tolist()
    with pytest.raises(InputError, match="the column 'index' predicts the position of the clean venue"):
        protect(table.set_index(table["lat"].to_numpy() + 1e-4 * table.index % 7 / 7))
    assert len(protect(table.set_index(["Who", "timestamp"]))) == len(table)


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a list": ([1, 2], {}, "takes a path or a data frame, not list"),
    "a series": (pd.Series([1]), {}, "takes a path or a data frame, not Series"),
    "nothing": (None, {}, "takes a path or a data frame, not NoneType"),
    "no rows": (rich_frame().head(0), {}, "no check-ins"),
    "no rows, pandas": (as_pandas().head(0), {}, "no check-ins"),
    "numbered columns": (pd.DataFrame([[1, 2]]), {}, "must be distinct strings"),
    "twin columns": (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "must be distinct strings"),
    "mixed objects": (as_pandas().assign(mood=[1, *["a"] * (len(rich_frame()) - 1)]), {}, "cannot be read"),
    "unknown method": (rich_frame(), {"method": "gost"}, "no method 'gost'; did you mean ghost"),
    "unknown protocol": (rich_frame(), {"protocol": "weak"}, "no protocol 'weak'"),
    "unknown device": (rich_frame(), {"device": "tpu"}, "unknown device"),
    "bad setting": (rich_frame(), {"set": ["filters.nope=1"]}, "no setting 'nope'"),
    "no such column": (rich_frame(), {"map": {"poi": "nope"}}, "no column 'nope'"),
    "no columns found": (rich_frame(), {"map": None}, "no column looks like the user"),
    "keep what is not there": (rich_frame(), {"keep": ["nope"]}, "no column 'nope'"),
    "a missing venue": (rich_frame().with_columns(spot=pl.lit(None, pl.String)), {}, "row 1: the venue is missing"),
    "one row": (rich_frame().head(1), {}, "leaves nothing"),
    "heads and width": (
        rich_frame(),
        {"method": "pgd", "set": ["surrogate.dim=6", "surrogate.heads=4"]},
        "not a multiple of",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_are_sentences(case: str) -> None:
    table, more, says = BAD[case]
    with pytest.raises(InputError, match=says) as e:
        protect(table, **more)
    assert len(str(e.value).splitlines()) == 1


def test_a_trace_can_be_kept() -> None:
    noisy = rich_frame().with_columns(near=pl.col("lat") + pl.int_range(pl.len()) % 7 * 1e-5)
    with pytest.raises(InputError, match=r'keep it at your own risk with keep=\["near"\]'):
        protect(noisy)
    with pytest.warns(UserWarning, match="'near', which keep= names, holds a coordinate of the clean venue") as noted:
        kept = protect(noisy, keep=["near", "checkin"])
    assert kept["near"].equals(noisy["near"])
    assert [one.filename for one in noted] == [__file__]  # it points at the caller's line
