"""The page of `choose`: protection against usefulness for all settings that were tried. It describes clean data."""

from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ghostpoi import __version__
from ghostpoi.errors import InputError
from ghostpoi.evaluate.controls import CLEAN, FLOORS, LEAK_ONLY, LEAK_STAY, MARKOV
from ghostpoi.files import remove_partial, replacing
from ghostpoi.publish.manifest import PRIVATE_MARK
from ghostpoi.reporting import labels
from ghostpoi.reporting.charts.theme import BLUE, DARK, GREEN, VERMILLION
from ghostpoi.reporting.page_html import policy
from ghostpoi.reporting.templates import asset, embedded, plain, template

CATEGORIES = {
    "any": (BLUE, "any category"),
    "group": (GREEN, "group of categories"),
    "exact": (VERMILLION, "same category"),
}


def write_choice(output: Path, name: str, found: dict[str, Any]) -> None:
    """Write the page about the file `name`."""
    remove_partial(output.parent, escape(output.name))
    try:
        with replacing(output, mode=0o600) as out:
            out.write(render_choice(name, found).encode("utf-8", "replace"))
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise InputError(f"{output} cannot be written ({reason}); choose another place with -o") from None


def render_choice(name: str, found: dict[str, Any]) -> str:
    """Return the page as HTML."""
    plotly, script = get_plotlyjs(), asset("choice.js")
    trials = [_trial(number, trial, found) for number, trial in enumerate(found["tried"])]
    data = {"trials": trials, "lines": _lines(found), "wishes": found["wishes"], "categories": CATEGORIES}
    filters = {"share": labels.share, "plain": plain}
    return template("choice.html", filters, autoescape=True).render(
        mark=PRIVATE_MARK, name=name, found=found, trials=trials, version=__version__, css=Markup(asset("style.css")),
        plotly=Markup(plotly), script=Markup(script), policy=policy(plotly, script), data=embedded(data),
        theme=embedded(DARK), victim_label=labels.victim_label, controls=_controls(found),
        regions=labels.regions_text(found["regions"], "tried on") if "regions" in found else "",
    )  # fmt: skip


def _trial(number: int, trial: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    settings = dict(text.removeprefix("method.").split("=") for text in trial["settings"])
    worst = trial["accuracy"][trial["strongest"]]
    spread = f" ± {worst['std']:.3f}" if len(worst["seeds"]) > 1 else ""
    return trial | {
        "number": number,
        "category": settings["category"],
        "draw": settings["draw"],
        "worst_text": ("" if trial["complete"] else "≥ ") + f"{trial['worst']:.3f}{spread}",
        "strongest_text": labels.victim_label(trial["strongest"]),
        "recommended": trial is found["recommended"],
    }


def _lines(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The controls that the charts show: one of the floors, the higher one, is enough there."""
    lower = min(FLOORS, key=lambda name: float(found["controls"][name]))
    hidden = (labels.victim_label(lower), labels.victim_label(MARKOV))
    return [one for one in _controls(found) if one["name"] not in hidden]


def _controls(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The accuracies that every setting is compared with, over all steps and over moves."""
    return [
        {
            "name": "clean data" if name == CLEAN else labels.victim_label(name),
            "value": float(np.mean(found["controls"][name])),
            "moves": float(np.mean(found["controls_on_moves"][name])),
        }
        for name in (CLEAN, LEAK_ONLY, LEAK_STAY, *FLOORS, MARKOV)
    ]
