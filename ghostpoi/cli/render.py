"""Print results for people."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from ghostpoi.publish.verify import Check


def inspection(console: Console, name: str, summary: dict[str, Any]) -> None:
    """Print the summary of one file."""
    f = summary
    say = partial(console.print, markup=False, emoji=False)  # file and column names are not markup
    say(name.encode("utf-8", "replace").decode(), style="bold")  # a file name may not be valid text
    say(
        f"{f['checkins']:,} check-ins of {f['users']:,} users at {f['pois']:,} venues in {f['categories']:,} "
        f"categories, {f['time']['first'][:10]} to {f['time']['last'][:10]}"
    )
    if f["duplicates"]:
        say(f"note: {f['duplicates']:,} rows repeat the user, venue and time of another row; they are kept and counted")
    if f["pois_with_several_positions"]:
        say(f"note: {f['pois_with_several_positions']:,} venues have several positions; the earliest one is used")

    filters = _table("filter", "rows before", "rows after", "lost", "drops")
    for step in f["filters"]:
        before, after = step["rows_before"], step["rows_after"]
        filters.add_row(step["step"], f"{before:,}", f"{after:,}", f"{1 - after / before:.1%}", step["why"])
    say(filters)
    after = f["after_filters"]
    say(
        f"after the first two filters: {after['checkins']:,} check-ins, {after['users']:,} users, "
        f"{after['pois']:,} venues"
    )

    parts = _table("part", "sessions", "positions")
    for part in ("train", "val", "test"):
        parts.add_row(part, f"{f['sessions'][part]:,}", f"{f['positions'][part]:,}")
    say(parts)
    length, sets, speed = f["session_length"], f["candidates"], f["speed"]
    say(
        f"session length: mean {length['mean']:.1f}, median {length['median']:g}, "
        f"95% up to {length['p95']:g}, longest {length['max']:,}"
    )
    say(
        f"candidates: {sets['coverage']:.1%} of training positions have one; {sets['mean_size']:.2f} per venue on "
        f"average; {sets['widened']:.1%} of venues need a wider radius, {sets['empty']:.1%} have none "
        f"(category: {sets['category_field']}, min_candidates: {sets['min_candidates']})"
    )
    say(f"speed: {speed['share_over']:.1%} of the clean steps inside sessions exceed {speed['limit_kmh']:g} km/h")


def released(console: Console, release: Path, private: Path, manifest: dict[str, Any]) -> None:
    """Print the result of `protect`."""
    rows, p = manifest["rows"], manifest["plausibility"]
    console.print(f"[bold]{_path(release)}[/]: {manifest['data']['rows']:,} rows released with {manifest['method']}")
    groups = _table("rows", "all", "substituted", "no candidate", "kept for speed", "kept by method")
    for name in ("in_sessions", "outside_sessions"):
        g = rows[name]
        keys = ("rows", "substituted", "no_candidate", "kept_by_speed", "kept_by_method")
        groups.add_row(name.replace("_", " "), *(f"{g[key]:,}" for key in keys))
    console.print(groups)
    if rows["withheld"]:
        console.print(f"{rows['withheld']:,} rows without a candidate were withheld")
    console.print(
        f"{p['substitution_rate']:.1%} of rows substituted; category match {p['category_match']:.3f}; "
        f"{p['beyond_1km']:.1%} of substitutes beyond 1 km; displacement {p['mean_km']:.2f} km on average, "
        f"95% within {p['p95_km']:.2f} km"
    )
    console.print(f"private files (seed, pairs, models; never publish them): {_path(private)}")


def estimate(console: Console, guess: dict[str, Any]) -> None:
    """Print the estimate of `protect --dry-run`."""
    f = guess
    console.print(
        f"about {f['seconds']:,.0f} s: {f['epochs']} epochs of {f['seconds_per_epoch']:.1f} s and "
        f"{f['rounds']} rounds of scoring of {f['seconds_per_round']:.1f} s"
    )
    console.print(f"memory about {f['peak_bytes'] / 1e9:.1f} GB")
    console.print(
        f"substitutes up to {f['substitution_rate']:.1%} of {f['rows']:,} rows; "
        f"{f['substitution_rate_in_sessions']:.1%} of the {f['rows_in_sessions']:,} in sessions"
    )


def verification(console: Console, checks: "list[Check]") -> None:
    """Print one line per check."""
    for check in checks:
        mark = "[green]pass[/]" if check.passed else "[bold red]FAIL[/]"
        console.print(f"{mark}  {check.name:16} {escape(check.detail)}")


def plugins(console: Console) -> None:
    """Print all plug-ins with their summaries."""
    from ghostpoi.attack.adversaries import ADVERSARIES
    from ghostpoi.attack.victims import VICTIMS
    from ghostpoi.data.formats import FORMATS
    from ghostpoi.publish.methods import METHODS

    for title, summaries in {
        "methods": {name: method.summary for name, method in METHODS.items()},
        "adversaries": {name: f"{a.label}: {a.does}" for name, a in ADVERSARIES.items()},
        "victims": {name: victim.summary for name, victim in VICTIMS.items()},
        "formats": {name: format.summary for name, format in FORMATS.items()},
    }.items():
        console.print(f"[bold]{title}[/]")
        for name, summary in summaries.items():
            console.print(f"  {name:15} {escape(summary)}")


def _path(path: Path) -> str:
    """Return a path as valid text without markup."""
    return escape(str(path).encode("utf-8", "replace").decode())


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="left" if column in (columns[0], "drops") else "right")
    return table
