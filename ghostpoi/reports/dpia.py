"""A page for the data protection officer: two printed sides about a release, from its manifest and audit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ghostpoi import __version__
from ghostpoi.audits.limits import PERSONS, limits_of
from ghostpoi.errors import InputError
from ghostpoi.release.manifest import seal_of, settings_of
from ghostpoi.reports.persons_view import PersonRow, person_rows
from ghostpoi.reports.release_view import About, ReleaseView
from ghostpoi.reports.texts import TEXTS, template

DPIA = "dpia.html"


def render_dpia(release: Path, view: ReleaseView, about: About) -> str:
    """Return the page as HTML; refuse a release whose audit does not say anything about people."""
    audit: Mapping[str, Any] = view.manifest.get("audit") or {}
    if "persons" not in audit:
        raise InputError(f"{release} has no audit of persons, which this page states; run ghostpoi audit first")
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
        threshold=limits_of(audit.get("limits")).get(PERSONS), seal=seal, series="series" in view.manifest,
    )  # fmt: skip


def _singled_out(rows: Sequence[PersonRow]) -> bool:
    """Whether some known check-ins single out more people than they would of those who are not in the release."""
    limited = [row for row in rows if row.limited and row.release]
    return any(row.release["low"] > (row.control or {}).get("high", 0) for row in limited if row.release)
