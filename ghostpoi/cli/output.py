"""Print results for people. Functions import rich themselves: commands import this file before they have a result.

Everything that is printed passes `printable` or `SafeConsole`: names from files may contain terminal escapes.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ghostpoi.extras import missing
from ghostpoi.options import declared, in_shell

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ghostpoi.api.door import Door

LEFT = ("column", "chosen by", "drops", "status", "from", "to", "place")  # columns of text
MANY = 1 / 3  # of the rows draw their clean venue: worth a note


def printable(text: object) -> str:
    """Show control characters, including line ends, as escapes such as \\x1b."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def say(text: str) -> None:
    """Print a message on stderr."""
    print(printable(in_shell(text)), file=sys.stderr)


def tell(text: object) -> None:
    """Print a line on stdout."""
    print(printable(text))


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
    if as_json:
        text = json.dumps(result, indent=2, ensure_ascii=False)
        print("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))
    else:
        render(console(), *names, result)


def door() -> Door:
    """Return how a step speaks to somebody at a terminal."""
    from ghostpoi.api.door import Door
    from ghostpoi.progress import bar

    return Door(say, bar, in_shell, command_of)


def command_of(step: str, source: str, keywords: Mapping[str, Any]) -> str:
    """Return the command line of a step with these options."""
    flags = {one.keyword: one.flag for one in declared()[step].values()}
    words = ["ghostpoi", step, source, "-o", "RELEASE"]
    for name, value in keywords.items():
        many = [f"{key}={one}" for key, one in value.items()] if isinstance(value, Mapping) else value
        values = many if isinstance(many, list) else [many] if many is not None else []
        words += [word for one in values for word in (flags[name], str(one))]
    return shlex.join(words)


def inspection(console: Console, file: Path, summary: dict[str, Any]) -> None:
    """Print the summary of one file."""
    from rich.text import Text

    f = summary
    say = partial(console.print, markup=False, emoji=False)  # file and column names are not markup
    kinds = f"in {f['categories']:,} categories" if f["categories"] else "without categories"
    say(_valid(file), style="bold")
    say(
        f"{f['checkins']:,} check-ins of {f['users']:,} users at {f['pois']:,} venues "
        f"{kinds}, {f['time']['first'][:10]} to {f['time']['last'][:10]}"
    )
    if "regions" in f:
        _regions(say, f["regions"])
    columns = _table("field", "column", "chosen by")
    for field, by in f.get("columns", {}).items():
        columns.add_row(field, Text(by["column"]), Text(by["chosen_by"]))
    say(columns)
    if f.get("misnamed"):
        say(f"note: {f['misnamed']}")
    if f.get("missing", {}).get("rows"):
        count, first, nowhere = f["missing"]["rows"], f["missing"]["first"], "poi" not in f["columns"]
        if count == 1:
            say(f"note: 1 row lacks a value{' or lies in no cluster' * nowhere} ({first}) and is not described below")
        else:
            lack = f"lack a value{' or lie in no cluster' * nowhere}"
            say(f"note: {count:,} rows {lack} ({first}) and are not described below")
    if f["duplicates"]:
        say(f"note: {f['duplicates']:,} rows repeat the user, venue and time of another row; they are kept and counted")
    if f["pois_with_several_positions"]:
        say(f"note: {f['pois_with_several_positions']:,} venues have several positions; the earliest one is used")
    filters = _table("filter", "rows before", "rows after", "lost", "drops")
    for step in f["filters"]:
        before, after = step["rows_before"], step["rows_after"]
        filters.add_row(step["step"], f"{before:,}", f"{after:,}", f"{1 - after / before:.1%}", step["why"])
    say(filters)
    left = "{checkins:,} check-ins, {users:,} users, {pois:,} venues".format(**f["after_filters"])
    say(f"after the first two filters: {left}")
    parts = _table("part", "sessions", "positions")
    for part in ("train", "val", "test"):
        parts.add_row(part, f"{f['sessions'][part]:,}", f"{f['positions'][part]:,}")
    say(parts)
    length, sets, speed, method = f["session_length"], f["candidates"], f["speed"], f["method"]
    say(
        f"session length: mean {length['mean']:.1f}, median {length['median']:g}, "
        f"95% up to {length['p95']:g}, longest {length['max']:,}"
    )
    say(
        f"{method['coverage']:.1%} of rows can be substituted with {method['name']}: "
        f"{method['coverage_in_sessions']:.1%} in sessions, {method['coverage_outside_sessions']:.1%} outside; "
        f"such a row draws from {method['mean_size']:.1f} venues on average"
        f"{', its own included' if method['own_sets'] else ''} ({_category_from(sets)})"
    )
    if not method["own_sets"]:
        say(
            f"candidates: {sets['coverage']:.1%} of training positions have one; {sets['mean_size']:.2f} per venue on "
            f"average; {sets['widened']:.1%} of venues need a wider radius, {sets['empty']:.1%} have none "
            f"(min_candidates: {sets['min_candidates']})"
        )
    say(f"speed: {speed['share_over']:.1%} of the clean steps inside sessions exceed {speed['limit_kmh']:g} km/h")


def _regions(say: Callable[..., None], found: dict[str, Any]) -> None:
    """Print how many regions there are, and the largest."""
    from rich.text import Text

    rule = f"of the column {found['column']}" if "column" in found else f"more than {found['gap_km']:g} km apart"
    small, bare = found["smallest"], found["without_sessions"]
    say(
        f"{found['count']:,} region{'s' * (found['count'] > 1)} {rule}; the smallest has {small['rows']:,} check-ins "
        f"at {small['venues']:,} venues" + (f"; the filters leave no sessions in {bare:,}" if bare else "")
    )
    table = _table("largest regions", "check-ins", "venues")
    for region in found["largest"]:
        table.add_row(Text(region["name"]), f"{region['rows']:,}", f"{region['venues']:,}")
    say(table)


def released(console: Console, release: Path, private: Path, key: str, manifest: dict[str, Any]) -> None:
    """Print the result of `protect`."""
    from rich.markup import escape

    rows, p, shown = manifest["rows"], manifest["plausibility"], manifest["data"]["rows"]
    title = f"[bold]{escape(_valid(release))}[/]"
    if p is None:
        left = rows["left_genuine"]
        console.print(
            f"{title}: {shown:,} rows released with {manifest['method']}; {left['rows']:,} ({left['share']:.1%}) are "
            "left genuine; how many drew their own venue is not stated, since some rows were released before",
            soft_wrap=True,
        )
    else:
        _outcomes(console, title, manifest)
    if identity := manifest.get("identity"):
        kind = manifest["settings"]["identity"]["pseudonyms"]
        console.print(f"{identity['ids']:,} pseudonyms, one per user and {kind}; rows are ordered by time")
    if series := manifest.get("series"):
        console.print(f"release {series['number']} of its series; {series['repeated']:,} rows repeat earlier draws")
    if rows["withheld"]:
        console.print(f"{rows['withheld']:,} rows without a candidate were withheld")
    if p is not None:
        console.print(
            f"{p['substitution_rate']:.1%} of rows substituted; {_category_kept(p)}; "
            f"{p['beyond_1km']:.1%} of substitutes beyond 1 km; displacement {p['mean_km']:.2f} km on average, "
            f"95% within {p['p95_km']:.2f} km"
        )
    console.print(f"signed by key {key}")
    console.print(f"private files (seed, pairs, models; never publish them): {escape(_valid(private))}")


def _outcomes(console: Console, title: str, manifest: dict[str, Any]) -> None:
    """Print how many rows had which outcome."""
    rows, shown = manifest["rows"], manifest["data"]["rows"]
    left, own = (rows[name] for name in ("left_genuine", "drawn_own"))
    console.print(
        f"{title}: {shown:,} rows released with {manifest['method']}; "
        f"{(left['rows'] + own['rows']) / max(1, shown):.1%} keep their clean venue: {left['rows']:,} "
        f"({left['share']:.1%}) are left genuine"
        + (f", {own['rows']:,} ({own['share']:.1%}) drew it by chance" if own["rows"] else ""),
        soft_wrap=True,
    )
    reach = manifest["settings"].get("method", {}).get("reach_km")
    if own["share"] > MANY and reach:
        console.print(
            f"note: crowds with few venues often return the clean one; a method.reach_km above {reach:g} moves more "
            "rows, and farther (ghostpoi choose measures settings)",
            soft_wrap=True,
        )
    groups = _table("rows", "all", "substituted", "no candidate", "kept for speed", "kept by method")
    keys = ("rows", "substituted", "no_candidate", "kept_by_speed", "kept_by_method")
    for name in ("in_sessions", "outside_sessions"):
        groups.add_row(name.replace("_", " "), *(f"{rows[name][key]:,}" for key in keys))
    console.print(groups)


def estimate(console: Console, guess: dict[str, Any]) -> None:
    """Print the estimate of `protect --dry-run`."""
    f = guess
    console.print(
        f"about {f['seconds']:,.0f} s: {', '.join(f'{step} {s:.1f} s' for step, s in f['steps'].items())}",
        soft_wrap=True,
    )
    console.print(
        f"epochs of training: {f['epochs']}, rounds of substitution: {f['rounds']}; memory about "
        f"{f['peak_bytes'] / 1e9:.1f} GB\n"
        f"substitutes about {f['substitution_rate']:.1%} of {f['rows']:,} rows; "
        f"{f['substitution_rate_in_sessions']:.1%} of the {f['rows_in_sessions']:,} in sessions\n"
        f"moves them by about {f['mean_km']:.2f} km on average, 95% within {f['p95_km']:.2f} km\n"
        f"about {f['left_genuine'] + f['drawn_own']:.1%} keep their clean venue: {f['left_genuine']:.1%} are left "
        "genuine"
        + (f", {f['drawn_own']:.1%} draw it by chance" if f["drawn_own"] else "")
        + (f"\ngives users {f['pseudonyms']:,} pseudonyms" if f["pseudonyms"] else "")
    )


def verification(console: Console, found: dict[str, Any]) -> None:
    """Print one line per check."""
    from rich.markup import escape

    for check in found["checks"]:
        mark = "[green]pass[/]" if check["passed"] else "[bold red]FAIL[/]"
        console.print(f"{mark}  {check['check']:16} {escape(printable(check['detail']))}")


def audited(console: Console, release: Path, found: dict[str, Any]) -> None:
    """Print an audit: the strongest adversary first, every measure next to its controls."""
    from ghostpoi.reports.audit_view import AuditView, headline
    from ghostpoi.reports.texts import victim_label

    say = partial(console.print, markup=False, emoji=False)
    clean, top, seeds = found["clean"], found["adversaries"][found["strongest"]], len(found["clean"]["acc@1"]["seeds"])
    view = AuditView.of(found)
    floor = f"{view.floor_text} gives {_spread(found['controls'][view.best_floor]['acc@1'])}"
    say(f"{_valid(release)}: {headline(view)}", style="bold")
    if not found["no_verdict"]:
        say(
            f"strongest adversary{' that ran' if found['not_run'] else ''} {found['strongest']}: acc@1 "
            f"{_spread(top['acc@1'])} against {_spread(clean['acc@1'])} on clean data, "
            f"{top['accuracy_lost']['mean']:.0%} of the accuracy lost; {floor}"
        )
    say(
        f"{'one seed, so the spread is unknown' if seeds == 1 else f'{seeds} seeds, mean ± standard deviation'}; "
        f"leak {found['leak']:.1%} of the training sessions; victim {found['victim']}, protocol {found['protocol']}; "
        f"{found['test_positions']:,} clean test positions"
    )
    if view.regions:
        say(view.regions)
    table = _table("victim trained on", "acc@1", "moves", "acc@5", "MRR", "lost", "recovered")
    for group in ({"clean sessions": clean} | found["adversaries"], found["controls"]):
        for name, measures in group.items():
            recovered = f"{measures['restored']['mean']:.1%}" if "restored" in measures else ""
            accuracies = (_spread(measures[metric]) for metric in ("acc@1", "acc@1_moves", "acc@5", "mrr"))
            lost = "" if found["no_verdict"] else f"{measures['accuracy_lost']['mean']:.0%}"
            table.add_row(victim_label(name), *accuracies, lost, recovered)
        table.add_section()
    say(table)
    for adversary, verdict in found["verdicts"].items():
        say(f"{adversary:14} {verdict}")
    gaps, p, u = found["gaps"], found["plausibility"], found["utility"]
    worst = f", worst over A1-A3 {_spread(gaps['worst'])}" if gaps["worst"] else ""
    survival = ", ".join(f"{name} {_spread(value)}" for name, value in gaps["surv"].items())
    say(
        f"gaps in acc@1: protection {_spread(gaps['prot'])}{worst}, worst over all {_spread(gaps['worst_all'])}"
        + (f"; survival {survival}" if survival else "")
    )
    say(
        f"plausibility of all {'audited ' if view.regions else ''}rows: {p['substitution_rate']:.1%} substituted, "
        f"{_category_kept(p)}, {p['beyond_1km']:.1%} beyond 1 km, "
        f"mean {p['mean_km']:.2f} km, p95 {p['p95_km']:.2f} km, "
        f"{p['speed_violations_released']:.1%} of steps over the speed limit (clean {p['speed_violations_clean']:.1%})"
    )
    if kept := found["rows"]["kept_genuine"]:
        share = kept / (found["rows"]["audited"] + kept)
        many = f"{kept:,} more rows ({share:.1%} of the release) lack a value and were kept as they are: they are"
        one = f"1 more row ({share:.1%} of the release) lacks a value and was kept as it is: it is"
        say(f"{one if kept == 1 else many} genuine, and no figure above includes {'it' if kept == 1 else 'them'}")
    if (natural := found["naturalness"]) is not None:
        clean_one = f" (clean {natural['clean']:.3f})" if "clean" in natural else ""  # a stored one has no clean value
        say(f"naturalness: {natural['released']:.3f}{clean_one}")
    by_category = f" and {u['popularity']['category_js']:.3f} bits in category"
    say(
        f"utility: Jensen-Shannon divergence {u['popularity']['poi_js']:.3f} bits in venue"
        f"{'' if p['category_match'] is None else by_category} popularity, common part of flows "
        f"{u['flows']['common_part']:.3f}, radius of gyration "
        f"{u['gyration']['mean_km_before']:.2f} -> {u['gyration']['mean_km_after']:.2f} km, revisit rate "
        f"{u['visits']['revisit_rate_before']:.3f} -> {u['visits']['revisit_rate_after']:.3f}"
    )
    if series := found.get("series"):
        say(f"several releases: {series['verdict']}")


def chosen(console: Console, page: Path, found: dict[str, Any]) -> None:
    """Print the settings that `choose` tried, and the command of the recommended one."""
    from ghostpoi.audits.controls import CLEAN, FLOORS, LEAK_ONLY, LEAK_STAY, MARKOV
    from ghostpoi.reports.texts import regions_text, victim_label

    say = partial(console.print, markup=False, emoji=False)
    best, controls = found["recommended"], found["controls"]
    table = _table(
        "setting", "worst", "on moves", "adversary", "released", "mean km", "genuine", "flows", "popularity", "frontier"
    )
    for t in found["tried"]:
        mark = "recommended" if t is best else "yes" if t["frontier"] else ""
        worst = ("" if t["complete"] else ">= ") + f"{t['worst']:.3f}"
        table.add_row(
            t["name"], worst, f"{t['worst_on_moves']:.3f}", t["strongest"], f"{t['accuracy']['none']['mean']:.3f}",
            f"{t['mean_km']:.2f}", f"{t['left_genuine']:.1%}", f"{t['flows']:.3f}", f"{t['popularity']:.3f}", mark,
        )  # fmt: skip
    say(table)
    if "regions" in found:
        say(regions_text(found["regions"], "tried on"))
    floors = ", ".join(f"{victim_label(name)} {controls[name]:.3f}" for name in (*FLOORS, MARKOV))
    leaked = ", ".join(
        f"{victim_label(name)} {sum(controls[name]) / len(controls[name]):.3f}" for name in (LEAK_ONLY, LEAK_STAY)
    )
    clean = sum(controls[CLEAN]) / len(controls[CLEAN])
    say(
        f"acc@1 of a {found['victim']} victim; clean data {clean:.3f}, {leaked}, {floors}; "
        ">= marks settings that faced only the fast adversaries"
    )
    if best is None:
        nearest = found["nearest"]
        say(
            f"no setting keeps all that you asked for; the nearest is {nearest['name']}, which misses "
            f"{' and '.join(nearest['missed'])}",
            style="bold",
        )
    else:
        worst = best["accuracy"][best["strongest"]]
        say(f"recommended: {best['name']}, worst case {_spread(worst)}", style="bold")
        say(best["command"], soft_wrap=True)
    say(f"page (it describes clean data: keep it private): {_valid(page)}")


def series(console: Console, folder: Path, found: dict[str, Any]) -> None:
    """Print the releases of a series."""
    console.print(
        f"{folder}: a series of {found['method']} since {found['created'][:10]}; {found['rows']:,} rows released; "
        f"{found['venues']:,} venues in {found['crowds']:,} crowds, {found['guests']:,} of them guests, "
        f"{found['without_crowd']:,} without a crowd",
        markup=False, emoji=False, soft_wrap=True,
    )  # fmt: skip
    table = _table("release", "status", "from", "to", "rows", "repeated", "new venues", "place")
    for one in found["releases"]:
        first, last = (f"{datetime.fromtimestamp(one[name], UTC):%Y-%m-%d}" for name in ("first", "last"))
        counts = (f"{one[name]:,}" for name in ("rows", "repeated", "new_venues"))
        table.add_row(str(one["number"]), one["status"], first, last, *counts, one["release"])
    console.print(table, markup=False, emoji=False)


def plugins(console: Console) -> None:
    """Print all plug-ins with their summaries."""
    from rich.markup import escape

    from ghostpoi.attack.adversaries import ADVERSARIES
    from ghostpoi.draw.methods import METHODS
    from ghostpoi.exports import EXPORTS
    from ghostpoi.formats import FORMATS

    for title, summaries in {
        "methods": {name: method.summary for name, method in METHODS.items()},
        "adversaries": {name: f"{a.label}: {a.does}" for name, a in ADVERSARIES.items()},
        "victims": _victims(),
        "formats": {name: format.summary for name, format in FORMATS.items()},
        "exports": {name: export.summary for name, export in EXPORTS.items()},
    }.items():
        console.print(f"[bold]{title}[/]")
        for name, summary in summaries.items():
            console.print(f"  {name:15} {escape(summary)}")


def _victims() -> dict[str, str]:
    """What victims there are; they are models themselves, so listing them needs torch."""
    try:
        from ghostpoi.attack.victims import VICTIMS
    except ModuleNotFoundError as e:
        if sentence := missing(e.name or ""):
            return {"(not listed)": sentence}
        raise
    return {name: victim.summary for name, victim in VICTIMS.items()}


def _category_kept(plausibility: dict[str, Any]) -> str:
    match = plausibility["category_match"]
    return "no category" if match is None else f"category match {match:.3f}"


def _category_from(sets: dict[str, Any]) -> str:
    return f"category: {sets['category_field']}" if sets["category_field"] else "no category"


def _spread(value: dict[str, Any]) -> str:
    return f"{value['mean']:.4f}" + (f" ± {value['std']:.4f}" if len(value["seeds"]) > 1 else "")


def _valid(path: Path) -> str:
    """Return a path on one line and as valid text, which a file name may not be."""
    return printable(str(path).encode("utf-8", "replace").decode())


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="left" if column in (columns[0], *LEFT) else "right")
    return table
