"""How far the work of the studio is."""

from pathlib import Path

import pytest

from ghostpoi.studio.work import TRIAL, Worker, store


class Busy(Worker):
    """A worker whose child still runs."""

    busy = TRIAL


@pytest.mark.parametrize(("left", "shown"), [("0:01:30", "0:01:30"), ("0:00:00", ""), ("-:--:--", ""), ("", "")])
def test_an_estimate_is_shown_if_it_says_something(tmp_path: Path, left: str, shown: str) -> None:
    worker = Busy()
    worker.folder = tmp_path
    store(tmp_path / "request.json", {"kind": TRIAL})
    store(tmp_path / "progress.json", {"share": 0.5, "label": "attacking", "left": left})
    state = worker.state(tmp_path)
    assert (state.name, state.share, state.label, state.left) == ("running", 0.5, "attacking", shown)
    assert worker.state(tmp_path, {"kind": "other"}).name == "none"


def test_work_without_an_answer_or_a_child_was_interrupted(tmp_path: Path) -> None:
    store(tmp_path / "request.json", {"kind": TRIAL})
    assert Worker().state(tmp_path).name == "interrupted"
    store(tmp_path / "answer.json", {"ok": False, "error": "no"})
    assert Worker().state(tmp_path).name == "failed"
