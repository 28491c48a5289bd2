"""Help for people at a terminal, completion, and the settings file that `init` writes."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import small_city
from small_city import called, city, sentence

from ghostpoi.options import declared, examples, panels


def test_every_option_of_a_panel_is_declared_and_examples_are_commands() -> None:
    known = {name for options in declared().values() for name in options}
    assert set(panels()) <= known
    for command in ("inspect", "init", "choose", "protect", "verify", "audit", "report", "export"):
        assert len(examples(command)) == 2
        assert all(one.startswith(f"ghostpoi {command} ") for one in examples(command))


@pytest.mark.parametrize("command", ["protect", "audit"])
def test_help_stands_in_groups_with_examples_and_without_types_of_flags(command: str) -> None:
    text = called(command, "--help").stdout
    places = [text.index(title) for title in ("Reading the file", "What changes", "Engine", "Output", "Examples:")]
    assert places == sorted(places)
    assert "<bool>" not in text
    assert examples(command)[0] in text


def test_completion_knows_commands() -> None:
    asked = {"_GHOSTPOI_COMPLETE": "complete_bash", "COMP_WORDS": "ghostpoi pro", "COMP_CWORD": "1"}
    code = "from ghostpoi.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["protect"]


def test_init_writes_columns_that_other_commands_read(tmp_path: Path) -> None:
    odd = tmp_path / "visits.csv"
    rows = [line.split("\t") for line in city().read_text("latin-1").splitlines()]
    text = "".join(f"{r[0]},{r[1]},{r[2]},{r[4]},{r[5]},{r[7]}\n" for r in rows)
    odd.write_text("who,spot,kind,latitude,longitude,at\n" + text, encoding="utf-8")
    file = tmp_path / "city.toml"
    named = ("--map", "user=who", "--map", "poi=spot", "--map", "category=kind", "--map", "time=at")
    assert called("init", odd, "-o", file, *named).returncode == 0
    found = tomllib.loads(file.read_text("utf-8"))
    assert found["columns"]["poi"] == "spot"
    assert found["limits"] == found["identity"] == found["method"] == {}
    assert called("inspect", odd, "--config", file).returncode == 0
    file.write_text(file.read_text("utf-8").replace("# persons = 0.2 ", "persons = 0.2 "), encoding="utf-8")
    made = called("protect", odd, "-o", tmp_path / "release", "--config", file, "--method", "random")
    assert made.returncode == 0, made.stderr
    assert f"ghostpoi audit {odd} {tmp_path / 'release'} --report" in made.stdout.replace("\n", " ")
    assert "add --force" in sentence(called("init", odd, "-o", file, *named))
    checked = called("verify", tmp_path / "release", "--against", odd, "--config", file)
    assert checked.returncode == 0, checked.stdout
    page = tmp_path / "page.html"
    assert "no column looks like" in sentence(called("report", odd, "-o", page))
    assert called("report", odd, "-o", page, "--config", file).returncode == 0


def test_columns_of_a_settings_file_must_be_texts(tmp_path: Path) -> None:
    file = tmp_path / "city.toml"
    file.write_text("[columns]\npoi = 3\n")
    assert '[columns] holds lines such as poi = "venue_id"' in sentence(called("inspect", city(), "--config", file))


def test_a_dry_audit_says_what_it_would_run_and_writes_nothing(tmp_path: Path) -> None:
    release, cache = small_city.release("random").folder, tmp_path / "cache"
    before = {path.name: path.read_bytes() for path in release.iterdir()}
    ask = ("audit", city(), release, "--dry-run", "--cache", cache, "--victim", "markov", "--seeds", 2)
    done = called(*ask, "--adversaries", "none,habits", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["adversaries"] == ["none", "habits"]
    assert (plan["seeds"], plan["victims"]) == (2, ["markov"])
    assert plan["trained"] % 2 == 0
    assert "can be audited; nothing was run or written" in called(*ask).stdout
    assert {path.name: path.read_bytes() for path in release.iterdir()} == before
    assert not cache.exists()
    assert "leave --engine" in sentence(called(*ask, "--engine", "local"))
    assert "--leak 7" in sentence(called(*ask, "--leak", 7))
