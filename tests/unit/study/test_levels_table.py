"""What a reading of Table III explains, read back from its file."""

import json
from pathlib import Path
from typing import Any

import pytest

from ghostpoi.errors import InputError
from ghostpoi.study import levels_table
from ghostpoi.study.levels_table import distance, explaining, fits, nearest

PRINTED = {"clean": -3.8, "ghost": -10.0, "pgd": -10.4, "em": -10.1}
FOUND = {"clean": -3.7, "ghost": -9.9, "em": -10.2, "pgd": -10.3, "random": -11.0}


def row(name: str, **changed: float) -> dict[str, Any]:
    found = FOUND | changed
    return {"name": name, "values": found, "fits": fits(found, PRINTED)}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {"clean": True, "levels": True, "order": True}),
        ({"clean": -4.5}, {"clean": False, "levels": True, "order": True}),
        ({"ghost": -7.1}, {"clean": True, "levels": False, "order": True}),
        ({"pgd": -10.0}, {"clean": True, "levels": True, "order": False}),
    ],
)
def test_a_row_says_what_it_explains(changed: dict[str, float], expected: dict[str, bool]) -> None:
    assert fits(FOUND | changed, PRINTED) == expected


def test_a_reading_explains_table_iii_if_everything_fits() -> None:
    rows = [row("far", ghost=-7.1), row("swapped", pgd=-10.0), row("right")]
    assert explaining(rows, PRINTED) == ["right"]
    assert explaining(rows[:2], PRINTED) == []
    assert explaining(rows, {key: PRINTED[key] for key in ("clean", "em", "pgd")}) == ["far", "right"]
    assert nearest(rows, PRINTED)["name"] == "right"
    assert distance(rows[0], PRINTED) == pytest.approx(2.9)  # random is not in the table
    assert nearest(rows[:2], PRINTED)["name"] == "swapped"


def test_the_printed_table() -> None:
    expected = {"clean": -3.8272, "ghost": -10.0208, "ts-ue": -10.0666, "em": -10.1250, "pgd": -10.3664}
    assert levels_table.printed() == expected
    assert "em" not in levels_table.printed(without=["em"])


def test_rows_are_read_back_by_protocol(tmp_path: Path) -> None:
    assert levels_table.read(tmp_path, "paper") == []
    levels_table.path(tmp_path, "paper").write_text(json.dumps({"rows": [row("right")]}))
    assert levels_table.read(tmp_path, "paper") == [row("right")]
    assert levels_table.read(tmp_path, "strong") == []
    levels_table.path(tmp_path, "paper").write_text("{")
    with pytest.raises(InputError, match=r"levels-paper\.json cannot be read .*; delete it and run ghostpoi"):
        levels_table.read(tmp_path, "paper")
