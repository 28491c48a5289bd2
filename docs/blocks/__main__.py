"""Fill the blocks of all pages: `python -m docs.blocks`."""

import json
from collections.abc import Mapping

from docs import rerun_presets, rerun_recbole
from docs.blocks import frontier, performance, reproduction
from docs.blocks.common import DOCS, RESULTS, Block, filled
from ghostpoi.study import figures
from ghostpoi.study.results import Results


def presets() -> str:
    """What each preset gives away."""
    return rerun_presets.table(json.loads(rerun_presets.RESULTS.read_text("utf-8")))


def recbole() -> str:
    """What models of RecBole learn from releases."""
    return rerun_recbole.table(json.loads(rerun_recbole.RESULTS.read_text("utf-8")))


def columns() -> str:
    """What `protect` does with leaky and harmless columns of two cities."""
    cities = json.loads((RESULTS / "columns.json").read_text("utf-8"))
    names = [f"{name}, {found['rows']:,} rows" for name, found in cities.items()]
    lines = [["columns", "outcome", *names], ["---"] * (2 + len(names))]
    for family in ("leaky", "harmless"):
        for outcome in ("refused", "refused by policy", "changes with the venue", "kept"):
            lines.append([family, outcome, *(str(found[family].get(outcome, 0)) for found in cities.values())])
    return "".join(" | ".join(line) + "\n" for line in lines)


def accepted() -> str:
    """The leaky columns that `protect` keeps, and what they reveal."""
    cities = json.loads((RESULTS / "columns.json").read_text("utf-8"))
    kept = dict.fromkeys(name for found in cities.values() for name in found["accepted"])
    lines = [["column", *cities], ["---"] * (1 + len(cities))]
    for name in kept:
        shares = (found["accepted"].get(name) for found in cities.values())
        lines.append(
            [f"`{name}`", *("refused" if each is None else f"{each[1]:.3f} ({each[0]:.3f})" for each in shares)]
        )
    return "".join(" | ".join(line) + "\n" for line in lines)


PAGES: dict[str, Mapping[str, Block]] = {
    "explanation/performance.md": performance.BLOCKS,
    "how-to/protect.md": {"presets": presets},
    "results/frontier.md": frontier.BLOCKS,
    "results/reproduction.md": reproduction.BLOCKS,
    "results/third-party.md": {"recbole": recbole},
    "reference/release-folder.md": {"columns": columns, "accepted": accepted},
}


def main() -> None:
    """Fill all pages and draw their figures. The map shows a synthetic city and is drawn only if it is not there."""
    for name, blocks in PAGES.items():
        page = DOCS / name
        page.write_text(filled(page.read_text("utf-8"), blocks), "utf-8")
        print(page)
    folder = DOCS / "figures"
    for study, data in (*reproduction.FIGURES, *frontier.FIGURES):
        figures.draw(Results.read(RESULTS, study, "strong", data), folder, ("svg",))
    performance.draw(performance.stored(), folder)
    if not (folder / "map.svg").exists():
        figures.draw_map(folder, print, formats=("svg",))


if __name__ == "__main__":
    main()
