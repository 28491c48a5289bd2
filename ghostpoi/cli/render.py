"""Results as tables that a person reads in a terminal."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from ghostpoi.publish.verify import Line


def inspection(console: Console, name: str, figures: dict[str, Any]) -> None:
    """The summary of one file."""
    f = figures
    say = partial(console.print, markup=False, emoji=False)  # names of files and columns are no markup
    say(name.encode("utf-8", "replace").decode(), style="bold")  # a file's name need not be valid text
    say(
        f"{f['checkins']:,} check-ins of {f['users']:,} users at {f['pois']:,} POIs in {f['categories']:,} categories, "
        f"{f['time']['first'][:10]} to {f['time']['last'][:10]}"
    )
    if f["duplicates"]:
        say(f"note: {f['duplicates']:,} rows repeat the user, POI and time of another; they are kept and counted")
    if f["pois_with_several_positions"]:
        say(f"note: {f['pois_with_several_positions']:,} POIs have several positions; the first in time counts")

    filters = _table("filter", "rows before", "rows after", "lost", "drops")
    for step in f["filters"]:
        before, after = step["rows_before"], step["rows_after"]
        filters.add_row(step["step"], f"{before:,}", f"{after:,}", f"{1 - after / before:.1%}", step["why"])
    say(filters)
    after = f["after_filters"]
    say(f"after the first two: {after['checkins']:,} check-ins, {after['users']:,} users, {after['pois']:,} POIs")

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
        f"candidates: {sets['coverage']:.1%} of training positions have one; {sets['mean_size']:.2f} per POI on "
        f"average; {sets['widened']:.1%} of POIs need a wider radius, {sets['empty']:.1%} have none "
        f"(category: {sets['category_field']}, min_candidates: {sets['min_candidates']})"
    )
    say(f"speed: {speed['share_over']:.1%} of the clean steps inside sessions are over {speed['limit_kmh']:g} km/h")


def released(console: Console, release: Path, private: Path, manifest: dict[str, Any]) -> None:
    """What protect did."""
    rows, p = manifest["rows"], manifest["plausibility"]
    console.print(f"[bold]{_path(release)}[/]: {manifest['data']['rows']:,} rows released by {manifest['method']}")
    groups = _table("rows", "all", "substituted", "no candidate", "kept for speed", "kept by method")
    for name in ("covered", "outside"):
        g = rows[name]
        keys = ("rows", "substituted", "no_candidate", "kept_by_speed", "kept_by_method")
        groups.add_row("in sessions" if name == "covered" else "outside", *(f"{g[key]:,}" for key in keys))
    console.print(groups)
    if rows["withheld"]:
        console.print(f"{rows['withheld']:,} rows without a candidate are withheld")
    console.print(
        f"substituted {p['substitution_rate']:.1%}, category match {p['category_match']:.3f}, {p['beyond_1km']:.1%} of "
        f"substitutes beyond 1 km, displacement mean {p['mean_km']:.2f} km, 95% within {p['p95_km']:.2f} km"
    )
    console.print(f"private files (seed, pairs, models), never to be released: {_path(private)}")


def estimate(console: Console, figures: dict[str, Any]) -> None:
    """What protect would take."""
    f = figures
    console.print(
        f"about {f['seconds']:,.0f} s: {f['epochs']} epochs of {f['seconds_per_epoch']:.1f} s and "
        f"{f['rounds']} rounds of scoring of {f['seconds_per_round']:.1f} s"
    )
    console.print(f"memory about {f['peak_bytes'] / 1e9:.1f} GB")
    console.print(
        f"substitutes up to {f['substitution_rate']:.1%} of {f['rows']:,} rows; "
        f"{f['covered_substitution_rate']:.1%} of the {f['covered_rows']:,} in sessions"
    )


def verification(console: Console, lines: "list[Line]") -> None:
    """One line a check."""
    for line in lines:
        mark = "[green]pass[/]" if line.passed else "[bold red]FAIL[/]"
        console.print(f"{mark}  {line.check:16} {escape(line.detail)}")


def _path(path: Path) -> str:
    """No markup, and valid text."""
    return escape(str(path).encode("utf-8", "replace").decode())


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="left" if column in (columns[0], "drops") else "right")
    return table
