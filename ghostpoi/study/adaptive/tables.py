"""Tables of the studies in which adversaries know the rule."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ghostpoi.evaluate.measures.gaps import spread
from ghostpoi.study.adaptive import outside
from ghostpoi.study.adaptive.worst import COSTS, Attack, Cost, measured, over_leak_only, worst
from ghostpoi.study.cells import ADAPTIVE, LEAK, MANY, Cells, Series
from ghostpoi.study.table import (
    CONTROL,
    METHODS,
    MISSING,
    NONE,
    SETTINGS,
    VARIANTS,
    Table,
    control_last,
    label,
    show,
    shown,
)
from ghostpoi.study.verdict import Verdict, against

WORST_NOTE = (
    "± is the standard deviation over seeds (n - 1). Worst: of the adversaries of the row, the one with the highest "
    "mean over seeds, with its own spread. leak-only: a victim on the leaked sessions alone. leak-mixed: the release "
    "with the leaked sessions swapped in and no adversary."
)
RESTORED_NOTE = (
    "Positions of leaked sessions do not count. A1 shows what the publisher left as it was; only what an adversary has "
    "beyond it was won back."
)
COST_NOTE = (
    "worse: than the random control, in a difference taken seed by seed whose 95% interval leaves out 0. Of the radius "
    "of gyration the distance between before and after is compared. Neither a high nor a low share of substitutions is "
    "better. AUC: 0.5 cannot tell released from clean sessions, 1 always can."
)
OVER = "over its own leak-only by"
OUTSIDE_NOTE = "Outside: one seed, so without a spread. Methods that only have an outside row are not part of ghostpoi."


@dataclass(frozen=True)
class Spec:
    """Makes tables of a study's cells."""

    make: Callable[[Cells], list[Table]]

    def tables(self, cells: Cells) -> list[Table]:
        """All of them."""
        return self.make(cells)


def heading(adversary: str) -> str:
    """As in A8 habits+leak."""
    return f"{ADAPTIVE[adversary]} {adversary}"


def accuracies(cells: Cells) -> Table:
    """Every method against every adversary."""
    rows = []
    for method in control_last(cells.methods):
        found = [_acc(cells.series(method, a)) for a in ADAPTIVE]
        ends = (cells.leak_only(), cells.series(method, "leak-mixed"), cells.clean())
        rows.append((label(method), *found, named(worst(cells, method)), *map(_acc, ends)))
    heads = ("method", *map(heading, ADAPTIVE), "worst", "leak-only", "leak-mixed", "clean")
    return Table(f"acc@1 at {LEAK:.0%} leak ({place(cells)})", heads, tuple(rows), (WORST_NOTE,))


def restored(cells: Cells) -> Table:
    """How much of the truth each adversary put back."""
    rows = [
        (label(m), *(_acc((cells.figure(m, a) or {}).get("restored"), 3) for a in ADAPTIVE))
        for m in control_last(cells.methods)
    ]
    title = f"Share of positions that hold the clean POI after the adversary's work ({place(cells)})"
    return Table(title, ("method", *map(heading, ADAPTIVE)), tuple(rows), (RESTORED_NOTE,))


def costs(cells: Cells) -> Table:
    """What the release costs, the control above all others."""
    ordered = (CONTROL, *control_last(cells.methods)[:-1])
    rows = [(label(m), *(_cost(cells, m, key, c) for key, c in COSTS.items())) for m in ordered]
    heads = ("method", *(c.heading for c in COSTS.values()))
    return Table(f"What a release costs ({place(cells)})", heads, tuple(rows), (COST_NOTE,))


def beside_outside(cells: Cells) -> Table:
    """What was measured outside, below ours."""
    rows: list[tuple[str, ...]] = []
    theirs = outside.accuracy()
    columns = [a for a in ADAPTIVE if any(a in row for row in theirs.values())]
    for method, row in theirs.items():
        name = label(method) if method in METHODS else method
        if method in cells.methods:
            natural = cells.release(method, "naturalness")
            ours = [_acc(cells.series(method, a)) for a in columns]
            rows.append((name, "measured", *ours, shown(natural, 2)))
        told = [f"{row[a]:.3f}" if a in row else NONE for a in columns]
        natural_told = outside.naturalness().get(method)
        rows.append((name, "outside", *told, NONE if natural_told is None else f"{natural_told:.1f}"))
    heads = ("release", "source", *map(heading, columns), "naturalness")
    known = outside.contents()
    note = f"{OUTSIDE_NOTE} Its clean acc@1 was {known['clean']:.3f}, its leak-only {known['leak-only']:.3f}."
    return Table(f"acc@1 beside what was measured outside ({place(cells)})", heads, tuple(rows), (note,))


def leaks(cells: Cells) -> Table:
    """By leak ratio: the strongest adversary beside what the leak alone gives."""
    rows = []
    tried = measured(cells)
    for ratio in cells.leaks or [LEAK]:
        for method in control_last(cells.methods):
            each = [_acc(cells.series(method, a, ratio)) for a in tried]
            controls = (cells.leak_only(ratio), cells.series(method, "leak-mixed", ratio))
            over = text(over_leak_only(cells, method, ratio))
            rows.append(
                (f"{ratio:.0%}", label(method), *each, named(worst(cells, method, ratio)), *map(_acc, controls), over)
            )
    heads = ("leak", "method", *map(heading, tried), "worst", "leak-only", "leak-mixed", "worst minus leak-only")
    return Table(f"acc@1 as more leaks ({place(cells)})", heads, tuple(rows), (WORST_NOTE,))


def release_counts(cells: Cells) -> list[int]:
    """How many releases A11 held, ascending."""
    found = {a for contests in cells.by_victim.values() for _, a, _ in contests if a.startswith(MANY)}
    return sorted(int(a.removeprefix(MANY)) for a in found)


def releases(cells: Cells) -> Table:
    """A11 by the number of releases of the same rows that it holds."""
    rows = []
    counts = release_counts(cells) or [1]
    for method in control_last(cells.methods):
        first = cells.series(method, f"{MANY}{counts[0]}")
        for count in counts:
            found = cells.figure(method, f"{MANY}{count}") or {}
            acc = cells.series(method, f"{MANY}{count}")
            more = NONE if count == counts[0] else text(against(acc, first))
            over = text(against(acc, cells.leak_only()))
            rows.append((label(method), str(count), _acc(acc), _acc(found.get("restored"), 3), more, over))
    heads = ("method", "releases", "A11 acc@1", "restored", f"minus that of {counts[0]}", "minus leak-only")
    return Table(f"Several releases of the same rows, {LEAK:.0%} leak ({place(cells)})", heads, tuple(rows))


def ablation(cells: Cells, title: str = "Ablation") -> Table:
    """One setting changed at a time: the worst case, and what it costs."""
    tried, kept = measured(cells), ("naturalness", "popularity", "flows", "mean_km", "p95_km")
    rows = []
    for method in control_last(cells.methods):
        acc = [_acc(cells.series(method, a)) for a in tried]
        paid = [_cost(cells, method, key, COSTS[key]) for key in kept]
        over = text(over_leak_only(cells, method))
        mixed = _acc(cells.series(method, "leak-mixed"))
        rows.append((full_label(cells, method), *acc, named(worst(cells, method)), over, mixed, *paid))
    heads = (
        "method", *map(heading, tried), "worst", "worst minus leak-only", "leak-mixed",
        *(COSTS[key].heading for key in kept),
    )  # fmt: skip
    return Table(f"{title}, {LEAK:.0%} leak ({place(cells)})", heads, tuple(rows), (WORST_NOTE, COST_NOTE))


def transfer(victims: Mapping[str, Cells], methods: Sequence[str], where: str) -> Table:
    """Every victim on clean sessions, on the leak alone, and after the adversaries' work."""
    rows = []
    for victim, cells in victims.items():
        for method in control_last(methods):
            each = (cells.clean(), cells.leak_only(), cells.series(method, "none"), cells.series(method, "habits+leak"))
            if not any(each[2:]):
                continue  # what was not measured is named once, at the end of the page
            over = text(over_leak_only(cells, method))
            mixed = _acc(cells.series(method, "leak-mixed"))
            rows.append((victim, label(method), *map(_acc, each), named(worst(cells, method)), over, mixed))
    heads = (
        "victim",
        "method",
        "clean",
        "leak-only",
        "A1 none",
        "A8 habits+leak",
        "worst",
        "over its own leak-only by",
        "leak-mixed",
    )
    none = (("none", label(CONTROL), *[MISSING] * (len(heads) - 2)),)
    note = "Worst: over the adversaries that were measured with this victim."
    return Table(f"Victims, {LEAK:.0%} leak ({where})", heads, tuple(rows) or none, (note,))


def transfer_alone(cells: Cells) -> Table:
    """The victims of one study."""
    return transfer({victim: cells.of(victim) for victim in cells.victims}, cells.methods, place(cells))


def full_label(cells: Cells, method: str) -> str:
    """A method with all its settings, those that no text names included."""
    settings = {} if method in VARIANTS else cells.settings(method).get("method", {})
    inside = ", ".join(f"{SETTINGS.get(f'method.{key}', key)}={value}" for key, value in settings.items())
    return f"{label(method.split()[0])} ({inside})" if inside else label(method)


def named(attack: Attack | None) -> str:
    """The figure and who reached it."""
    return f"{show(attack.accuracy)} ({attack.name})" if attack else MISSING


def text(verdict: Verdict | None) -> str:
    """A difference, or that there is none."""
    return verdict.text if verdict else MISSING


def place(cells: Cells) -> str:
    """What was measured and how."""
    return f"{cells.data or 'nothing measured'}, protocol {cells.protocol}"


def _acc(values: Series | None, digits: int = 4) -> str:
    return shown(spread(values) if values else None, digits)


def _cost(cells: Cells, method: str, key: str, cost: Cost) -> str:
    values = cost.get(cells, method)
    if not values:
        return MISSING
    if key == "gyration":
        before, after = (
            cells.release(method, "utility", "gyration", f"mean_km_{side}") for side in ("before", "after")
        )
        figure = f"{before['mean'] if before else 0:.2f} to {shown(after, 2)}"
    else:
        figure = shown(spread(values), cost.digits)
    return f"{figure} (worse)" if cost.is_worse(cells, method) else figure


SPECS: dict[str, tuple[Spec, ...]] = {
    "adaptive": (Spec(lambda c: [accuracies(c), restored(c), costs(c), beside_outside(c)]),),
    "adaptive-leak": (Spec(lambda c: [leaks(c)]),),
    "adaptive-releases": (Spec(lambda c: [releases(c)]),),
    "crowds": (Spec(lambda c: [ablation(c)]),),
    "city": (Spec(lambda c: [ablation(c, "Worst cases")]),),
    "transfer": (Spec(lambda c: [transfer_alone(c)]),),
}
