"""What the cells say about adversaries that know the rule: sentences computed, none of them typed."""

from collections.abc import Mapping

from ghostpoi.evaluate.measures.gaps import spread
from ghostpoi.study.adaptive import outside
from ghostpoi.study.adaptive.tables import full_label, named, release_counts, text
from ghostpoi.study.adaptive.target import BARELY, HOLDS, WITHIN, at_most
from ghostpoi.study.adaptive.worst import COSTS, Attack, attacks, comparable, measured, over_leak_only, worst
from ghostpoi.study.cells import ADAPTIVE, LEAK, LEAKLESS, MANY, VICTIM, Cells, Series
from ghostpoi.study.table import CATEGORIES, CONTROL, MISSING, Table, control_last, label, show, shown
from ghostpoi.study.verdict import INSIDE, Verdict, against

Parts = list[str | list[str]]  # paragraphs and lists
EIGHT = "habits+leak"
NOWHERE = "at no ratio the worst case is clearly above leak-only"


def strongest(cells: Cells, where: str) -> Table:
    """Who wins back most from each method, how far ahead of the next, and who does so without a leak."""
    rows = []
    for method in control_last(cells.methods):
        first, second = (*attacks(cells, method), None, None)[:2]
        ahead = against(first.seeds, second.seeds) if first and second else None
        alone = worst(cells, method, among=LEAKLESS)
        rows.append((label(method), _who(first), _who(second), text(ahead), _who(alone)))
    heads = ("method", "strongest", "next", "strongest minus next", "strongest without any leak")
    return Table(f"The strongest adversary against each method ({where})", heads, tuple(rows))


def strongest_text(cells: Cells) -> str:
    """Who is the strongest how often."""
    found = [w for m in cells.methods if (w := worst(cells, m))]
    if not found:
        return f"The strongest adversary: {MISSING}."
    count = {name: sum(w.name == name for w in found) for name in dict.fromkeys(w.name for w in found)}
    ranked = sorted(count, key=lambda name: -count[name])
    each = ", ".join(f"{name} against {count[name]} of {len(found)} methods" for name in ranked)
    ahead = [a[:2] for m in cells.methods if len(a := attacks(cells, m)) > 1]
    clear = sum(bool((v := against(one.seeds, two.seeds)) and v.clear) for one, two in ahead)
    return f"Strongest in the mean: {each}. Clearly ahead of the next adversary against {clear} of {len(ahead)}."


def mixed_text(cells: Cells) -> str:
    """Where no adversary is needed: the leaked sessions swapped into the release teach more than any of them."""
    opening = "Whoever holds the leak can also swap it into the release and do nothing else (leak-mixed, a control)"
    known = {m: values for m in control_last(cells.methods) if (values := cells.series(m, "leak-mixed"))}
    if not known:
        return f"{opening}: {MISSING}."
    said = []
    for method, values in known.items():
        found = worst(cells, method)
        ahead = against(values, found.seeds) if found else None
        if ahead and ahead.difference["mean"] > 0:
            said.append(f"against {label(method)} {show(spread(values))}, minus the strongest adversary {ahead.text}")
    return f"{opening}. " + (f"That gives more {'; '.join(said)}." if said else "That is never the strongest.")


def outside_lines(cells: Cells) -> list[str]:
    """Whether A8 is as strong as it was outside: a weaker one would flatter every defence."""
    if cells.about and cells.city != "nyc":
        return [f"The outside figures are of NYC; these cells are of {cells.data} and cannot be held against them."]
    said = []
    for method, least in outside.at_least().items():
        values = cells.series(method, EIGHT)
        if values is None:
            said.append(f"A8 against {label(method)}: {MISSING}; it has to win back at least {least:.3f}.")
            continue
        ours = spread(values)
        word = "reaches" if ours["mean"] >= least else "does not reach"
        said.append(f"A8 against {label(method)} {word} the {least:.3f} that it has to: {show(ours)}.")
    return said


def bound(cells: Cells, where: str) -> Table:
    """How far the worst case is above what the leak gives anyhow."""
    rows = []
    for method in control_last(cells.methods):
        found = worst(cells, method)
        mixed = against(found.seeds, cells.series(method, "leak-mixed")) if found else None
        rows.append(
            (label(method), named(found), text(over_leak_only(cells, method)), _share(cells, found), text(mixed))
        )
    heads = ("method", "worst", "minus leak-only", "share of what clean has over leak-only", "minus leak-mixed")
    alone = cells.leak_only()
    note = f"leak-only at {LEAK:.0%}: {shown(spread(alone) if alone else None)}."
    return Table(f"How near to the bound ({where})", heads, tuple(rows), (note,))


def bound_text(cells: Cells) -> str:
    """Where the worst case is above, below or at leak-only."""
    found = {m: v for m in comparable(cells) if (v := over_leak_only(cells, m))}
    if not found:
        return f"The distance to the bound: {MISSING}."
    said = []
    for word, words in (
        ("higher", "clearly above leak-only"),
        (INSIDE, "not to be told from leak-only"),
        ("lower", "clearly below leak-only, so that whoever ignores the release does better"),
    ):
        names = [label(m) for m, v in found.items() if v.word == word]
        said += [f"{words}: {', '.join(names)}"] if names else []
    nearest = min(found, key=lambda m: found[m].difference["mean"])
    return f"The worst case is {'; '.join(said)}. Nearest: {label(nearest)}, {found[nearest].text}."


def categories_text(cells: Cells) -> str:
    """What the categories alone tell, beside the leak: the ablation's crowds that are whole categories."""
    found, over = worst(cells, CATEGORIES), over_leak_only(cells, CATEGORIES)
    if found is None or over is None:
        return f"The bound for releases that keep categories: {MISSING}."
    least, alone = outside.target("worst"), named(found)
    within = {HOLDS: "below", WITHIN: "below, within the spread,", BARELY: "above, within the spread,"}
    word = within.get(at_most(found.seeds, least), "above")
    return (
        "Every release here shows who visited which category when. Drawn evenly from the whole category, wherever in "
        f"the city, it shows nothing more. The worst case of that over {_tried(cells)} is {alone}, minus leak-only "
        f"{over.text}, and {word} the target of {least:.3f}. Narrower crowds show at least as much, so that an ideal "
        "adversary gets no less from them; what the bound costs is in the ablation."
    )


def leak_text(cells: Cells) -> Parts:
    """Per method: at which ratios the release adds to the leak."""
    said = []
    for method in control_last(cells.methods):
        found = {r: v for r in cells.leaks if (v := over_leak_only(cells, method, r))}
        if not found:
            continue
        above = [f"{r:.0%}" for r, v in found.items() if v.word == "higher"]
        verdict = f"the worst case is clearly above leak-only at {', '.join(above)}" if above else NOWHERE
        each = "; ".join(f"{r:.0%}: {v.text}" for r, v in found.items())
        said.append(f"{label(method)}: {verdict}, of {len(found)} ratios. Worst case minus leak-only: {each}.")
    return [said] if said else [f"The leak sweep: {MISSING}."]


def release_text(cells: Cells) -> Parts:
    """Per method: whether more releases give more away."""
    counts = release_counts(cells)
    said = []
    for method in control_last(cells.methods):
        series = {k: values for k in counts if (values := cells.series(method, f"{MANY}{k}"))}
        if len(series) < 2:
            continue
        few, many = min(series), max(series)
        v = against(series[many], series[few])
        if v:
            verdict = {"higher": "give more away", "lower": "give less away"}.get(v.word, "make no clear difference")
            said.append(f"{label(method)}: {many} releases instead of {few} {verdict} ({v.text}).")
    return [said] if said else [f"Several releases: {MISSING}."]


def ablation_text(cells: Cells) -> Parts:
    """Each changed setting against the default, in the worst case and in what must be no worse than random's."""
    plain = next((m for m in cells.methods if " " not in m and m != CONTROL), None)
    base = worst(cells, plain) if plain else None
    if plain is None or base is None:
        return [f"The ablation: {MISSING}."]
    said = []
    for method in cells.methods:
        found = worst(cells, method)
        if method in (plain, CONTROL) or found is None:
            continue
        parts = {"worst case": against(found.seeds, base.seeds)}
        parts |= {k: against(COSTS[k].get(cells, method), COSTS[k].get(cells, plain)) for k in ("naturalness", "flows")}
        said.append(f"{label(method)}: " + "; ".join(f"{name} {text(v)}" for name, v in parts.items()) + ".")
    opening = f"Minus {full_label(cells, plain)}, whose worst case over {_tried(cells)} is {named(base)}:"
    lower = [label(m) for m in cells.methods if m not in (plain, CONTROL) and _lower(worst(cells, m), base)]
    closing = f"A clearly lower worst case than the default: {', '.join(lower) if lower else 'none of them'}."
    return [opening, said, closing] if said else [f"The ablation: {MISSING}."]


def order_text(city: Cells, main: Cells) -> str:
    """Which worst cases are clearly lower than others on the synthetic city, and whether that contradicts the study."""
    tried = measured(city)
    both = [m for m in comparable(city) if all(main.series(m, a) for a in tried)]
    if len(both) < 2:
        return f"The order of methods on it: {MISSING}."
    found = {m: (w, o) for m in both if (w := worst(city, m)) and (o := worst(main, m, among=tried))}
    ranked = sorted(found, key=lambda m: found[m][0].accuracy["mean"])
    pairs = [(one, two) for n, one in enumerate(ranked) for two in ranked[n + 1 :]]
    clear = [(a, b) for a, b in pairs if (v := against(found[a][0].seeds, found[b][0].seeds)) and v.clear]
    other = [(a, b) for a, b in clear if (v := against(found[a][1].seeds, found[b][1].seeds)) and v.word == "higher"]
    means = ", ".join(f"{label(m)} {show(found[m][0].accuracy)}" for m in ranked)
    lower = "; ".join(f"{label(a)} below {label(b)}" for a, b in clear) or "none"
    word = f"on {main.data} it is the other way round for {len(other)} of them" if other else f"so on {main.data}"
    alone = [label(m) for m in ranked if (v := over_leak_only(city, m)) and v.difference["mean"] < 0]
    below = (
        f" Below leak-only in the mean, where ignoring the release does better: {', '.join(alone)}." if alone else ""
    )
    return (
        f"Cells of {city.data}. Worst cases over {_tried(city)}, lowest first: {means}. Clearly apart: {lower}; {word}."
        f"{below}"
    )


def transfer_text(victims: Mapping[str, Cells]) -> Parts:
    """How good each victim is on clean sessions, and where a victim gets more from a release than from the leak."""
    known = {victim: spread(values) for victim, cells in victims.items() if (values := cells.clean())}
    if len(known) < 2:
        return [f"Other victims: {MISSING}."]
    ranked = sorted(known, key=lambda victim: -known[victim]["mean"])
    clean = "Clean acc@1: " + ", ".join(f"{victim} {show(known[victim])}" for victim in ranked) + "."
    if VICTIM in known:
        behind = max(known[VICTIM]["mean"] - known[victim]["mean"] for victim in ranked)
        clean += f" None is more than {behind:.4f} behind the {VICTIM}."
    said = []
    limit = outside.target("over_leak_only")
    for method in control_last(list(dict.fromkeys(m for cells in victims.values() for m in cells.methods))):
        over = {victim: v for victim, cells in victims.items() if (v := over_leak_only(cells, method))}
        if len(over) < 2:
            continue
        far = [f"{n} {v.text}" for n, v in over.items() if at_most(v.difference["seeds"], limit) not in (HOLDS, WITHIN)]
        verdict = f"more than {limit:.3f} over its own leak-only in the mean: {'; '.join(far) if far else 'no victim'}"
        most = max(over, key=lambda victim: over[victim].difference["mean"])
        said.append(f"{label(method)}: {verdict}. Furthest: {most}, {over[most].text}.")
    return [clean, said]


def _tried(cells: Cells) -> str:
    return ", ".join(ADAPTIVE[a] for a in measured(cells))


def _lower(one: Attack | None, two: Attack) -> bool:
    found: Verdict | None = against(one.seeds, two.seeds) if one else None
    return bool(found and found.word == "lower")


def _share(cells: Cells, found: Attack | None) -> str:
    clean, alone = cells.clean(), cells.leak_only()
    if not (found and clean and alone):
        return MISSING
    shares: Series = [
        (w - a) / (c - a) for w, a, c in zip(found.seeds, alone, clean, strict=True) if abs(c - a) > 1e-12
    ]
    return f"{spread(shares)['mean']:.0%} ± {spread(shares)['std']:.0%}" if shares else MISSING


def _who(attack: Attack | None) -> str:
    return f"{attack.name} {attack.adversary}: {show(attack.accuracy)}" if attack else MISSING
