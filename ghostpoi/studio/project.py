"""What somebody decided about a file. It is stored in the private folder next to the file, and found there again."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ghostpoi import __version__
from ghostpoi.draw.publication import PRESETS
from ghostpoi.errors import InputError
from ghostpoi.files import make_private_folder
from ghostpoi.options import command_line
from ghostpoi.settings import settings_file
from ghostpoi.studio.work import read, store

READING = ("timezone", "decimal", "time_format", "missing", "columns", "cluster_points", "order")
FIELDS = {
    "user": "the person", "poi": "the venue", "category": "the category", "lat": "the latitude",
    "lon": "the longitude", "time": "the time", "date": "the day, apart from the time", "timezone": "the time zone",
    "point": "the position, as WKT", "category_group": "the group of the category",
}  # fmt: skip
LIMITS = {"accuracy_no_leak": 0.02, "accuracy_with_leak": 0.05, "persons": 0.2}  # what is suggested
DIALS = {"size": (8, 128, 8, 48), "reach_km": (1, 40, 1, 40)}  # of crowds: least, most, step, default
CHOICES = {
    "purpose": ("", *PRESETS), "pseudonyms": ("", "keep", "file", "week", "session"),
    "times": ("", "keep", "minute", "hour", "part-of-day", "shift"), "category": ("any", "group", "exact"),
}  # fmt: skip
STORED = "decisions.json"
NAME = re.compile(r"[\w][\w .-]{0,80}")


@dataclass(frozen=True)
class Project:
    """All decisions. An empty text stands for the default."""

    file: str
    map: dict[str, str] = field(default_factory=dict)
    keep: list[str] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)
    reading: dict[str, str] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=lambda: dict(LIMITS))
    purpose: str = "public"
    pseudonyms: str = ""
    times: str = ""
    category: str = "any"
    size: int = 0  # 0: as the method, or the preset, has it
    reach_km: int = 0
    seeds: int = 1
    release: str = ""
    title: str = ""
    publisher: str = ""
    license: str = ""

    @property
    def path(self) -> Path:
        return Path(self.file)

    @property
    def folder(self) -> Path:
        """The private folder of the studio's work on this file."""
        return self.path.with_name(f"{self.path.name}.private") / "studio"

    @property
    def out(self) -> Path:
        """The release folder."""
        return self.path.with_name(self.release or f"{self.path.name.split('.')[0]}-release")

    @property
    def private(self) -> Path:
        return self.out.with_name(f"{self.out.name}.private")

    @staticmethod
    def of(path: Path) -> "Project":
        """Return what is stored about a file; otherwise begin."""
        new = Project(str(path))
        try:
            return replace(new, **{key: value for key, value in read(new.folder / STORED).items() if key != "file"})
        except TypeError:  # of another version
            return new

    def save(self) -> None:
        """Store the decisions."""
        make_private_folder(self.folder.parent)
        make_private_folder(self.folder)
        store(self.folder / STORED, asdict(self))

    def toml(self, *sections: str) -> str:
        """Return the settings file for --config of every command; with `sections`, these alone."""
        identity = {name: getattr(self, name) for name in ("pseudonyms", "times") if getattr(self, name)}
        method: dict[str, Any] = {name: getattr(self, name) for name in DIALS if getattr(self, name)}
        method |= {"category": self.category} if self.category != "any" else {}
        given: dict[str, Any] = {"columns": self.map, "limits": self.limits, "identity": identity, "method": method}
        return settings_file(self.path.name, {name: given[name] for name in sections or given})

    @property
    def dials(self) -> dict[str, int]:
        """The dials as they stand: what was chosen, what the recipient asks for, or the default."""
        asked = PRESETS.get(self.purpose, {})
        return {name: getattr(self, name) or int(asked.get(f"method.{name}", DIALS[name][3])) for name in DIALS}

    @property
    def reads(self) -> dict[str, str]:
        """How to read the file, as far as it does not say so itself."""
        return {name: value for name, value in self.reading.items() if value}

    def request(self, kind: str, *sections: str, **more: Any) -> dict[str, Any]:
        """Return what a child process is asked for, with these sections of the settings file."""
        changes = {"keep": self.keep, "drop": self.drop, "purpose": self.purpose or None}
        return {
            "kind": kind, "file": self.file, "map": self.map, "changes": changes, "reading": self.reads,
            "settings": self.toml(*sections), "version": __version__, **more,
        }  # fmt: skip

    @property
    def about(self) -> dict[str, str]:
        return {"title": self.title, "publisher": self.publisher, "license": self.license}

    @property
    def audit(self) -> dict[str, Any]:
        """How thorough the audit is."""
        return {"seeds": self.seeds, "naturalness": False}

    def commands(self) -> list[str]:
        """Return the commands that do the same in a terminal, in the folder of the file."""
        file, out, config = self.path.name, self.out.name, {"config": f"{self.path.name}.toml"}
        changes = {"purpose": self.purpose or None, "keep": self.keep, "drop": self.drop}
        about = {key: value or None for key, value in self.about.items()}
        return [
            command_line("protect", [file], {"output": out} | config | changes | self.reads),
            command_line("verify", [out], {"against": file} | config | self.reads),
            command_line("audit", [file, out], config | self.reads | self.audit),
            command_line("report", [out], about),
            command_line("report", [out], {"dpia": True} | about),
        ]  # fmt: skip

    def with_columns(self, form: Mapping[str, str], found: Mapping[str, str]) -> "Project":
        """Return the decisions about columns that a form holds; its fields are numbered as the columns are.

        `found` has the columns with what they were taken for. A form that agrees states nothing new.
        """
        taken, keep, drop = dict[str, str](), list[str](), list[str]()
        for number, name in enumerate(found):
            chosen, fate = form.get(f"field-{number}", ""), form.get(f"fate-{number}", "")
            if chosen in FIELDS:
                if chosen in taken:
                    raise InputError(f"{taken[chosen]} and {name} cannot both be {FIELDS[chosen]}; change one of them")
                taken[chosen] = name
            elif fate in ("keep", "drop"):
                (keep if fate == "keep" else drop).append(name)
        reading = {name: form[name].strip() for name in READING if form.get(name, "").strip()}
        if taken == {field: name for name, field in found.items() if field in FIELDS}:
            taken = self.map
        return replace(self, map=taken, keep=keep, drop=drop, reading=reading)

    def with_settings(self, form: Mapping[str, str]) -> "Project":
        """Return the dials and limits that a form holds; refuse values that no dial has."""
        found: dict[str, Any] = {}
        for name, known in CHOICES.items():
            found[name] = form.get(name, "")
            if found[name] not in known:
                raise InputError(f"{found[name]!r} is none of {', '.join(filter(None, known))}")
        for name, (least, most, *_) in DIALS.items():
            text = form.get(name, "")
            if not (text.isdigit() and least <= int(text) <= most):
                raise InputError(f"{text!r} is not a number from {least} to {most}")
            found[name] = int(text)
        new = replace(self, purpose=found["purpose"], size=0, reach_km=0)
        for name in DIALS:  # one that nobody moved follows the recipient
            if found[name] in (new.dials[name], *([self.dials[name]] if new.purpose != self.purpose else [])):
                found[name] = 0
        limits = {name: _share(form[f"limit-{name}"]) for name in LIMITS if form.get(f"limit-{name}", "").strip()}
        return replace(self, **found, limits=limits)

    def with_release(self, form: Mapping[str, str]) -> "Project":
        """Return the name of the release and what the publisher says about it."""
        name = form.get("release", "").strip()
        if name and (not NAME.fullmatch(name) or name.endswith((".private", "."))):
            raise InputError(f"{name!r} cannot name the release; use letters, digits, blanks, points and hyphens")
        said: dict[str, Any] = {key: form.get(key, "").strip()[:200] for key in ("title", "publisher", "license")}
        return replace(self, release=name, seeds=3 if form.get("seeds") == "3" else 1, **said)


def _share(percent: str) -> float:
    """Return a share for the percentage that somebody wrote."""
    try:
        value = float(percent.replace(",", ".")) / 100
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{percent!r} is not a percentage; enter a number from 0 to 100")
    return round(value, 6)
