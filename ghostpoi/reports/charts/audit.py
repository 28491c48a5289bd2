"""Charts of audits: accuracy by adversary, what is found about people, trade-offs, and settings that were tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ghostpoi.audits.controls import CLEAN, CONTROLS, RANDOM, RANDOM_MATCHED
from ghostpoi.audits.measures.gaps import Spread
from ghostpoi.reports import charts
from ghostpoi.reports.audit_view import AuditView, PersonRow
from ghostpoi.reports.audit_view import percent as share_of
from ghostpoi.reports.charts import Chart, Figure, Series, chart, numbers, percent, points, rule, whiskers
from ghostpoi.reports.choice_view import controls, protected, without
from ghostpoi.reports.choice_view import points as points_of
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.texts import TEXTS, plain, unnumbered, victim_label

HEIGHT = 380
PERSON_PX = 62  # of a group of bars for one measure


def verdict_chart(audit: AuditView) -> Chart:
    """The accuracy under each adversary, next to the controls."""
    reached = {name: scores.acc1 for name, scores in audit.adversaries.items()}
    random = {name: scores.acc1 for name in reached if (scores := audit.random(name))}
    matched = {name: scores.acc1 for name in reached if (scores := audit.matched(name))}
    labels = {name: plain(unnumbered(name)) for name in reached}
    place, several = {name: k + 0.67 for k, name in enumerate(reached)}, audit.seeds > 1
    alone = audit.without_release
    lines = [("clean sessions", audit.clean, charts.INK, "")]
    for leak, colour, dash in (("no_leak", charts.MUTED, "dot"), ("with_leak", charts.PURPLE, "dash")):
        lines.append((victim_label(alone[leak]), audit.controls[alone[leak]], colour, dash))
    ends = [v["mean"] + v["std"] for v in (*reached.values(), *random.values(), *matched.values())]
    ends += [scores.acc1["mean"] for _, scores, _, _ in lines]
    x = numbers("right guesses of the next venue", [100 * v for v in ends], "{:g}%")
    y = charts.rows(list(labels.values()))
    means = [100 * spread["mean"] for spread in reached.values()]
    texts = [f"{labels[name]}: {percent(spread['mean'])}" for name, spread in reached.items()]
    series = [charts.strips("this release", charts.BLUE, means, texts)]
    if several:
        spans = {name: (100 * (v["mean"] - v["std"]), 100 * (v["mean"] + v["std"])) for name, v in reached.items()}
        series.append(whiskers([(*span, place[name]) for name, span in spans.items()]))
    for control, found, colour, symbol in (
        (RANDOM, random, charts.VERMILLION, "diamond"), (RANDOM_MATCHED, matched, charts.GREEN, "circle"),
    ):  # fmt: skip
        if found:
            said = [f"{CONTROLS[control]}, {labels[name]}: {percent(v['mean'])}" for name, v in found.items()]
            at = [100 * v["mean"] for v in found.values()]
            series.append(points(CONTROLS[control], colour, at, [place[name] for name in found], said, symbol))
    series += [charts.upright(name, colour, 100 * scores.acc1["mean"], y, dash) for name, scores, colour, dash in lines]
    texts_of = {
        "matched": TEXTS["charts"]["verdict"]["matched"] if matched else "",
        "whiskers": " Thin lines show one standard deviation over seeds." if several else "",
    } | {leak: victim_label(name) for leak, name in alone.items()}
    return chart("verdict", Figure(series, x, y, 20 + charts.ROW_PX * len(reached)), **texts_of)


@dataclass(frozen=True)
class MethodPoint:
    """One audited method, a random control, or what an adversary has without the release."""

    name: str
    protection: Spread  # gap of the release as it is
    worst: Spread  # gap under the strongest adversary
    naturalness: float | None = None
    control: str = ""  # the symbol of a control


def method_points(data: PageData) -> list[MethodPoint]:
    """Every method with an audit, and the controls of the first one: random releases, and doing without a release.

    An adversary can ignore the release, so the worst case of a method includes what adversaries have without it.
    """
    points = [
        MethodPoint(name, a.gap([a.adversaries["none"]]), a.gap([*a.adversaries.values(), *a.alone]), a.naturalness)
        for name, release in data.releases.items()
        if (a := release.audit) is not None and "none" in a.adversaries
    ]
    main = data.main.audit
    if main is None:
        return points
    for control, symbol in ((RANDOM, "diamond-open"), (RANDOM_MATCHED, "circle-open")):
        if control in main.controls:
            draws = [v for name, v in main.controls.items() if name == control or name.startswith(f"{control}+")]
            gaps = main.gap([main.controls[control]]), main.gap(draws)
            points.append(MethodPoint(f"{CONTROLS[control]} (control)", *gaps, control=symbol))
    for name in dict.fromkeys(main.without_release.values()):
        gap = main.gap([main.controls[name]])
        points.append(MethodPoint(victim_label(name), gap, gap, control="x-open"))
    return points


def tradeoff_charts(points: list[MethodPoint]) -> list[Chart]:
    """The trade-off of all methods; naturalness only where there are two to compare."""
    if not points:
        return []
    title = "protection gap: release used as it is"
    ends = [v["mean"] + sign * v["std"] for p in points for v in (p.protection, p.worst) for sign in (-1, 1)]
    x, y = (numbers(text, ends, "{:.2f}", least=0.01) for text in (title, "worst gap: strongest adversary"))
    end = min(x.high, y.high)
    diagonal = rule("nothing regained", charts.MUTED, (0, 0), (end, end), "dot")
    series = [one for number, p in enumerate(points) for one in _method_series(number, p, p.worst)]
    gaps = chart("tradeoff", Figure([diagonal, *series], x, y, HEIGHT))
    natural = [(number, p, p.naturalness) for number, p in enumerate(points) if p.naturalness is not None]
    if len(natural) < 2:
        return [gaps]
    x = numbers(title, [p.protection["mean"] for p in points], "{:.2f}", least=0.01)
    y = numbers("mean log-likelihood of a check-in", [value for _, _, value in natural], "{:.2f}", zero=False)
    series = [one for some in natural for one in _method_series(*some)]
    return [gaps, chart("naturalness", Figure(series, x, y, HEIGHT))]


def _method_series(number: int, point: MethodPoint, y: Spread | float) -> list[Series]:
    """One point with its whiskers."""
    number %= len(charts.SERIES)
    colour = charts.MUTED if point.control else charts.SERIES[number]
    symbol = point.control or list(charts.SYMBOLS)[number]
    x, name = point.protection, plain(point.name)
    height = y if isinstance(y, float) else y["mean"]
    said = f"{name}: as released {x['mean']:.3f}, {'naturalness' if isinstance(y, float) else 'strongest'} {height:.3f}"
    lines = []
    if len(x["seeds"]) > 1:
        lines.append(whiskers([(x["mean"] - x["std"], x["mean"] + x["std"], height)]))
        if not isinstance(y, float):
            lines.append(whiskers([(height - y["std"], height + y["std"], x["mean"])], across=False))
    return [*lines, points(name, colour, [x["mean"]], [height], [said], symbol)]


def persons_chart(found: Sequence[PersonRow]) -> Chart:
    """One group of bars for each measure."""
    labels = [row.label[:1].upper() + row.label[1:] for row in found]
    figures = {
        "release": [row.release for row in found], "control": [row.control for row in found],
        "clean file": [row.clean for row in found],
    }  # fmt: skip
    colours = dict(zip(figures, (charts.BLUE, charts.MUTED, charts.VERMILLION), strict=True))
    sides = [(name, colours[name], [100 * f["mean"] if f else 0.0 for f in some]) for name, some in figures.items()]
    series = charts.grouped(
        charts.strips, sides, lambda k, _, name: f"{labels[k]}: {share_of(figures[name][k]) or 'not measured'}, {name}"
    )
    x = numbers("", charts.every(series), "{:g}%")
    return chart("persons", Figure(series, x, charts.rows(labels), 20 + PERSON_PX * len(found)))


CATEGORIES = {
    "any": (charts.BLUE, "any category"), "group": (charts.GREEN, "group of categories"),
    "exact": (charts.VERMILLION, "same category"),
}  # fmt: skip


def choice_chart(found: Mapping[str, Any]) -> Chart:
    """What is given away against trips that survive, both in percent."""
    name, floor = without(found)
    clean = controls(found)[CLEAN] - floor
    lines = ((name, 0.0, charts.PURPLE, "dash"), ("clean data", clean, charts.INK, ""))
    x = numbers("trips between 1 km squares that survive", [100 * t["flows"] for t in found["tried"]], "{:g}%")
    y = numbers("given away, points", [100 * v for v in (*map(protected, found["tried"]), clean)])
    series = [rule(text, colour, (x.low, 100 * v), (x.high, 100 * v), dash) for text, v, colour, dash in lines]
    for category, (colour, text) in CATEGORIES.items():
        mine = [t for t in found["tried"] if f"method.category={category}" in t["settings"]]
        if not mine:
            continue
        said = [f"{t['name']}: {points_of(protected(t))} given away, {percent(t['flows'], 0)} of trips" for t in mine]
        at = [100 * t["flows"] for t in mine], [100 * protected(t) for t in mine]
        series.append(points(text, colour, *at, said))
    if best := found["recommended"]:
        at = [100 * best["flows"]], [100 * protected(best)]
        series.append(points("recommended", charts.INK, *at, [f"recommended: {best['name']}"], "ring-open"))
    return chart("choice", Figure(series, x, y, 360))
