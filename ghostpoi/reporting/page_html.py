"""The page: one HTML file that needs nothing else. Its prose is in assets/page.html."""

import base64
import hashlib
from typing import Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ghostpoi import __version__
from ghostpoi.publish.manifest import PRIVATE_MARK
from ghostpoi.reporting import labels
from ghostpoi.reporting.charts.audit import method_points, tradeoff_charts, verdict_chart
from ghostpoi.reporting.charts.map import map_data
from ghostpoi.reporting.charts.plausibility import plausibility_charts
from ghostpoi.reporting.charts.theme import DARK
from ghostpoi.reporting.charts.utility import utility_charts, utility_measures
from ghostpoi.reporting.headline import headline, tone
from ghostpoi.reporting.page_data import PageData
from ghostpoi.reporting.release_view import NOTHING_SAID, About
from ghostpoi.reporting.templates import TEXTS, asset, embedded, plain, template


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
