"""Print results for people, in the words of output.toml.

Functions import rich themselves: commands import this file before they have a result. Everything that is printed passes
`printable` or `SafeConsole`: names from files may contain terminal escapes.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
import string
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ghostpoi.options import COPIES, command_line, in_shell, with_urls
from ghostpoi.plugins import missing
from ghostpoi.progress import LOG, Report, bar, logged
from ghostpoi.stores import url_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ghostpoi.api.door import Door

LEFT = ("column", "in the release", "why", "chosen by", "drops", "status", "from", "to", "place")  # columns of text
OPTIONAL = re.compile(r"\[\[(.*?)\]\]")  # a part of a text that is left out if it lacks a value
BRACES = str.maketrans({"{": "{{", "}": "}}"})
TIMES = {
    "minute": "the beginning of the minute", "hour": "the beginning of the hour",
    "part-of-day": "the beginning of the quarter of the day", "shift": "moved by weeks, and cut to the hour",
}  # fmt: skip
MANY = 1 / 3  # of the rows draw their clean venue: worth a note


def printable(text: object) -> str:
    """Show control characters, including line ends, as escapes such as \\x1b."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


class JsonLines(logging.Formatter):
    """Writes a record of the log as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        more = {name: getattr(record, name) for name in ("step", "seconds", "code") if hasattr(record, name)}
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": when, "level": record.levelname.lower(), "message": record.getMessage()} | more)


class _Stderr(logging.Handler):
    """Writes to what is stderr at that time."""

    def emit(self, record: logging.LogRecord) -> None:
        print(printable(self.format(record)), file=sys.stderr)


def log_to_stderr(verbose: bool, as_json: bool) -> None:
    """Let the log go to stderr, if it is asked for; only messages and failures without `verbose`."""
    handler = _Stderr()
    text = logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonLines() if as_json else text)
    LOG.handlers = [handler if verbose or as_json else logging.NullHandler()]
    LOG.setLevel(logging.INFO if verbose or as_json else logging.WARNING)
    LOG.propagate = False


def _as_json() -> bool:
    return any(isinstance(handler.formatter, JsonLines) for handler in LOG.handlers)


def say(text: str) -> None:
    """Print a message on stderr, or write it to the log if all of stderr is one."""
    line = printable(in_shell(text))
    if _as_json():
        level = logging.WARNING if "warning: " in line else logging.INFO
        LOG.log(level, "%s", line.removeprefix("warning: "))
    else:
        print(line, file=sys.stderr)


def failed(sentence: str, code: int, may_quote: bool) -> None:
    """Print why a command failed. A log does not hold the sentence if it may quote a value of the file."""
    if _as_json():
        hidden = "ghostpoi: the input was refused; the sentence that says why may quote it, so run the command without "
        text = f"{hidden}--log-format json to see it" if may_quote else printable(in_shell(sentence))
        LOG.error("%s", text, extra={"code": code})
    else:
        say(sentence)


def tell(text: object) -> None:
    """Print a line on stdout."""
    print(printable(with_urls(str(text))))


def console() -> Console:
    """Return a console for stdout, 120 columns wide if stdout is not a terminal. It shows control characters."""
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        def render(self, *arguments: Any, **more: Any) -> Iterator[Segment]:
            for segment in super().render(*arguments, **more):
                text = segment.text
                if not segment.control and not text.isprintable():
                    text = "\n".join(map(printable, text.split("\n")))
                yield Segment(text, segment.style, segment.control)

    return SafeConsole(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 120)


def show(result: dict[str, Any], as_json: bool, render: Callable[..., None], *names: object) -> None:
    """Print a result on stdout: as one JSON object, or with a function of `render`."""
    if COPIES in (text := json.dumps(result)):
        result = json.loads(with_urls(text))
    if as_json:
        text = json.dumps(result, indent=2, ensure_ascii=False)
        print("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))
    else:
        render(console(), *((url_of(name) or name) if isinstance(name, Path) else name for name in names), result)


def door() -> Door:
    """Return how a step speaks to somebody at a terminal."""
    from ghostpoi.api.door import Door

    return Door(
        say, logged_bar, in_shell, lambda step, source, more: command_line(step, [source, "-o", "RELEASE"], more)
    )


@contextmanager
def logged_bar(total: float) -> Iterator[Report]:
    """Show a bar, and log what it shows."""
    with bar(total) as report:
        yield logged(report)


class _Absent(Exception):
    """A text names a value that is missing or None."""


class _Pattern(string.Formatter):
    """Fill values into a text, so that they cannot be taken for styles or control a terminal."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if (value := kwargs.get(str(key))) is None:
            raise _Absent
        return value

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion == "i":
            return "" if value else None
        return value or None if conversion == "n" else value

    def format_field(self, value: Any, format_spec: str) -> str:
        from rich.markup import escape

        if value is None:
            raise _Absent
        text = _spread(value) if format_spec == "spread" else format(value, format_spec)
        return escape(printable(text.encode("utf-8", "replace").decode()))


def _filled(pattern: str, values: Mapping[str, Any]) -> str:
    """Return a text with its values; nothing if it lacks one outside of double brackets."""
    whole = OPTIONAL.sub(lambda part: _filled(part[1], values).translate(BRACES), pattern)
    try:
        return _Pattern().vformat(whole, (), values)
    except _Absent:
        return ""


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _print(console: Console, name: str, values: Mapping[str, Any], **more: Any) -> None:
    """Print a text of output.toml. Tables stand on lines of their own."""
    from rich.table import Table

    known = {**values, **more}
    for line in _words()["texts"][name].splitlines():
        if isinstance(table := known.get(line[1:-1]), Table):
            console.print(table)
        elif text := _filled(line.removeprefix(">"), known):
            console.print(text, emoji=False, soft_wrap=line.startswith(">"))


def _table(name: str, rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return a table of output.toml with these rows."""
    from rich.table import Table

    heads, cells = (line.split(" | ") for line in _words()["tables"][name])
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        table.add_column(head, justify="left" if head in (heads[0], *LEFT) else "right")
    for row in rows:
        table.add_row(*(_filled(cell, row) for cell in cells))
    return table


def _spread(value: Mapping[str, Any]) -> str:
    return f"{value['mean']:.4f}" + (f" ± {value['std']:.4f}" if len(value["seeds"]) > 1 else "")


def inspection(console: Console, file: Path, summary: dict[str, Any]) -> None:
    """Print the summary of one file."""
    f, method, sets = summary, summary["method"], summary["candidates"]
    _print(console, "file", f, file=str(file), bare=not f["categories"])
    if regions := f.get("regions"):
        table = _table("regions", regions["largest"])
        _print(console, "regions", regions, s="s" if regions["count"] > 1 else "", table=table)
    columns, lacking = f.get("columns", {}), f.get("missing", {"rows": 0, "first": ""})
    parts = [{"part": p, **{name: f[name][p] for name in ("sessions", "positions")}} for p in ("train", "val", "test")]
    _print(
        console, "inspection", f,
        columns=_table("columns", [{"field": name} | by for name, by in columns.items()]),
        clusters=None if "poi" in columns else "no cluster", first=lacking["first"],
        one=lacking["first"] if lacking["rows"] == 1 else None, many=lacking["rows"] if lacking["rows"] > 1 else None,
        filters=_table("filters", [s | {"lost": 1 - s["rows_after"] / s["rows_before"]} for s in f["filters"]]),
        parts=_table("parts", parts), own_sets=method["own_sets"], sets=None if method["own_sets"] else sets,
        category=f"category: {sets['category_field']}" if sets["category_field"] else "no category",
    )  # fmt: skip


def audit_plan(console: Console, release: Path, found: dict[str, Any]) -> None:
    """Print what an audit would run."""
    from ghostpoi.reports.texts import victim_label

    names = {group: ", ".join(map(victim_label, found[group])) for group in ("adversaries", "controls")}
    _print(console, "audit_plan", found | names, release=str(release), count=len(found["adversaries"]),
           models=", ".join(found["victims"]))  # fmt: skip


def released(
    console: Console, release: Path, private: Path, key: str, file: Sequence[str], manifest: dict[str, Any]
) -> None:  # fmt: skip
    """Print the result of `protect`; `file` are the words that name the check-ins."""
    from ghostpoi.release.verify import UNIT

    rows, p, settings = manifest["rows"], manifest["plausibility"], manifest["settings"]
    ids, times = (settings["identity"][name] for name in ("pseudonyms", "times"))
    status = "unless" if times in ("part-of-day", "shift") else "times"
    elsewhere = str(private) != f"{release}.private"  # where commands do not look for it
    _print(console, f"personal_{ids if ids in ('keep', 'file') else status}", manifest, preset=manifest.get("preset"))
    left, own, shown = rows["left_genuine"], rows.get("drawn_own"), manifest["data"]["rows"]
    clean = (left["rows"] + own["rows"]) / max(1, shown) if own else 0.0
    parts = ("in_sessions", "outside_sessions") if p else ()  # not stated if few rows are new
    _print(
        console, "outcomes" if p else "few_new", manifest, release=str(release), shown=shown, left=left, own=own,
        clean=clean, table=_table("outcomes", (rows[name] | {"group": name.replace("_", " ")} for name in parts)),
        reach=settings.get("method", {}).get("reach_km") if clean > MANY else None,
    )  # fmt: skip
    _print(
        console, "released", manifest, columns=_table("fates", _fates(manifest)),
        ids=manifest.get("identity", {}).get("ids"),
        unit=UNIT.get(ids), times=TIMES.get(times), p=p,
        category=p and _category_kept(p), key=key, private=str(private), file=shlex.join(file),
        folder=shlex.join([str(release), *(["--private", str(private)] if elsewhere else [])]),
        hidden={"rows": 0, "venues": 0, "borrowed": 0} | rows["hidden"],
    )  # fmt: skip


def _fates(manifest: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield what became of each column, and why."""
    columns, identity = manifest["columns"], manifest["settings"]["identity"]
    fields, changed, why = columns["fields"], columns["changed_with_the_venue"], columns["why"]
    hidden, times = identity["pseudonyms"] != "keep", identity["times"]
    if "user" in fields:
        how = "random ids" if hidden else "the user id, on which the release relies"
        yield {"column": fields["user"], "fate": "changed" if hidden else "kept", "why": how}
    for name in (fields[field] for field in ("time", "date", "timezone") if field in fields):
        if name not in changed:
            how = "the time, on which the release relies" if times == "keep" else TIMES[times]
            yield {"column": name, "fate": "kept" if times == "keep" else "changed", "why": how}
    yield from ({"column": name, "fate": "changed", "why": "follows from the venue"} for name in changed)
    listed = [name for name in columns["kept"] if name != fields.get("timezone")]
    yield from ({"column": name, "fate": "kept", "why": why.get(name, "")} for name in listed)
    yield from ({"column": name, "fate": "dropped", "why": "left out on request"} for name in columns["dropped"])


def estimate(console: Console, guess: dict[str, Any]) -> None:
    """Print the estimate of `protect --dry-run`."""
    steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in guess["steps"].items())
    clean = guess["left_genuine"] + guess["drawn_own"]
    _print(console, "estimate", guess, parts=steps, gigabytes=guess["peak_bytes"] / 1e9, clean=clean)


def verification(console: Console, found: dict[str, Any]) -> None:
    """Print one line per check."""
    for check in found["checks"]:
        _print(console, "passed" if check["passed"] else "failed", check)


def audited(console: Console, release: Path, found: dict[str, Any]) -> None:
    """Print an audit: the strongest adversary first, every measure next to its controls."""
    from ghostpoi.audits.verdicts import LEAKS
    from ghostpoi.reports.audit_view import AuditView, person_rows
    from ghostpoi.reports.texts import victim_label

    view, top = AuditView.of(found), found["strongest"]
    victims = [
        measures | {
            "victim": victim_label(name), "recovered": measures.get("restored", {}).get("mean"),
            "lost": measures["accuracy_lost"]["mean"],
        }
        for name, measures in ({"clean sessions": found["clean"]} | found["adversaries"] | found["controls"]).items()
    ]  # fmt: skip
    about, persons = person_rows(found["persons"]), found["persons"] or {}
    near = [{"where": where} | dict(zip((*LEAKS, "clean"), shares, strict=True)) for where, shares in view.near]
    _print(
        console, "audited", found, release=str(release), headline=view.headline, strongest=victim_label(top),
        top=(found["adversaries"] | found["controls"])[top], victim=view.victim, regions=view.regions or None,
        **{leak: f"{one.verdict}: {one.sentence()}" for leak, one in view.gives_away.items()},
        table=_table("victims", victims), one_seed=view.seeds == 1, seeds=view.seeds if view.seeds > 1 else None,
        leaked=view.leaked, near=_table("near", near),
        persons=_table("persons", [row.cells for row in about]) if about else None,
        place_km=persons.get("place_km") if about else None, control=persons.get("control"),
        uncontrolled=not persons.get("control"), bound=view.bound_text or None,
        limits="; ".join(f"{one.name}, at most {one.limit:g}: {one.verdict}" for one in view.limits) or None,
    )  # fmt: skip
    p, popularity, rows = found["plausibility"], found["utility"]["popularity"], found["rows"]
    kept, survival = rows["kept_genuine"], [f"{name} {_spread(v)}" for name, v in found["gaps"]["surv"].items()]
    share = kept / max(1, rows["audited"] + kept)
    _print(
        console, "measures", found, p=p, u=found["utility"], category=_category_kept(p), kept=kept,
        survival=", ".join(survival) or None,
        category_js=None if p["category_match"] is None else popularity["category_js"],
        one_kept=share if kept == 1 else None, many_kept=share if kept > 1 else None,
        natural_clean=(found["naturalness"] or {}).get("clean"),  # a stored audit has none
    )  # fmt: skip


def person(console: Console, found: dict[str, Any]) -> None:
    """Print what a release says about a person."""
    known = [{"known": name.replace("part", "part of day").replace("_", " and ")} | {f"k{k}": x for k, x in by.items()}
             for name, by in found["singled_out"].items()]  # fmt: skip
    _print(console, "person", found, table=_table("known", known))


def chosen(console: Console, page: Path, found: dict[str, Any]) -> None:
    """Print the settings that `choose` tried, and the command of the recommended one."""
    from ghostpoi.audits.controls import CLEAN, FLOORS, LEAK_ONLY, LEAK_STAY, MARKOV
    from ghostpoi.reports.choice_view import warnings
    from ghostpoi.reports.texts import regions_text, victim_label

    best = found["recommended"]
    means = {name: sum(v) / len(v) if isinstance(v, list) else v for name, v in found["controls"].items()}
    leaked, floors = (
        ", ".join(f"{victim_label(name)} {means[name]:.3f}" for name in names)
        for names in ((LEAK_ONLY, LEAK_STAY), (*FLOORS, MARKOV))
    )
    trials = [
        trial | {
            "full": f"{trial['given_away']:.3f}" if trial["complete"] else "",
            "mark": "recommended" if trial is best else "yes" if trial["frontier"] else "",
        }
        for trial in found["tried"]
    ]  # fmt: skip
    rows = [one | {"note": "chosen" if one["times"] == found["times"] else one["refused"] and "refused"}
            for one in found["tried_times"]]  # fmt: skip
    _print(
        console, "chosen", found, table=_table("trials", trials), of_times=_table("times", rows), clean=means[CLEAN],
        leaked=leaked, floors=floors,
        regions=regions_text(found["regions"], "tried on") if "regions" in found else None,
        nearest=None if best else found["nearest"], missed=None if best else " and ".join(found["nearest"]["missed"]),
        worst=best and best["accuracy"][best["strongest"]], page=str(page), notes=" ".join(warnings(found)) or None,
    )  # fmt: skip


def series(console: Console, folder: Path, found: dict[str, Any]) -> None:
    """Print the releases of a series."""
    days = ("first", "last")
    releases = [
        one | {name: f"{datetime.fromtimestamp(one[name], UTC):%Y-%m-%d}" for name in days} for one in found["releases"]
    ]
    _print(console, "series", found, folder=str(folder), table=_table("releases", releases))


def forgotten(console: Console, folder: Path, found: dict[str, Any]) -> None:
    """Print what a series has forgotten, and where the person still is."""
    _print(console, "forgotten", found, folder=str(folder))
    for release in found["releases"]:
        _print(console, "still_there", release)


def plugins(console: Console) -> None:
    """Print all plug-ins with their summaries."""
    from ghostpoi.attack.adversaries import ADVERSARIES
    from ghostpoi.draw.methods import METHODS
    from ghostpoi.exports import EXPORTS
    from ghostpoi.formats import FORMATS

    try:
        from ghostpoi.attack.victims import VICTIMS

        victims = {name: victim.summary for name, victim in VICTIMS.items()}
    except ModuleNotFoundError as e:  # they are models themselves, so listing them needs torch
        if not (sentence := missing(e.name or "")):
            raise
        victims = {"(not listed)": sentence}
    for title, summaries in {
        "methods": {name: method.summary for name, method in METHODS.items()},
        "adversaries": {name: f"{a.label}: {a.does}" for name, a in ADVERSARIES.items()},
        "victims": victims,
        "formats": {name: format.summary for name, format in FORMATS.items()},
        "exports": {name: export.summary for name, export in EXPORTS.items()},
    }.items():
        _print(console, "plugins", {"title": title})
        for name, summary in summaries.items():
            _print(console, "plugin", {"name": name, "summary": summary})


def _category_kept(plausibility: dict[str, Any]) -> str:
    match = plausibility["category_match"]
    return "no category" if match is None else f"category match {match:.3f}"
