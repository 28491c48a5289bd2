"""The pages about a release and about settings that `choose` tried: each is one HTML file that needs nothing else.

Their prose is in assets/page.html and assets/choice.html.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from ghostpoi import __version__
from ghostpoi.audits.controls import CLEAN
from ghostpoi.audits.verdicts import PERSONS, limits_of
from ghostpoi.errors import InputError
from ghostpoi.files import remove_partial, replacing
from ghostpoi.formats import Source
from ghostpoi.options import option
from ghostpoi.release.manifest import PRIVATE_MARK, seal_of, settings_of
from ghostpoi.reports import texts
from ghostpoi.reports.audit_view import PersonRow, person_rows
from ghostpoi.reports.charts import Chart, symbols
from ghostpoi.reports.charts.audit import choice_chart, method_points, persons_chart, tradeoff_charts, verdict_chart
from ghostpoi.reports.charts.city import city, map_data
from ghostpoi.reports.charts.plausibility import plausibility_charts
from ghostpoi.reports.charts.utility import confusion, utility_charts, utility_measures
from ghostpoi.reports.choice_view import arguments, control_name, controls, warnings, without
from ghostpoi.reports.dataset_card import card, croissant
from ghostpoi.reports.decision import decision
from ghostpoi.reports.page_data import PageData, read_page_data
from ghostpoi.reports.release_view import NOTHING_SAID, About, ReleaseView, is_file, open_release
from ghostpoi.reports.texts import TEXTS, asset, embedded, template

PAGE, CARD, CROISSANT = "report.html", "card.md", "croissant.json"


def write_pages(
    source: Source | Path, *, compare: Sequence[Path] = (), private: Path | None = None, with_clean: bool = False,
    output: Path | None = None, mapping: Mapping[str, str] | None = None, audits: Sequence[Path] = (),
    about: About = NOTHING_SAID, outlines: Path | None = None,
) -> list[Path]:  # fmt: skip
    """Write the page and, for a public one in its release, the dataset card and the Croissant metadata.

    `source` is a folder of protect or another tool's file; `mapping` and `audits` are for files of other tools, and
    `outlines` is a GeoJSON file for the map.
    """
    source = Source.of(source)
    release = source.path
    _check_private(release, private, with_clean, output)
    folder = private or release
    if private is not None and not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the one that protect wrote")
    place = output or folder / PAGE
    _check_place(place, release, compare, audits, with_clean)
    data = read_page_data([source, *map(source.at, compare)], private, dict(mapping or {}), audits)
    pages = {place: render(data, about, outlines)}
    if not with_clean and output is None:
        pages[release / CARD] = card(data.main, about)
        pages[release / CROISSANT] = croissant(data.main, about)
    remove_partial(release)
    for path, text in pages.items():
        _write(path, text, private=with_clean)
    return list(pages)


def write_dpia(source: Source, output: Path | None, about: About = NOTHING_SAID) -> Path:
    """Write the page for the data protection officer, by default into the release."""
    release = source.path
    if is_file(release):
        raise InputError(f"{option('dpia')} is about a release of protect; give its folder and not the file {release}")
    place = output or release / DPIA
    _check_place(place, release, (), (), with_clean=False, page=DPIA)
    _write(place, render_dpia(release, open_release(source), about), private=False)
    return place


def write_choice(output: Path, name: str, found: dict[str, Any]) -> None:
    """Write the page about the settings tried on the file `name`. It describes clean data."""
    _write(output, render_choice(name, found), private=True)


def render(data: PageData, about: About = NOTHING_SAID, outlines: Path | None = None) -> str:
    """Return the page about a release as HTML."""
    main, audit, points, shown = data.main, data.main.audit, method_points(data), map_data(data)
    return template("page.html", autoescape=True).render(
        _frame("day.js", "shared.js"), private=data.clean is not None, data=data, main=main, m=main.manifest,
        audit=audit, utility=_utility(data, utility_measures(data) or {}),
        points={point.name: point for point in points},
        labels=texts, texts=TEXTS, charts=charts_of(data), map=shown, map_json=embedded(shown), about=about,
        decision=decision(main), city=city(data, outlines), confusion=confusion(data),
    )  # fmt: skip


def charts_of(data: PageData) -> dict[str, list[Chart]]:
    """Return the charts of each section."""
    audit = data.main.audit
    return {
        "verdict": [verdict_chart(audit)] if audit else [],
        "persons": [persons_chart(audit.persons)] if audit and audit.persons else [],
        "plausibility": plausibility_charts(data),
        "utility": utility_charts(data),
        "tradeoff": tradeoff_charts(method_points(data)),
    }


def render_choice(name: str, found: dict[str, Any]) -> str:
    """Return the page about settings as HTML."""
    known, moves = controls(found), found["controls_on_moves"]
    shown = [{"name": control_name(one), "value": v, "moves": float(np.mean(moves[one]))} for one, v in known.items()]
    return template("choice.html", autoescape=True).render(
        _frame("shared.js"), private=True, name=name, found=found, best=found["recommended"] or found["nearest"],
        controls=shown, clean=known[CLEAN], floor=without(found), warnings=warnings(found),
        arguments=arguments(found), c=choice_chart(found),
        regions=texts.regions_text(found["regions"], "tried on") if "regions" in found else "",
    )  # fmt: skip


def _check_private(release: Path, private: Path | None, with_clean: bool, output: Path | None) -> None:
    """Refuse a page with clean data that has no private folder, and other options that contradict each other."""
    if with_clean and private is None:
        raise InputError(
            f"{option('with_clean')} needs {option('private', 'DIR')}, the private folder that protect wrote next to "
            "the release"
        )
    if private is not None and not with_clean:
        raise InputError(
            f"{option('private')} is for a page with clean data; add {option('with_clean')}, or leave "
            f"{option('private')} out"
        )
    if is_file(release) and with_clean:
        raise InputError(f"{option('with_clean')}: {release} is a file; only a release of protect has a private folder")
    if is_file(release) and output is None:
        raise InputError(
            f"{release} is a file, so the page has no folder; name the page with {option('output', 'page.html')}"
        )


def _check_place(
    output: Path, release: Path, compare: Sequence[Path], audits: Sequence[Path], with_clean: bool, page: str = PAGE
) -> None:
    """Refuse a place where clean data would enter a release, or a file that verify does not know."""
    place = output.resolve()
    inside = [r for r in (release, *compare) if place.is_relative_to(r.resolve())]
    if inside and with_clean:
        raise InputError(
            f"{output} lies inside the release {inside[0]} and would hold clean data; choose another place"
        )
    if any(place == r.resolve() for r in (release, *compare, *audits)):
        raise InputError(f"{option('output', output)} would overwrite what the page is about; choose another name")
    if inside and place != inside[0].resolve() / page:
        raise InputError(f"{output} lies inside the release {inside[0]}; there the page must be called {page}")
    if not output.parent.is_dir():
        raise InputError(f"{option('output', output)}: the folder {output.parent} does not exist; create it first")
    if output.is_dir():
        raise InputError(f"{option('output', output)} is a folder; give the name of a file")


def _write(path: Path, text: str, private: bool) -> None:
    remove_partial(path.parent, escape(path.name))
    try:
        with replacing(path, mode=0o600 if private else 0o644) as out:
            out.write(text.encode("utf-8", "replace"))
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise InputError(f"{path} cannot be written ({reason}); choose another place with {option('output')}") from None


def _frame(*scripts: str) -> dict[str, Any]:
    """What both pages hold: style, script, and the policy that allows this script and nothing else."""
    script = "".join(asset(name) for name in scripts)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    fetch = f"default-src 'none'; script-src 'sha256-{allowed}'; style-src 'unsafe-inline'; img-src data:"
    return {
        "mark": PRIVATE_MARK, "version": __version__, "css": Markup(asset("style.css")), "script": Markup(script),
        "policy": f"{fetch}; base-uri 'none'; form-action 'none'", "symbols": symbols(),
    }  # fmt: skip


def _utility(data: PageData, found: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """The measures of utility, each with the share that survives in percent."""
    out = []
    for measure in data.main.utility_measures:
        if (value := found.get(measure.group, {}).get(measure.key)) is not None:
            kept = min(max(1 - abs(value - measure.unchanged), 0.0), 1.0)
            out.append({"measure": measure, "value": f"{value:.3f}", "kept": f"{100 * kept:.1f}"})
    return out


DPIA = "dpia.html"


def render_dpia(release: Path, view: ReleaseView, about: About) -> str:
    """Return the page as HTML; refuse a release whose audit does not say anything about people."""
    audit: Mapping[str, Any] = view.manifest.get("audit") or {}
    if "persons" not in audit:
        raise InputError(f"{release} has no audit of persons, and this page reports one; run ghostpoi audit first")
    persons = audit["persons"] or {}
    every = person_rows(persons)
    shown = [row for row in every if row.control is not None or not persons["control"]]
    seal, identity = seal_of(release), settings_of(view.manifest).identity
    keeps = identity.pseudonyms == "keep" and identity.times == "keep"
    return template("dpia.html", autoescape=True).render(
        version=__version__, about=about, main=view, m=view.manifest, audit=view.audit, texts=TEXTS["dpia"],
        status=TEXTS["dpia"]["personal" if keeps or _singled_out(shown) else "not_shown"],
        conditions=TEXTS["conditions"], rows=shown, left_out=[row.label for row in every if row not in shown],
        place_km=persons.get("place_km"), control=persons.get("control"),
        limits=limits_of(audit.get("limits")), seal=seal, series="series" in view.manifest,
    )  # fmt: skip


def _singled_out(rows: Sequence[PersonRow]) -> bool:
    """Whether some known check-ins single out more people than they would of those who are not in the release."""
    limited = (row for row in rows if row.limit == PERSONS and row.release)
    return any(row.release["low"] > (row.control or {}).get("high", 0) for row in limited if row.release)
