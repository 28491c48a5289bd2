"""The result pages: Markdown templates with prose by hand, filled with tables, figures and numbers from the results.

Beside a finding, a template has `claim(...)`, which renders to nothing if it holds and stops the build if it does not.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import jinja2

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import VICTIMS, victim_settings
from ghostpoi.errors import InputError
from ghostpoi.evaluate.measures.accuracy_gaps import PRACTICAL, against
from ghostpoi.files import replacing
from ghostpoi.study import (
    claim_checks,
    figures,
    labels,
    levels_table,
    paper,
    paper_claims,
    paper_text,
    stored_json,
)
from ghostpoi.study.data_facts import read_facts
from ghostpoi.study.day_map import draw_map
from ghostpoi.study.learned_facts import threshold_for
from ghostpoi.study.overhead import manifold_overhead
from ghostpoi.study.reproduce import STUDIES
from ghostpoi.study.results import GOWALLA, NYC, PROTOCOLS, Results
from ghostpoi.study.tables import RIVALS, duels, tables

TEMPLATES = Path(__file__).parent / "templates"
FIGURES = {  # of each page: study and data, under `strong`; what was not measured has none
    "reproduction": [(study, data) for data in (NYC, GOWALLA) for study in ("main", "rounds", "leak")],
    "frontier": [("frontier", NYC)],
}
PREPARED = {NYC: "nyc.npz", GOWALLA: "ca.npz"}  # what commands on the pages call prepared data


def render(name: str, results: Path, link: str = "figures") -> str:
    """Fill a page's template; `link` leads from the page to the folder of its figures."""
    if name not in FIGURES:
        raise InputError(f"there is no page {name!r}; pages are {', '.join(FIGURES)}")

    @cache
    def planned(study: str, protocol: str = "strong", data: str | None = None) -> Results:
        return Results.read(results, study, protocol, data)

    @cache
    def study(study: str, protocol: str = "strong", data: str | None = None) -> Results:
        return planned(study, protocol, data).measured

    def there(of: str, protocol: str, data: str) -> bool:
        """Whether all variants of GHOST in a study were measured, and its rivals in the main matrix."""
        own = [m for m in planned(of, protocol, data).methods if m.split()[0] == "ghost"]
        return {*own} <= {*study(of, protocol, data).methods} and {*study("main", protocol, data).methods} >= RIVALS

    def claim(*checks: claim_checks.CheckedClaim) -> str:
        if false := [check.text for check in checks if not check.holds]:
            raise InputError(f"page {name}: the results contradict a claim; correct the template. Claim: {false[0]}")
        return ""

    def table(
        of: str, title: str, protocol: str = "strong", without: Sequence[str] = (), data: str | None = None
    ) -> str:
        made = tables([study(of, p, data) for p in (PROTOCOLS if protocol == "both" else (protocol,))])
        found = next(t for t in made if t.title.startswith(title)).without(*without)
        return replace(found, notes=(commands(of, protocol, data),)).markdown(gap="")

    def commands(of: str, protocol: str = "strong", data: str | None = None) -> str:
        flag = "" if protocol == "strong" else f" --protocol {protocol}"
        city, measure = (
            f" --city {data}" if data and data != NYC else "",
            f"study run {of} --data {PREPARED[data or NYC]}",
        )
        again = f"`ghostpoi {measure}`" + (", again with `--protocol paper`" if protocol == "both" else "")
        return f"Measure: {again}. Print: `ghostpoi study tables {of}{flag}{city}`."

    bench = results / "bench-scoring.json"
    attackers = {key: ADVERSARIES[key] for key in ADVERSARIES.builtin if not ADVERSARIES[key].needs_columns}
    context: dict[str, Any] = vars(claim_checks) | {
        "study": study, "there": cache(there), "claim": claim, "table": table, "commands": commands,
        "cities": PREPARED, "nyc": NYC,
        "figure": lambda name, text: f"![{text}]({link}/{name}.svg)", "figure_name": figures.file_name,
        "summary": lambda which: paper_claims.summary(getattr(paper_claims, which), study), "data_name": labels.data,
        "duels": lambda *found: replace(duels(found).without("Δmean"), notes=()).markdown(gap=""),
        "practical": PRACTICAL, "method": labels.method, "heading": labels.heading, "show": labels.show,
        "against": partial(against, least=PRACTICAL), "corrected": labels.corrected,
        "printed": paper.section, "contradictions": paper.contradictions,
        "stated": paper.contents()["claims"], "number": labels.number, "adversaries": attackers,
        "unmeasured": cache(lambda of, *where: Results.read(results, of, *(where or ("strong",))).unmeasured),
        "victim": VICTIMS, "victim_settings": victim_settings,
        "overhead": lambda: manifold_overhead(stored_json.read(bench, "python -m benchmarks scoring")),
        "facts_of": read_facts(results).get(NYC), "threshold_for": threshold_for, "lacking": lambda: lacking(results),
        "paper_text": paper_text,
        "levels": [rows for p in PROTOCOLS if (rows := levels_table.read(results, p))], "levels_table": levels_table,
    }  # fmt: skip
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    try:
        text = environment.from_string((TEMPLATES / f"{name}.md").read_text("utf-8")).render(context)
    except (jinja2.UndefinedError, KeyError, TypeError) as e:
        raise InputError(f"page {name}: {results} lacks something that the page needs ({e}); restore it") from e
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" +\n", "\n", text)).strip() + "\n"


def lacking(results: Path) -> list[str]:
    """List what the studies of the reproduction plan and nobody measured yet."""
    found = []
    for data in PREPARED:
        plans = {(s, p): Results.read(results, s, p, data) for s, p in product((*STUDIES, "releases"), PROTOCOLS)}
        if not any(plan.cells for plan in plans.values()):
            found.append(f"{labels.data(plans['main', 'strong'])}, everything")
            continue
        gaps: dict[tuple[str, str], list[str]] = {}
        for (study, protocol), plan in plans.items():
            if plan.unmeasured and (study, protocol) != ("releases", "paper"):  # which nobody plans
                methods = ", ".join(labels.method(m, plan.study) for m in plan.unmeasured)
                gaps.setdefault((study, methods), []).append(protocol)
        name = labels.data(plans["main", "strong"])
        found += [f"{name}, `{study}` ({' and '.join(under)}): {methods}" for (study, methods), under in gaps.items()]
    return found


def write(name: str, results: Path, output: Path, folder: Path | None, say: Callable[[str], None]) -> Path:
    """Write a page and its figures; the map shows a synthetic city and is drawn only if it is not there yet."""
    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; make it first")
    folder = folder or output.parent / "figures"
    text = render(name, results, os.path.relpath(folder, output.parent))
    for study, data in FIGURES[name]:
        if f"/{figures.file_name(figures.FIGURES[study][0], 'strong', data)}.svg)" in text:
            figures.draw(Results.read(results, study, "strong", data).measured, folder, formats=("svg",))
    if name == "reproduction" and not (folder / "map.svg").exists():
        draw_map(folder, say, formats=("svg",))
    with replacing(output) as out:
        out.write(text.encode())
    return output
