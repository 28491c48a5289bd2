"""The result pages: Markdown templates with prose by hand, filled with tables, figures and numbers from the results.

Beside a finding, a template has `claim(...)`, which renders to nothing if it holds and stops the build if it does not.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import VICTIMS, victim_settings
from ghostpoi.errors import InputError
from ghostpoi.evaluate.measures.accuracy_gaps import accuracy_lost, against, spread
from ghostpoi.evaluate.measures.detection import DETECTOR
from ghostpoi.files import replacing
from ghostpoi.study import claim_checks, figures, labels, paper
from ghostpoi.study.day_map import draw_map
from ghostpoi.study.results import PROTOCOLS, Results
from ghostpoi.study.tables import tables

TEMPLATES = Path(__file__).parent / "templates"
GROWING = ("frontier", "victims", "leaks", "releases")
FIGURES = {  # of each page, by study and protocol
    "reproduction": [(study, protocol) for study in ("main", "rounds", "leak") for protocol in PROTOCOLS],
    "frontier": [("frontier", "strong")],
}


def render(name: str, results: Path, link: str = "figures") -> str:
    """Fill a page's template; `link` leads from the page to the folder of its figures."""
    if name not in FIGURES:
        raise InputError(f"there is no page {name!r}; pages are {', '.join(FIGURES)}")

    @cache
    def study(study: str, protocol: str = "strong") -> Results:
        return _read(results, study, protocol)

    def claim(*checks: claim_checks.CheckedClaim) -> str:
        if false := [check.text for check in checks if not check.holds]:
            raise InputError(f"page {name}: the results contradict a claim; correct the template. Claim: {false[0]}")
        return ""

    def table(of: str, title: str, protocol: str = "strong", without: Sequence[str] = ()) -> str:
        made = tables([study(of, p) for p in (PROTOCOLS if protocol == "both" else (protocol,))])
        found = next(t for t in made if t.title.startswith(title)).without(*without)
        flag = "" if protocol == "strong" else f" --protocol {protocol}"
        return replace(found, notes=(f"`ghostpoi study tables {of}{flag}`",)).markdown(gap="")

    bench = results / "bench-scoring.json"
    attackers = {key: adversary for key, adversary in ADVERSARIES.builtin.items() if not adversary.needs_columns}
    context: dict[str, Any] = vars(claim_checks) | {
        "study": study, "claim": claim, "table": table, "figure": lambda of, text: f"![{text}]({link}/{of}.svg)",
        "method": labels.method, "heading": labels.heading, "show": labels.show, "spread": spread, "against": against,
        "lost": accuracy_lost, "printed": paper.section, "contradictions": paper.contradictions,
        "stated": paper.contents()["claims"], "number": labels.number, "adversaries": attackers,
        "unmeasured": cache(lambda of: Results.read(results, of, "strong").unmeasured),
        "detector": DETECTOR, "victim": VICTIMS, "victim_settings": victim_settings,
        "bench": json.loads(bench.read_text("utf-8")) if bench.exists() else {},
    }  # fmt: skip
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    try:
        text = environment.from_string((TEMPLATES / f"{name}.md").read_text("utf-8")).render(context)
    except (jinja2.UndefinedError, TypeError) as e:
        raise InputError(f"page {name}: {results} lacks something that the page needs ({e}); restore it") from e
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" +\n", "\n", text)).strip() + "\n"


def _read(results: Path, study: str, protocol: str) -> Results:
    """Read a study. Those of many methods may grow: what they lack is left out, and their page says so."""
    found = Results.read(results, study, protocol)
    return found.measured if study in GROWING else found


def write(name: str, results: Path, output: Path, folder: Path | None, say: Callable[[str], None]) -> Path:
    """Write a page and its figures; the map shows a synthetic city and is drawn only if it is not there yet."""
    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; make it first")
    folder = folder or output.parent / "figures"
    text = render(name, results, os.path.relpath(folder, output.parent))
    for study, protocol in FIGURES[name]:
        figures.draw(_read(results, study, protocol), folder, formats=("svg",))
    if name == "reproduction" and not (folder / "map.svg").exists():
        draw_map(folder, say, formats=("svg",))
    with replacing(output) as out:
        out.write(text.encode())
    return output
