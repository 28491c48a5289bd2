"""docs/reproduction.md, generated from the cells of both protocols: nothing measured is typed."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ghostpoi.attack.victims import victim_settings
from ghostpoi.errors import InputError
from ghostpoi.evaluate.measures.gaps import spread
from ghostpoi.files import replacing
from ghostpoi.study import figures, findings, paper, tables
from ghostpoi.study.adaptive import page as adaptive
from ghostpoi.study.cells import PROTOCOLS, Cells
from ghostpoi.study.table import MISSING, Table, show
from ghostpoi.study.verdict import against

SUBJECTS = {
    "main": "Main matrix: Tables I to III and the Pareto figure",
    "manifold": "Manifold prior: Table IV",
    "weights": "Score weights: Table V",
    "entropy": "Entropy floor: Table VI",
    "rounds": "Outer rounds: the convergence figure",
    "leak": "Leak ratio: the leak figure",
    "seeds": "Beyond the paper: its methods over thirty seeds",
    "surrogate": "Beyond the paper: what hangs on the surrogate",
}
BEYOND = ("seeds", "surrogate")  # no table of the paper asks for them: shown under the protocols that were measured
FOLDER = "figures"


def make(name: str, results: Path, output: Path, say: Callable[[str], None]) -> Path:
    """One of the pages that come of cells."""
    if name not in PAGES:
        raise InputError(f"there is no page {name!r}; pages are {', '.join(PAGES)}")
    return PAGES[name](results, output, say)


def write(results: Path, output: Path, say: Callable[[str], None], with_map: bool = True) -> Path:
    """The page and its figures beside it. The map is of a synthetic city and is drawn only if it is not there yet."""
    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; make it first")
    cells = {p: {s: Cells.read(results, s, p) for s in SUBJECTS} for p in PROTOCOLS}
    folder = output.parent / FOLDER
    for protocol in PROTOCOLS:
        for study in SUBJECTS:
            if study in figures.FIGURES and cells[protocol][study].about:
                figures.draw(cells[protocol][study], folder, ("svg",))
    if with_map and not (folder / "map.svg").exists():
        figures.MapRequest().draw(folder, say, ("svg",))
    text = page(cells, with_map=(folder / "map.svg").exists())
    with replacing(output) as out:
        out.write(text.encode())
    return output


def page(cells: dict[str, dict[str, Cells]], with_map: bool) -> str:
    """The whole text."""
    parts = [_opening(cells), _protocols(cells)]
    for study, subject in SUBJECTS.items():
        parts.append(_subject(study, subject, cells))
    parts += [_tokyo(cells), _map() if with_map else "", _findings(cells), _paper_itself()]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _opening(cells: dict[str, dict[str, Cells]]) -> str:
    every = [c for studies in cells.values() for c in studies.values() if c.about]
    facts = {
        name: sorted({value for c in every for value in c.about_all(key)}) or [MISSING]
        for name, key in (("Data", "data"), ("Hardware", "hardware"), ("Commits", "commit"))
    }
    seeds: dict[str, list[str]] = {}
    for c in every:
        for count in {len(cell["seeds"]) for cell in c.about}:
            seeds.setdefault(f"{count} a cell", []).append(c.study)
    most = max(seeds, key=lambda count: len(seeds[count]), default=MISSING)
    facts["Seeds"] = [most, *(f"{n} in {', '.join(dict.fromkeys(s))}" for n, s in seeds.items() if n != most)]
    return "\n".join(
        [
            "# Reproduction of the paper",
            "",
            "Generated from the cells under `results/` by `ghostpoi study page`; do not edit.",
            "",
            *(f"- {name}: {', '.join(values)}" for name, values in facts.items()),
            "",
            "Each row of ours stands above the paper's. " + tables.GAPS_NOTE + " " + tables.EXTRA_NOTE,
            "",
            tables.TSUE_NOTE,
            "",
        ]
    )


def _protocols(cells: dict[str, dict[str, Cells]]) -> str:
    rows = []
    for protocol in PROTOCOLS:
        model, training = victim_settings(protocol)
        ours = cells[protocol]["main"].clean()
        shown = asdict(model) | asdict(training)
        rows.append(
            (protocol, show(spread(ours)) if ours else MISSING,
             ", ".join(f"{key} {value}" for key, value in shown.items()))
        )  # fmt: skip
    more = against(*(cells[p]["main"].clean() for p in ("strong", "paper")))
    table = Table(
        "The victim under both protocols, chosen by clean test accuracy before any method's accuracy was measured",
        ("protocol", "clean acc@1", "settings"),
        tuple(rows),
        (
            "`paper` is the victim whose clean accuracy is the paper's; it stops early. `strong` is trained until it "
            "stops improving: a weak victim flatters a defence. Clean acc@1 of `strong` minus `paper`: "
            + (f"{more.text}." if more else f"{MISSING}."),
        ),
    )
    return "## Protocols\n\n" + table.markdown()


def _subject(study: str, subject: str, cells: dict[str, dict[str, Cells]]) -> str:
    parts = [f"## {subject}", ""]
    for protocol in PROTOCOLS:
        here = cells[protocol][study]
        if study in BEYOND and not here.about:
            parts.append(f"Protocol {protocol}: {MISSING}.\n")
            continue
        for table in tables.tables(here):
            if paper.CITIES["tky"] not in table.title or here.city == "tky":
                notes = table.notes[:1] if study in BEYOND else ()  # the others stand at the top of the page
                parts.append(Table(table.title, table.columns, table.rows, notes).markdown())
        if study in figures.FIGURES and here.about:
            name = f"{figures.FIGURES[study][0]}-{protocol}"
            parts.append(f"![{name}]({FOLDER}/{name}.svg)\n")
    return "\n".join(parts)


def _tokyo(cells: dict[str, dict[str, Cells]]) -> str:
    """The paper's Tokyo figures, once, beside the words that we have none."""
    if any(c.city == "tky" for studies in cells.values() for c in studies.values()):
        return ""
    absent = Cells("main", "any", {}, {}, {}, ())
    found = [t for t in tables.tables(absent) if paper.CITIES["tky"] in t.title]
    shown = [Table(t.title, t.columns, t.rows).markdown() for t in found]
    words = "The studies run on any prepared file; Tokyo was not measured. The paper's figures, for the record:"
    return "\n".join(["## Tokyo: not measured", "", words, "", *shown])


def _map() -> str:
    return "\n".join(
        [
            "## One day on the map",
            "",
            "A synthetic city, because we ship nobody's check-ins. Draw a day of your own data with "
            "`ghostpoi study figures map --data DATA.npz`; that picture shows clean data and is for your eyes alone.",
            "",
            f"![one day, clean and released]({FOLDER}/map.svg)",
            "",
        ]
    )


def _findings(cells: dict[str, dict[str, Cells]]) -> str:
    parts = [
        "## What reproduces, what does not, and why",
        "",
        "A difference is taken seed by seed and called lower or higher only if its 95% interval over the seeds leaves "
        "out 0; everything else is inside the spread and no win. Many differences are looked at, so one clear one "
        "among them is weak evidence.",
        "",
    ]
    for protocol in PROTOCOLS:
        parts += [f"### Protocol {protocol}", "", findings.versus_random(cells[protocol]["main"]).markdown()]
        for claim, answer in findings.statements(cells[protocol]):
            parts.append(f"- **{claim}.** {answer[:1].upper()}{answer[1:]}")
        parts.append("")
    return "\n".join(parts)


def _paper_itself() -> str:
    lines = ["### Where the paper disagrees with itself", ""]
    lines += [f"- {what}" for what in paper.disagreements()]
    words = (
        "Where text and figures differ, we follow the figures: sets of at least 6, and the split that gives the counts."
    )
    return "\n".join([*lines, "", words, "", findings.contradictions().markdown()])


PAGES: dict[str, Callable[[Path, Path, Callable[[str], None]], Path]] = {
    "reproduction": write,
    "adaptive": adaptive.write,
}
