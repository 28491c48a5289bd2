"""Cells on disk: stages and settings stand once, under their hash."""

import json
from pathlib import Path

from ghostpoi.study.store import STAGES, Store, short_hash

DRAWN = {"candidates": 1, "method/random": 2, "draw": 1}


def cell(method: str, stages: dict[str, int]) -> dict[str, object]:
    about = {"settings": short_hash({"draw": {"of": method}}), "content": "c", "hardware": "CPU", "stages": stages}
    return {"kind": "release", "data": "city", "method": method} | about | {"seeds": [0], "measures": {"x": [0.5]}}


def test_stages_are_stored_once_and_read_in_their_order(tmp_path: Path) -> None:
    store, attacked = Store(tmp_path, "strong"), DRAWN | {"accuracy": 1}
    store.add("main", [cell("random", DRAWN), cell("ghost", DRAWN), cell("pgd", attacked)], {})
    lines = [json.loads(line) for line in store.path("main").read_text().splitlines()]
    assert [line["stages"] for line in lines] == [short_hash(DRAWN)] * 2 + [short_hash(attacked)]
    assert json.loads((tmp_path / STAGES).read_text()) == {short_hash(s): s for s in (DRAWN, attacked)}
    assert [list(one["stages"].items()) for one in store.cells()] == [
        list(stages.items()) for stages in (DRAWN, DRAWN, attacked)
    ]


def test_another_study_adds_its_stages_and_keeps_the_others(tmp_path: Path) -> None:
    store, later = Store(tmp_path, "strong"), DRAWN | {"draw": 2}
    store.add("main", [cell("random", DRAWN)], {"a1": {"draw": {"of": "random"}}})
    store.add("leak", [cell("ghost", later)], {"a2": {"draw": {"of": "ghost"}}})
    assert json.loads((tmp_path / "settings.json").read_text()).keys() == {"a1", "a2"}
    assert {one["study"]: one["stages"] for one in store.cells()} == {"main": DRAWN, "leak": later}
