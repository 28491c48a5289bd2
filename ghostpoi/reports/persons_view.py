"""What an audit found about people, as rows: the test of a regulator, the figure, its control and the clean file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SINGLED_OUT, LINKED, INFERRED = "singling out", "linkability", "inference"
KNOWN = {  # what an outsider knows of each check-in -> how it is called
    "second": "the second", "minute": "the minute", "hour": "the hour", "day": "the day",
    "hour_place": "hour and place", "part_place": "part of day and place",
}  # fmt: skip
SHOWN_KNOWN = ("minute", "hour", "part_place")
POINTS = "4"  # known check-ins
TOPICS = {"health": "health", "worship": "worship", "nightlife": "nightlife", "other": "your list"}
Figure = Mapping[str, Any]


@dataclass(frozen=True)
class PersonRow:
    """One measure. A figure is None where too few people are concerned; the control, where it cannot be measured."""

    test: str
    label: str
    release: Figure | None
    control: Figure | None
    clean: Figure | None
    limited: bool = False  # the threshold of the settings file applies to it

    @property
    def cells(self) -> dict[str, str | None]:
        """The figures as texts."""
        spread = self.release and self.release.get("p95") is not None
        return {
            "test": self.test, "label": self.label, "release": percent(self.release), "interval": ends(self.release),
            "control": percent(self.control) or "-", "clean": percent(self.clean) or "-",
            "people": f"{self.release['median']:.0%} / {self.release['p95']:.0%}" if self.release and spread else "-",
        }  # fmt: skip


def percent(figure: Figure | None) -> str | None:
    """Return a share as a text."""
    return None if figure is None else f"{100 * figure['mean']:.3g}%"


def ends(figure: Figure | None) -> str | None:
    """Return the interval of a share as a text."""
    return None if figure is None else f"{100 * figure['low']:.3g} to {100 * figure['high']:.3g}%"


def person_rows(persons: Mapping[str, Any] | None) -> list[PersonRow]:
    """Return the rows of what an audit found; none if too few people are in the file or the audit is an older one."""
    return [row for row in _rows(persons) if row.release is not None] if persons else []


def _rows(persons: Mapping[str, Any]) -> Iterator[PersonRow]:
    for known in SHOWN_KNOWN:
        found = persons["unicity"].get(known, {}).get(POINTS, {})
        label = f"singled out by {POINTS} check-ins ({KNOWN[known]})"
        yield _row(SINGLED_OUT, label, found, known == "part_place")
    linked = persons.get("linkage", {})
    yield _row(LINKED, "sessions linked to the right person", linked.get("sessions", {}))
    for name, found in linked.items():
        if share := name.removeprefix("precision_at_").removeprefix("sessions"):
            yield _row(LINKED, f"right among the surest links, {share}% of all found", found)
    for name, label in (("exact", "home named exactly"), ("within_1km", "home named within 1 km")):
        yield _row(INFERRED, label, persons.get("home", {}).get(name, {}))
    for topic, found in persons.get("sensitive", {}).items():
        yield _row(INFERRED, f"named as visitors: {TOPICS.get(topic, topic)}", found)


def _row(test: str, label: str, found: Mapping[str, Any], limited: bool = False) -> PersonRow:
    control = found.get("control") or found.get("anybody")
    return PersonRow(test, label, found.get("release"), control, found.get("clean"), limited)
