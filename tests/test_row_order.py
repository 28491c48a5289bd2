"""The order of the rows is a column, too: an order that depends on the venues is refused."""

import re
from pathlib import Path

import polars as pl
import pytest
from small_city import MAP, SETS, called, rich_frame, sentence

DAY = pl.col("time").dt.date()


def written(path: Path, *by: pl.Expr | str, descending: bool = False) -> Path:
    frame = rich_frame().drop("checkin")
    time = pl.col("timestamp").str.to_datetime("%a %b %d %H:%M:%S %z %Y")
    frame.with_columns(time=time).sort(*by, descending=descending, maintain_order=True).drop("time").write_csv(path)
    return path


COMPLAINT = (
    "(are grouped by venue|are sorted by (venue id|latitude|longitude) inside groups|put venues near each other .+)"
)


@pytest.mark.parametrize(
    "by",
    [
        ["spot"], ["Who", "spot"], [DAY, "spot"], [DAY, "lat"], [DAY, "lng"], ["Who", DAY, "lat"],
        [pl.col("time").dt.truncate("30d"), pl.col("lat").round(2), "timestamp"],
    ],
)  # fmt: skip
def test_an_order_that_depends_on_venues_is_refused(by: list[pl.Expr | str], tmp_path: Path) -> None:
    path = written(tmp_path / "city.csv", *by)
    text = sentence(called("protect", path, "-o", tmp_path / "r", *MAP, *SETS))
    assert re.fullmatch(f"{path}: its rows {COMPLAINT}, so their order reveals clean venues; sort them by time", text)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("by", [["time"], ["Who", "time"], ["gender", "time"], [DAY, "Who"]])
def test_other_orders_are_fine(by: list[pl.Expr | str], descending: bool, tmp_path: Path) -> None:
    path = written(tmp_path / "city.csv", *by, descending=descending)
    done = called("protect", path, "-o", tmp_path / "r", "--method", "random", *MAP, *SETS)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


@pytest.mark.parametrize("by", [["time"], ["Who", "time"]])
def test_ids_in_the_order_of_first_visits_give_a_warning(by: list[str], tmp_path: Path) -> None:
    path = written(tmp_path / "city.csv", *by)
    frame = pl.read_csv(path)
    number = {spot: i for i, spot in enumerate(frame["spot"].unique(maintain_order=True))}
    frame.with_columns(spot=pl.Series([number[s] for s in frame["spot"]])).write_csv(path)
    done = called("protect", path, "-o", tmp_path / "r", "--method", "random", *MAP, *SETS)
    assert done.returncode == 0
    assert ("warning: venue ids increase with the first visit" in done.stderr) == (by == ["time"])
    assert ("warning: venue ids follow the order of the venues' first rows" in done.stderr) == (by != ["time"])
