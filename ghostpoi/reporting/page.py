"""The page: one HTML file that needs nothing else. Its prose is in assets/page.html."""

import base64
import hashlib
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ghostpoi import __version__
from ghostpoi.errors import InputError
from ghostpoi.files import remove_partial, replacing
from ghostpoi.publish.manifest import PRIVATE_MARK
from ghostpoi.reporting import labels
from ghostpoi.reporting.card import card
from ghostpoi.reporting.charts.audit import method_points, tradeoff_charts, verdict_chart
from ghostpoi.reporting.charts.map import map_data
from ghostpoi.reporting.charts.plausibility import plausibility_charts
from ghostpoi.reporting.charts.theme import DARK
from ghostpoi.reporting.charts.utility import utility_charts, utility_measures
from ghostpoi.reporting.croissant import croissant
from ghostpoi.reporting.headline import headline, tone
from ghostpoi.reporting.page_data import PageData, read_page_data
from ghostpoi.reporting.release_view import NOTHING_SAID, About, is_file
from ghostpoi.reporting.templates import TEXTS, asset, embedded, plain, template

PAGE, CARD, CROISSANT = "report.html", "card.md", "croissant.json"


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """What the publisher asked for."""

    release: Path  # the folder that protect wrote, or another tool's file
    compare: tuple[Path, ...] = ()
    private: Path | None = None
    with_clean: bool = False
    output: Path | None = None
    mapping: dict[str, str] = field(default_factory=dict)  # columns of other tools' files
    audits: tuple[Path, ...] = ()  # of other tools' files
    about: About = NOTHING_SAID


def write_pages(request: ReportRequest) -> list[Path]:
    """Write the page and, beside a public one in its release, the dataset card and the Croissant metadata."""
    output = _output(request)
    private = request.private if request.with_clean else None
    data = read_page_data(request.release, request.compare, private, request.mapping, request.audits)
    texts, about = {output: render(data, request.about)}, request.about
    if not request.with_clean and request.output is None:
        texts[request.release / CARD] = card(data.main, about)
        texts[request.release / CROISSANT] = croissant(data.main, about)
    remove_partial(request.release)
    remove_partial(output.parent, escape(output.name))
    for path, text in texts.items():
        try:
            with replacing(path, mode=0o600 if request.with_clean else 0o644) as out:
                out.write(text.encode("utf-8", "replace"))
        except OSError as e:
            reason = (e.strerror or str(e)).lower()
            raise InputError(f"{path} cannot be written ({reason}); choose another place with -o") from None
    return list(texts)


def _output(request: ReportRequest) -> Path:
    """The path of the page. Clean data must not enter a release, and neither may a file that verify does not know."""
    if request.with_clean and request.private is None:
        raise InputError("--with-clean needs --private DIR, the private folder that protect wrote beside the release")
    if request.private is not None and not request.with_clean:
        raise InputError("--private is for a page with clean data; add --with-clean, or leave --private out")
    if is_file(request.release):
        if request.with_clean:
            raise InputError(
                f"--with-clean: {request.release} is a file; only a release of protect has a private folder"
            )
        if request.output is None:
            raise InputError(f"{request.release} is a file, so the page has no folder; name the page with -o page.html")
    folder = request.private or request.release
    if request.private is not None and not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the one that protect wrote")
    output = request.output or folder / PAGE
    place = output.resolve()
    inside = [r for r in (request.release, *request.compare) if place.is_relative_to(r.resolve())]
    if inside and request.with_clean:
        raise InputError(
            f"{output} lies inside the release {inside[0]} and would hold clean data; choose another place"
        )
    if any(place == r.resolve() for r in (request.release, *request.compare, *request.audits)):
        raise InputError(f"-o {output} would overwrite what the page is about; choose another name")
    if inside and place != inside[0].resolve() / PAGE:
        raise InputError(f"{output} lies inside the release {inside[0]}; there the page must be called {PAGE}")
    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; create it first")
    if output.is_dir():
        raise InputError(f"-o {output} is a folder; give the name of a file")
    return output


def render(data: PageData, about: About = NOTHING_SAID) -> str:
    """Return the page as HTML."""
    main, audit, points = data.main, data.main.audit, method_points(data)
    charts = {
        "verdict": [verdict_chart(audit)] if audit and not audit.no_verdict else [],
        "plausibility": plausibility_charts(data),
        "utility": utility_charts(data),
        "tradeoff": tradeoff_charts(points),
    }
    plotly, script, shown = get_plotlyjs(), asset("page.js"), map_data(data)
    filters = {
        "share": labels.share, "with_spread": labels.with_spread, "victim_label": labels.victim_label, "plain": plain,
    }  # fmt: skip
    return template("page.html", filters, autoescape=True).render(
        private=data.clean is not None, mark=PRIVATE_MARK, data=data, main=main, m=main.manifest, audit=audit,
        headline=headline(audit) if audit else "", tone=tone(audit) if audit else "",
        utility=_utility(data), points={point.name: point for point in points}, labels=labels, texts=TEXTS,
        charts=charts, map=shown, version=__version__, css=Markup(asset("style.css")), plotly=Markup(plotly),
        script=Markup(script), policy=policy(plotly, script), map_json=embedded(shown), theme=embedded(DARK),
        about=about,
        chart_data=embedded([chart.json() for group in charts.values() for chart in group]),
    )  # fmt: skip


def policy(*scripts: str) -> str:
    """The content security policy: the browser may run these scripts and nothing else, and fetch nothing."""
    hashes = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    allowed = " ".join(f"'sha256-{h}'" for h in hashes)
    fetch = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"
    return f"{fetch}; base-uri 'none'; form-action 'none'"


def _utility(data: PageData) -> list[dict[str, Any]]:
    """The measures of utility, each with the share that survives in percent."""
    found = utility_measures(data) or {}
    out = []
    for measure in data.main.utility_measures:
        if (value := found.get(measure.group, {}).get(measure.key)) is not None:
            kept = min(max(1 - abs(value - measure.unchanged), 0.0), 1.0)
            out.append({"measure": measure, "value": f"{value:.3f}", "kept": f"{100 * kept:.1f}"})
    return out
