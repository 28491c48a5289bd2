"""The hash of a stage's code: what changes it and what does not."""

import sys
from pathlib import Path

import pytest

from ghostpoi import source
from ghostpoi.attack.adversaries.base import purify
from ghostpoi.attack.adversaries.frequency import Frequency
from ghostpoi.source import code_of


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose stage uses a helper by way of a collecting `__init__`, and a registry beside it."""
    folder = tmp_path / "somecode"
    (folder / "tools").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "tools" / "__init__.py").write_text(
        "from somecode.tools.helper import help_it\nfrom somecode.tools.other import Other\nALL = {'other': Other}\n"
    )
    (folder / "tools" / "helper.py").write_text("import math\n\ndef help_it():\n    return math.pi\n")
    (folder / "tools" / "other.py").write_text("class Other: ...\n")
    (folder / "stage.py").write_text(
        '"""A stage."""\n\nfrom somecode.tools import ALL, help_it\n\ndef run():\n    return help_it()  # now\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    return folder


def forget() -> None:
    for cached in (source._root, source._file, source._read, source._collected):
        cached.cache_clear()


def changed(file: Path, old: str, new: str) -> bool:
    """Whether an edit of a file changes the hash of the stage."""
    before = code_of("somecode.stage")
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    forget()
    return code_of("somecode.stage") != before


def test_the_stage_itself_and_what_it_uses_count(package: Path) -> None:
    assert changed(package / "stage.py", "return help_it()", "return 2 * help_it()")
    assert changed(package / "tools" / "helper.py", "math.pi", "math.e")


def test_indentation_counts(package: Path) -> None:
    (package / "stage.py").write_text("def run(x):\n    if x:\n        x = 1\n        x = 2\n    return x\n")
    forget()
    assert changed(package / "stage.py", "        x = 2", "    x = 2")


def test_words_and_plug_ins_that_it_does_not_use_do_not_count(package: Path) -> None:
    assert not changed(package / "stage.py", '"""A stage."""', '"""A stage\n\nwith more words."""\n\n# and a comment')
    assert not changed(package / "tools" / "other.py", "...", "x = 1")
    assert not changed(package / "tools" / "__init__.py", "'other'", "'another'")


def test_nothing_is_imported(package: Path) -> None:
    code_of("somecode.stage")
    assert "somecode.stage" not in sys.modules


def test_a_stage_may_be_a_class_a_function_or_an_object() -> None:
    named = code_of("ghostpoi.attack.adversaries.frequency")
    assert named == code_of(Frequency) == code_of(Frequency())
    assert named != code_of("ghostpoi.attack.adversaries.bigram")
    assert code_of(purify) == code_of("ghostpoi.attack.adversaries.base")


def test_code_without_a_file_counts_by_its_name() -> None:
    assert code_of("nowhere.at.all") != code_of("nowhere.else")
