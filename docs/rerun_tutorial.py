"""Run the commands of docs/tutorial.md in an empty folder and write what they print back into the page.

python docs/rerun_tutorial.py takes about two minutes. Run it when the output of a command changes.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parent / "tutorial.md"
BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
PROMPT = "$ "


def rerun(page: str, folder: Path) -> str:
    """The page with fresh output below every command of its console blocks."""
    return BLOCK.sub(lambda block: "".join(output(line, folder) for line in commands(block[0])), page)


def commands(block: str) -> list[str]:
    """The command lines of a console block, without what they printed."""
    return [line for line in block.splitlines() if line.startswith(PROMPT)]


def output(line: str, folder: Path) -> str:
    """A command line and what it prints."""
    python = f'ghostpoi() {{ {sys.executable} -m ghostpoi "$@"; }}; '
    done = subprocess.run(
        ["bash", "-ec", python + line.removeprefix(PROMPT)],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(PAGE.parent.parent)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
    )  # fmt: skip
    return "".join(f"{text.rstrip()}\n" for text in [line, *done.stdout.splitlines()])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        PAGE.write_text(rerun(PAGE.read_text(), Path(scratch)))
