"""The page itself: what was collected, charted and put into words, in one file that needs nothing else."""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ghostpoi import __version__
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.publish.manifest import PRIVATE_MARK
from ghostpoi.report import words
from ghostpoi.report.card import write_card
from ghostpoi.report.charts import Chart, Method, measured, naturalness_chart, tradeoff_chart, verdict_chart
from ghostpoi.report.collect import Collected, collect
from ghostpoi.report.croissant import write_croissant
from ghostpoi.report.figures import Audit, Victim, title
from ghostpoi.report.plausible import plausibility_charts
from ghostpoi.report.safe import embedded, plain
from ghostpoi.report.theme import DARK
from ghostpoi.report.trajectories import map_data, method_names
from ghostpoi.report.useful import utility_charts, utility_figures

PAGE = "report.html"


@dataclass(frozen=True)
class Request:
    """What the publisher asked for."""

    release: Path
    private: Path | None = None
    with_clean: bool = False
    compare: tuple[Path, ...] = ()
    output: Path | None = None


def write_pages(request: Request) -> list[Path]:
    """The page and, beside a public one in its release, the dataset card and the Croissant metadata."""
    page = write_report(request)
    if request.with_clean or request.output is not None:
        return [page]
    return [page, write_card(request.release), write_croissant(request.release)]


def write_report(request: Request) -> Path:
    """Make the page and put it where it belongs; returns its path."""
    output = _place(request)
    found = collect(request.release, list(request.compare), request.private if request.with_clean else None)
    data = render(found).encode()
    try:
        with replacing(output, mode=0o600 if request.with_clean else 0o644) as out:
            out.write(data)
    except OSError as e:
        raise InputError(
            f"{output} cannot be written ({(e.strerror or str(e)).lower()}); choose another place with -o"
        ) from None
    return output


def _place(request: Request) -> Path:
    """Where the page goes. Clean data never goes into a release, and nothing unknown goes there either."""
    if request.with_clean and request.private is None:
        raise InputError("--with-clean needs --private DIR, the private folder that protect wrote beside the release")
    if request.private is not None and not request.with_clean:
        raise InputError("--private is for a page with clean data; add --with-clean, or leave --private out")
    folder = request.private if request.with_clean else request.release
    assert folder is not None
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the one that protect wrote")
    output = request.output or folder / PAGE
    place = output.resolve()
    inside = [r for r in (request.release, *request.compare) if place.is_relative_to(r.resolve())]
    if inside and request.with_clean:
        raise InputError(
            f"{output} lies inside the release {inside[0]} and the page would hold clean data; choose a place outside"
        )
    if inside and place != inside[0].resolve() / PAGE:
        raise InputError(f"{output} lies inside the release {inside[0]}; there the page must be called {PAGE}")
    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; make it first")
    if output.is_dir():
        raise InputError(f"-o {output} is a folder; give the name of a file")
    return output


def render(found: Collected) -> str:
    """The page as text."""
    audit, methods = found.main.audit, measured(found)
    sections = {
        "verdict": [verdict_chart(audit)] if audit else [],
        "plausibility": plausibility_charts(found),
        "utility": utility_charts(found),
        "tradeoff": _tradeoff(methods),
    }
    charts = [chart for group in sections.values() for chart in group]
    script, shown = _file("page.js"), map_data(found)
    page: str = _template().render(
        private=found.clean is not None,
        mark=PRIVATE_MARK,
        name=plain(found.main.folder),
        method=plain(found.main.method),
        rows=f"{len(found.main.table):,}",
        users=f"{len(found.main.table.users):,}",
        venues=f"{len(set(found.released.tolist())):,}",
        audit=_verdict(audit) if audit else None,
        sections=sections,
        map=shown,
        plausibility=_plausibility(found),
        utility=_utility(found),
        compared=_compared(found, methods),
        made=_made(found),
        settings=_settings(found.main.manifest["settings"]),
        limits=words.LIMITS,
        version=__version__,
        css=Markup(_file("style.css")),
        plotly=Markup(_plotly()),
        script=Markup(script),
        policy=_policy(_plotly(), script),
        chart_data=embedded([chart.json() for chart in charts]),
        map_json=embedded(shown),
        theme=embedded(DARK),
    )
    return page


@cache
def _plotly() -> str:
    return str(get_plotlyjs())


def _file(name: str) -> str:
    return (resources.files("ghostpoi.report") / "assets" / name).read_text("utf-8")


@cache
def _template() -> Any:
    loader = PackageLoader("ghostpoi.report", "assets")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.lstrip_blocks = True
    environment.filters |= {"share": words.share, "plain": plain}
    return environment.get_template("page.html")


def _policy(*scripts: str) -> str:
    """What the browser may do: run these two scripts and nothing else, and fetch nothing at all."""
    hashes = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    allowed = " ".join(f"'sha256-{h}'" for h in hashes)
    fetch = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"
    return f"{fetch}; base-uri 'none'; form-action 'none'"


def _verdict(audit: Audit) -> dict[str, Any]:
    """The verdict in words and large figures."""
    clean, best = audit.clean.acc1, audit.strongest
    top = audit.adversaries[best]
    figures = [(words.gone(top.gone(clean)), f"gone under the strongest adversary, {words.short(best)}")]
    if best != "none" and "none" in audit.adversaries:
        figures.append((words.gone(audit.adversaries["none"].gone(clean)), "gone when the release is used as it is"))
    if (control := audit.random(best)) is not None:
        figures.append((words.gone(control.gone(clean)), "gone with a random draw under the same adversary"))
    sign = audit.beside_random(best)
    return {
        "headline": words.headline(audit),
        "word": min((audit.word(n) for n in audit.adversaries), key=("fails", "partly", "holds").index),
        "figures": figures,
        "random": words.BESIDE_RANDOM[sign] if sign is not None else None,
        "strongest": best,
        "clean": clean.text(1, True),
        "left": top.acc1.text(1, True),
        "note": words.spread_note(audit),
        "leak": f"{audit.leak:.1%}",
        "seeds": audit.seeds,
        "protocol": audit.protocol,
        "positions": f"{audit.positions:,}",
        "each": [_sentence(audit, name) for name in audit.adversaries],
        "table": _table(audit),
    }


def _sentence(audit: Audit, name: str) -> dict[str, str]:
    return {
        "name": words.short(name),
        "title": title(name),
        "word": audit.word(name),
        "says": words.SAYS[audit.word(name)],
        "gone": words.gone(audit.adversaries[name].gone(audit.clean.acc1)),
        "who": words.who(name),
        "sentence": words.sentence(audit.verdicts[name]),
    }


def _table(audit: Audit) -> list[dict[str, Any]]:
    """Every victim with its kind and figures, each as what is shown and what is sorted by."""

    def row(victim: Victim, kind: str, name: str) -> dict[str, Any]:
        gone = victim.gone(audit.clean.acc1)
        figures = [(v.text(), v.mean) for v in (victim.acc1, victim.acc5, victim.mrr)]
        restored = (victim.restored.text(1, True), victim.restored.mean) if victim.restored else ("", -1.0)
        return {"name": name, "kind": kind, "cells": [*figures, (gone.text(0, True), gone.mean), restored]}

    return [
        row(audit.clean, "ceiling", "clean sessions"),
        *(row(v, "adversary", title(n)) for n, v in audit.adversaries.items()),
        *(row(v, "control", title(n)) for n, v in audit.controls.items()),
    ]


def _tradeoff(methods: list[Method]) -> list[Chart]:
    if not methods:
        return []
    natural = naturalness_chart(methods)
    return [tradeoff_chart(methods), *([natural] if natural else [])]


def _plausibility(found: Collected) -> list[tuple[str, str]]:
    """Single figures of all rows, as the manifest has them."""
    p, speed = found.main.manifest.get("plausibility", {}), found.main.manifest["speed"]
    shown = (
        ("substitution_rate", words.share, "of the rows show another venue"),
        ("category_match", words.share, "of the substitutes are of the same category"),
        ("beyond_1km", words.share, "of the substitutes lie beyond 1 km"),
        ("mean_km", lambda km: f"{km:.2f} km", "moved on average"),
        ("p95_km", lambda km: f"{km:.2f} km", "is what 95% stay within"),
    )
    out = [(show(p[key]), text) for key, show, text in shown if key in p]
    if speed.get("steps"):
        over = speed["steps_over_limit"] / speed["steps"]
        out.append((words.share(over), f"of the steps are over {speed['limit_kmh']:g} km/h"))
    return out


def _utility(found: Collected) -> list[dict[str, Any]] | None:
    """Divergences as single figures, each with how much of it is good."""
    figures = utility_figures(found)
    if figures is None:
        return None
    out = []
    for group, key, what, meaning, more in words.UTILITY:
        if (value := figures.get(group, {}).get(key)) is not None:
            kept = min(max(value if more else 1 - value, 0.0), 1.0)
            out.append({"what": what, "meaning": meaning, "value": f"{value:.3f}", "kept": f"{100 * kept:.1f}"})
    return out


def _compared(found: Collected, methods: list[Method]) -> list[dict[str, Any]]:
    """Every release on the page and the random control, with what was measured of each."""
    measured_by_name = {m.name: m for m in methods}
    out = []
    for name, release in zip(method_names(found), [found.main, *found.others], strict=True):
        p = release.manifest.get("plausibility", {})
        a, m = release.audit, measured_by_name.get(name)
        out.append(
            {
                "name": name,
                "protection": m.protection.text() if m else "not audited",
                "resistance": m.resistance.text() if m else "not audited",
                "strongest": words.short(a.strongest) if a else "",
                "how": f"{a.seeds} seed{'s'[: a.seeds > 1]}, leak {a.leak:.1%}, {a.protocol}" if a else "",
                "moved": words.share(p["substitution_rate"]) if "substitution_rate" in p else "",
                "km": f"{p['mean_km']:.2f} km" if "mean_km" in p else "",
                "natural": f"{m.naturalness:.3f}" if m and m.naturalness is not None else "",
            }
        )
    for m in methods:
        if m.control:
            figures = {"protection": m.protection.text(), "resistance": m.resistance.text()}
            out.append(dict.fromkeys(("strongest", "how", "moved", "km", "natural"), "") | {"name": m.name, **figures})
    return out


def _made(found: Collected) -> list[tuple[str, str]]:
    """How the release came about, line by line; the seed is nowhere among it."""
    m = found.main.manifest
    tool = m.get("tool", {})
    rows = m["rows"]
    lines = [
        ("Made with", f"{tool.get('name', 'ghostpoi')} {tool.get('version', '')}"),
        ("Method", f"{m.get('method', 'unknown')}, protocol {m.get('protocol', 'unknown')}"),
        ("Data", f"{m['data']['file']}, {len(found.main.table):,} rows"),
        ("SHA-256", str(m["data"]["sha256"])),
        ("Columns that change with the venue", ", ".join(map(str, m["columns"]["changed_with_the_venue"]))),
        ("Rows withheld", f"{rows['withheld']:,}"),
    ]
    if (a := found.main.audit) is not None:
        lines.append(
            ("Audit", f"ghostpoi {a.version}, protocol {a.protocol}, {a.seeds} seed{'s'[: a.seeds > 1]}, leak "
             f"{a.leak:.1%} of training sessions, {a.positions:,} clean test positions")
        )  # fmt: skip
    return [*lines, ("This page", f"ghostpoi {__version__}")]


def _settings(settings: dict[str, Any]) -> list[tuple[str, str]]:
    """Every public setting, by section."""
    return [
        (str(section), ", ".join(f"{key} {value}" for key, value in group.items()))
        for section, group in settings.items()
        if isinstance(group, dict)
    ]
