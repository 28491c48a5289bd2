"""Run the demonstration and write what it prints about its first release into README.md.

python docs/rerun_readme.py takes about two minutes. Run it when the output of `make demo` changes;
tests/nightly/test_readme_demo.py fails if README.md differs from what this script writes.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
PROMPT = "$ ghostpoi "
SHOWN = ("protect", "audit")  # the commands of the block, each up to the first table of an audit
TABLE = "victim trained on"
SIGNED = "signed by key "  # every run has its own key


def excerpt(printed: str) -> str:
    """Return what README.md shows of the output of the demonstration: the first protect and the start of its audit."""
    steps = [PROMPT + step for step in printed.split(f"\n{PROMPT}")[1:]]
    first = [next(step for step in steps if step.startswith(PROMPT + command)) for command in SHOWN]
    lines = [line.rstrip() for step in first for line in step.split(f"\n{TABLE}")[0].splitlines()]
    return "".join(f"{line}\n" for line in lines if line and not line.startswith(SIGNED))


def block(readme: str) -> str:
    """Return the block of README.md that shows the demonstration."""
    found = BLOCK.findall(readme)
    if len(found) != 1:
        raise ValueError("README.md must have exactly one console block")
    return found[0]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        printed = subprocess.run(
            [sys.executable, "-m", "ghostpoi", "demo"], cwd=scratch, env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, text=True, check=True,
        ).stdout  # fmt: skip
    text = README.read_text("utf-8")
    README.write_text(BLOCK.sub(lambda _: excerpt(printed), text), "utf-8")
