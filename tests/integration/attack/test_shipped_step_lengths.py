"""The table of step lengths that comes along is what its command prints."""

import subprocess
import sys
import tomllib
from pathlib import Path

from conftest import real_data
from docs_scripts import DOCS

from ghostpoi.attack.adversaries import hidden_markov


def test_the_shipped_table_is_what_its_command_prints() -> None:
    path = real_data("gowalla_california.csv.xz")
    made = subprocess.run([sys.executable, DOCS / "step_lengths.py", path], capture_output=True, text=True, check=True)
    shipped = Path(hidden_markov.__file__).with_name("step_lengths.toml").read_text("utf-8")
    assert tomllib.loads(made.stdout) == tomllib.loads(shipped)
