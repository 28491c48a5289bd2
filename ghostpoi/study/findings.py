"""What the cells say about the paper's claims: statements computed per protocol, none of them typed.

A difference between two victims is taken seed by seed, and only a clear one is called so (verdict.py). Three seeds make
that a strict test; many differences are looked at, so a single clear one is weak evidence too.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from ghostpoi.evaluate.measures.gaps import spread
from ghostpoi.study import paper
from ghostpoi.study.cells import ADVERSARIES, LEAK, METRICS, Cells
from ghostpoi.study.table import ALPHA, MISSING, NONE, Table, label, show
from ghostpoi.study.verdict import INSIDE, Verdict, against

PAPERS = ("ghost", "pgd", "em", "ts-ue")  # the methods of the paper's main table
OURS = ("ghost-sym", "ghost-ef")
CLEAN_WITHIN = 0.006  # how near the clean victim has to come to the paper's


def versus_random(cells: Cells) -> Table:
    """Every method's accuracy minus the random control's, per adversary."""
    names = (*ADVERSARIES, "leak-mixed")
    rows: list[tuple[str, ...]] = []
    words: list[str] = []
    for method in (*PAPERS, *OURS):
        found = [against(cells.series(method, a), cells.series("random", a)) for a in names]
        words += [v.word for v in found if v]
        rows.append((label(method), *(v.text if v else MISSING for v in found)))
    heads = ("method", *(f"{ADVERSARIES.get(a, '')} {a}".strip() for a in names))
    title = f"acc@1 minus that of the random control, protocol {cells.protocol} (lower protects better)"
    count = f"Of {len(words)} differences {words.count('lower')} are lower, {words.count('higher')} higher, "
    return Table(title, heads, tuple(rows), (count + f"{words.count(INSIDE)} inside the spread.",))


def statements(cells: dict[str, Cells]) -> Iterator[tuple[str, str]]:
    """(claim, what the cells say) for one protocol, from the cells of all studies."""
    main = cells["main"]
    yield "The clean victim has acc@1 0.1379 on NYC", _clean(main)
    yield "GHOST protects better than a uniform draw (the paper never asks)", _ghost_random(main)
    yield "GHOST leads PGD", _ghost_pgd(main)
    yield "The order of methods is the same under acc@1, acc@5 and MRR", _orders(main)
    yield "The methods differ by more than seeds do", _noise(main)
    yield "What A2 restores is the work of its denoiser", _leak_share(main)
    yield "The denoiser approaches the identity on GHOST's releases", _identity(main)
    yield "GHOST's frequency table has high entropy, that of deterministic methods low", _entropy(main)
    yield "GHOST is the most natural release on NYC, 3.5% above PGD", _naturalness(main)
    yield "Methods share a plausibility band; TS-UE substitutes less", _plausibility(main)
    yield "The manifold prior is the active ingredient", _manifold(cells["manifold"])
    yield (
        f"The weights {ALPHA} 2, β 0.5 win Δprot, Δsurv A2 and Δmean",
        _best(cells["weights"], ("prot", "mean"), ("surv_bridge",)),
    )
    yield (
        "Without an entropy floor Δprot, Δmean and Δworst are best",
        _best(cells["entropy"], ("prot", "mean", "worst")),
    )
    yield "Five rounds are enough", _rounds(cells["rounds"])
    yield "GHOST is harder to invert than PGD at every leak ratio", _leaks(cells["leak"])
    yield "The manifold term costs 11-14%", _overhead(main)
    yield "The main matrix takes under one day", _time(main)


def _clean(cells: Cells) -> str:
    clean = cells.clean()
    if not clean:
        return MISSING
    ours, theirs = spread(clean), paper.section("nyc", "main")["ghost"]["clean"][0]
    near = "Yes" if abs(ours["mean"] - theirs) <= CLEAN_WITHIN else "No"
    return f"{near}: {show(ours)} here, {ours['mean'] - theirs:+.4f} from the paper's (near: within {CLEAN_WITHIN})."


def _ghost_random(cells: Cells) -> str:
    parts = _each(cells, "ghost", "random", tuple(ADVERSARIES))
    if not parts:
        return MISSING
    won = [name for name, v in parts if v.word == "lower"]
    verdict = (
        f"Clearly below random only under {', '.join(won)}." if won else "No: under no adversary clearly below random."
    )
    return f"{verdict} " + "; ".join(f"{name}: {v.text}" for name, v in parts) + "."


def _ghost_pgd(cells: Cells) -> str:
    parts = [(f"{name} accuracy", v) for name, v in _each(cells, "ghost", "pgd", tuple(ADVERSARIES))]
    one, two = cells.row("ghost"), cells.row("pgd")
    for key in ("prot", "mean", "worst"):
        v = against(one[key]["seeds"], two[key]["seeds"]) if key in one and key in two else None
        parts += [(f"Δ{key}", v)] if v else []
    if not parts:
        return MISSING
    better = [name for name, v in parts if v.word == ("higher" if name.startswith("Δ") else "lower")]
    worse = [name for name, v in parts if v.clear and name not in better]
    verdict = f"Clearly better in {len(better)} of {len(parts)} figures, clearly worse in {len(worse)}. "
    return verdict + "GHOST minus PGD: " + "; ".join(f"{name} {v.text}" for name, v in parts) + "."


def _orders(cells: Cells) -> str:
    said = []
    for adversary, name in ADVERSARIES.items():
        orders = [_order(cells, adversary, metric) for metric in METRICS]
        if any(order is None for order in orders):
            continue
        first = orders[0] or []
        same = all(order == first for order in orders)
        unclear = sum(
            1
            for a, b in combinations(PAPERS, 2)
            if (v := against(cells.series(a, adversary), cells.series(b, adversary))) and not v.clear
        )
        printed = sorted(PAPERS, key=lambda m: paper.section("nyc", "main")[m][adversary][0])
        listing = (
            " < ".join(map(label, first))
            if same
            else "; ".join(
                f"{metric}: {' < '.join(map(label, order or []))}"
                for metric, order in zip(METRICS, orders, strict=True)
            )
        )
        said.append(
            f"{name}: {'the same' if same else 'not the same'} ({listing}); {unclear} of 6 pairs inside the "
            f"spread under acc@1; the paper has {'the same' if first == printed else 'another'} order"
        )
    return ". ".join(said) + "." if said else MISSING


def _order(cells: Cells, adversary: str, metric: str) -> list[str] | None:
    found = {m: cells.series(m, adversary, metric=metric) for m in PAPERS}
    known = {m: float(np.mean(v)) for m, v in found.items() if v}
    return sorted(PAPERS, key=lambda m: known[m]) if len(known) == len(PAPERS) else None


def _noise(cells: Cells) -> str:
    said = []
    for adversary, name in ADVERSARIES.items():
        found = [spread(v) for m in (*PAPERS, *OURS, "random") if (v := cells.series(m, adversary))]
        if len(found) > 1:
            means = [s["mean"] for s in found]
            typical = float(np.sqrt(np.mean([s["std"] ** 2 for s in found])))
            said.append(f"{name}: from best to worst method {max(means) - min(means):.4f}, over seeds ± {typical:.4f}")
    return "; ".join(said) + "." if said else MISSING


def _leak_share(cells: Cells) -> str:
    alone = cells.leak_only()
    if not alone:
        return MISSING
    said = []
    for method in (*PAPERS, "random"):
        restored, mixed = cells.series(method, "bridge"), cells.series(method, "leak-mixed")
        if restored:
            share = spread([a / r if r else np.nan for a, r in zip(alone, restored, strict=True)])
            adds = against(restored, mixed)
            text = f"; A2 minus leak-mixed {adds.text}" if adds else ""
            said.append(f"{label(method)}: {share['mean']:.0%} ± {share['std']:.0%}{text}")
    return f"What leak-only gives ({show(spread(alone))}) as a share of A2's acc@1: " + ". ".join(said) + "."


def _identity(cells: Cells) -> str:
    said = []
    for method in (*PAPERS, "random"):
        found = (cells.figure(method, "bridge") or {}).get("denoiser_identity")
        if found:
            first, last = (spread([seed[k] for seed in found]) for k in (1, -1))
            said.append(
                f"{label(method)} {first['mean']:.3f} ± {first['std']:.3f} ({last['mean']:.3f} after the last pass)"
            )
    mine = (cells.figure("ghost", "bridge") or {}).get("denoiser_identity")
    near = f"{'Yes' if np.mean([s[1] for s in mine]) > 0.5 else 'No'} (yes: over half). " if mine else ""
    return f"{near}Share of positions that it leaves as released, first pass: {'; '.join(said)}." if said else MISSING


def _entropy(cells: Cells) -> str:
    said = []
    for method in (*PAPERS, "random"):
        found = (cells.figure(method, "frequency") or {}).get("table_entropy_bits")
        if found:
            said.append(f"{label(method)} {show(spread(found), 2)}")
    if not said:
        return MISSING
    bits = {m: (cells.figure(m, "frequency") or {}).get("table_entropy_bits") for m in ("ghost", "pgd", "random")}
    pairs = {label(m): against(bits["ghost"], bits[m]) for m in ("pgd", "random")}
    parts = [f" GHOST minus {name}: {v.text}." for name, v in pairs.items() if v]
    return f"Bits, H(clean | released) over the leaked pairs at {LEAK:.0%}: {'; '.join(said)}.{''.join(parts)}"


def _naturalness(cells: Cells) -> str:
    found = {m: s for m in (*PAPERS, "random") if (s := cells.release(m, "naturalness"))}
    if "ghost" not in found or "pgd" not in found:
        return MISSING
    order = sorted(found, key=lambda m: -found[m]["mean"])
    gain = 1 - found["ghost"]["mean"] / found["pgd"]["mean"]
    second = against(found["ghost"]["seeds"], found["random"]["seeds"]) if "random" in found else None
    text = f" GHOST minus random: {second.text}." if second else ""
    listing = ", ".join(f"{label(m)} {show(found[m], 2)}" for m in order)
    first = next(m for m in order if m != "random") == "ghost"
    verdict = "GHOST is the most natural of the paper's methods" if first else "GHOST is not the most natural of them"
    return f"{verdict}. From most natural: {listing}. GHOST against PGD: {gain:+.1%}.{text}"


def _plausibility(cells: Cells) -> str:
    said = []
    for method in (*PAPERS, "random"):
        rate, km = (cells.release(method, "plausibility", k) for k in ("substitution_rate", "mean_km"))
        if rate and km:
            said.append(f"{label(method)} {rate['mean']:.3f} substituted, {km['mean']:.2f} km")
    note = " TS-UE's rate and displacement were tuned towards the paper's, not found."
    return "; ".join(said) + "." + note if said else MISSING


def _manifold(cells: Cells) -> str:
    said = []
    for other in (*OURS, "random"):
        parts = _each(cells, "ghost", other, ("none", "bridge", "frequency"))
        if parts:
            said.append(f"GHOST minus {label(other)}: " + "; ".join(f"{name} {v.text}" for name, v in parts))
    return ". ".join(said) + "." if said else MISSING


def _best(cells: Cells, higher: Sequence[str], lower: Sequence[str] = ()) -> str:
    """Whether plain GHOST is the best of a sweep, and clearly so."""
    said: list[str] = []
    won = 0
    others = [m for m in cells.methods if m not in ("ghost", "random")]
    for key in (*higher, *lower):
        rows = {m: cells.row(m) for m in ("ghost", *others)}
        if not others or any(key not in row for row in rows.values()):
            continue
        sign = 1 if key in higher else -1
        best = max(rows, key=lambda m: sign * rows[m][key]["mean"])
        rival = max(others, key=lambda m: sign * rows[m][key]["mean"])
        gap = against(rows["ghost"][key]["seeds"], rows[rival][key]["seeds"])
        won += bool(gap and gap.word == ("higher" if sign > 0 else "lower"))
        name = f"Δ{key}" if key in ("prot", "mean", "worst") else "Δsurv A2"
        said.append(
            f"{name}: best is {label(best, cells.study)}; the default minus the best other, "
            f"{label(rival, cells.study)}: {gap.text if gap else MISSING}"
        )
    return f"Clearly best in {won} of {len(said)} columns. " + ". ".join(said) + "." if said else MISSING


def _rounds(cells: Cells) -> str:
    rows = {m: cells.row(m) for m in cells.methods if m != "random"}
    if not rows or any("mean" not in row for row in rows.values()):
        return MISSING
    means = [row["mean"]["mean"] for row in rows.values()]
    typical = float(np.sqrt(np.mean([row["mean"]["std"] ** 2 for row in rows.values()])))
    most = {key: max(rows, key=lambda m: rows[m][key]["mean"]) for key in ("prot", "worst")}
    one = "ghost rounds.outer=1"
    last = max(rows, key=lambda m: int(m.rpartition("=")[2]) if "=" in m else 5)
    trend = against(rows[one]["prot"]["seeds"], rows[last]["prot"]["seeds"]) if one in rows else None
    text = f" Δprot of one round minus {label(last, 'rounds')}: {trend.text}." if trend else ""
    return (
        f"All Δmean lie within {max(means) - min(means):.4f} "
        f"(the paper: {paper.claims()['mean_gap_band_over_rounds']}), over seeds ± {typical:.4f}. "
        f"Largest Δprot: {label(most['prot'], 'rounds')} (the paper: T=1). "
        f"Largest Δworst: {label(most['worst'], 'rounds')} (the paper: T=5).{text}"
    )


def _leaks(cells: Cells) -> str:
    said: list[str] = []
    third: list[str] = []
    for ratio in sorted({r for _, _, r in cells.contests if r is not None}):
        parts = []
        for adversary, name in (("bridge", "A2"), ("frequency", "A3")):
            key = f"surv_{adversary}"
            one, two, chance = (cells.row(m, ratio).get(key) for m in ("ghost", "pgd", "random"))
            if one and two and (v := against(one["seeds"], two["seeds"])):
                level = f" (GHOST {one['mean']:+.4f}, PGD {two['mean']:+.4f}"
                level += f", random {chance['mean']:+.4f})" if chance else ")"
                parts.append(f"{name} {v.text}{level}")
                third += [v.word] if name == "A3" else []
        if parts:
            said.append(f"at {ratio:.0%}: " + "; ".join(parts))
    clear = f"A3: clearly lower at {third.count('lower')} of {len(third)} ratios, higher at {third.count('higher')}. "
    return f"{clear}Survival gap of GHOST minus PGD, " + ". ".join(said) + "." if said else MISSING


def _overhead(cells: Cells) -> str:
    if "manifold_share" in cells.scoring:
        return (
            f"It takes {cells.scoring['manifold_share']:.1%} of one scoring pass on a CPU "
            f"({cells.scoring['pass_seconds']:.1f} s over {cells.scoring['positions']:,} positions; "
            "`ghostpoi bench scoring`)."
        )
    one, two = (cells.release(m, "release_seconds") for m in ("ghost", "pgd"))
    if not (one and two):
        return MISSING
    ours, theirs = (float(np.median(s["seeds"])) for s in (one, two))
    return (
        f"A whole GHOST release against PGD's: {ours / theirs - 1:+.0%} time (medians over seeds {ours:.1f} s and "
        f"{theirs:.1f} s; refitting is included, so it is not the claimed share of scoring)."
    )


def _time(cells: Cells) -> str:
    keys = ("victim_seconds", "adversary_seconds", "release_seconds")
    figures = [*cells.contests.values(), *cells.releases.values()]
    total = sum(sum(f.get(key, [])) for f in figures for key in keys)
    hours = paper.claims()["wall_clock_hours_main_two_cities"]
    if not total:
        return MISSING
    return (
        f"The cells of one city and protocol, controls included, add up to {total / 60:.1f} minutes on "
        f"{', '.join(cells.about_all('hardware'))} (the paper: under {hours} hours for two "
        f"cities on {paper.claims()['hardware']})."
    )


def _each(cells: Cells, one: str, two: str, adversaries: Sequence[str]) -> list[tuple[str, Verdict]]:
    found = ((ADVERSARIES[a], against(cells.series(one, a), cells.series(two, a))) for a in adversaries)
    return [(name, v) for name, v in found if v is not None]


def contradictions() -> Table:
    """Where the paper's printed gaps differ from its own accuracies or other tables by more than rounding."""
    rows = tuple(
        (paper.CITIES[d.city], label(d.method).removesuffix(" (calibrated)"), d.figure.replace("surv_", "Δsurv ") if
         d.figure.startswith("surv") else f"Δ{d.figure}", f"{d.printed:.4f}", f"{d.otherwise:.4f}", d.source)
        for d in paper.contradictions()
    )  # fmt: skip
    heads = ("city", "method", "gap", "printed", "otherwise", "by")
    return Table(
        "Printed gaps of the paper that its other figures contradict by more than rounding",
        heads,
        rows or ((NONE,) * 6,),
    )
