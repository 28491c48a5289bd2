"""Let `choose` recommend settings for a file, protect it with them, audit the release, and compare.

    python docs/rerun_choose.py FILE [--keep COLUMN...] [--scratch DIR]

stores results/choose.json; `make pages` then writes the table on docs/how-to/protect.md. On NYC it takes about ten
minutes on two cores.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ghostpoi.attack.adversaries import ADVERSARIES

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "choose.json"
SEED = 133449441170179652605563928414472319799
CONTROLS = ("leak-only", "leak-stay", "stay")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--keep", nargs="+", default=[], help="columns that the release keeps")
    parser.add_argument("--scratch", type=Path, help="a private folder; what is done there is not done again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        found = measured(given.file, given.keep, given.scratch or Path(temporary))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def measured(file: Path, keep: list[str], scratch: Path) -> dict[str, Any]:
    """Return what `choose` promised of its recommendation, and what an audit of a release finds."""
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    release, cache = scratch / "release", ("--cache", str(scratch / "cache"))
    kept = [word for name in keep for word in ("--keep", name)]
    choice = asked("choose", file, "-o", scratch / "choice.html", *kept, *cache, "--json")
    best = choice["recommended"]
    words = shlex.split(best["command"])[3:]  # after `ghostpoi protect FILE`
    words[words.index("-o") + 1] = str(release)
    if not release.exists():
        asked("protect", file, *words, "--seed", SEED)
    audit = asked("audit", file, release, "--victim", choice["victim"], "--no-naturalness", *cache, "--json")
    top = audit["strongest"]
    return {
        "file": file.name,
        "settings": best["settings"],
        "name": best["name"],
        "victim": choice["victim"],
        "promised": {
            "adversaries": len(best["accuracy"]) - 1,  # leak-mixed is a control
            "strongest": best["strongest"],
            "worst": best["accuracy"][best["strongest"]],
            "mean_km": best["mean_km"],
            "flows": best["flows"],
            "popularity": best["popularity"],
            "left_genuine": best["left_genuine"],
        },
        "audited": {
            "adversaries": len(audit["adversaries"]),
            "strongest": top,
            "worst": audit["adversaries"][top]["acc@1"],
            "mean_km": audit["plausibility"]["mean_km"],
            "flows": audit["utility"]["flows"]["common_part"],
            "popularity": audit["utility"]["popularity"]["poi_js"],
            "left_genuine": json.loads((release / "manifest.json").read_text("utf-8"))["rows"]["left_genuine"]["share"],
        },
        "accuracy": {name: scores["acc@1"] for name, scores in audit["adversaries"].items()},
        "clean": audit["clean"]["acc@1"],
        "controls": {name: audit["controls"][name]["acc@1"] for name in CONTROLS},
    }


def asked(*words: object) -> Any:
    """Run a command of ghostpoi and return what it prints as JSON; None if it prints none."""
    command = [sys.executable, "-m", "ghostpoi", *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout) if "--json" in words else None


def table(found: dict[str, Any]) -> str:
    """Return the promise next to the audit as a Markdown table."""
    promised, audited = found["promised"], found["audited"]
    lines: list[tuple[str, ...]] = [("", "promised", "audited"), ("---", "---", "---")]
    lines.append(("adversaries", *(str(one["adversaries"]) for one in (promised, audited))))
    lines.append(
        ("worst case, acc@1", *(f"{spread(one['worst'])} ({one['strongest']})" for one in (promised, audited)))
    )
    for key, name in (("mean_km", "mean km"), ("flows", "flows"), ("popularity", "popularity, bits")):
        lines.append((name, *(f"{one[key]:.3f}" for one in (promised, audited))))
    leakless = [name for name in found["accuracy"] if not ADVERSARIES[name].uses_leak]
    top = max(leakless, key=lambda name: found["accuracy"][name]["mean"])
    lines.append(("worst case without a leak", "", f"{spread(found['accuracy'][top])} ({top})"))
    lines.append(("floor: stay", "", f"{found['controls']['stay']['mean']:.3f}"))
    lines.append(("rows left genuine", *(f"{one['left_genuine']:.1%}" for one in (promised, audited))))
    return "".join(f"{' | '.join(line)}\n" for line in lines)


def spread(value: dict[str, Any]) -> str:
    return f"{value['mean']:.3f} ± {value['std']:.3f}"


if __name__ == "__main__":
    main()
