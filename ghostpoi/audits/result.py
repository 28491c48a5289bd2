"""What an audit measured in a release or in all of its regions, what it gives away, and the result.

What is given away is judged from the hits of adversaries and controls that are chosen on validation steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ghostpoi import __version__
from ghostpoi.audits import controls
from ghostpoi.audits.controls import CLEAN, DISTANCE, RANDOM, RANDOM_MATCHED, in_table_order, under, uses_leak
from ghostpoi.audits.grid import HITS, Contest
from ghostpoi.audits.match import TablePair, joint_venues
from ghostpoi.audits.measures.accuracy import PARTS, in_one, rounded
from ghostpoi.audits.measures.gaps import LEVEL, accuracy_lost, spread
from ghostpoi.audits.persons import Persons
from ghostpoi.audits.persons import joined as joined_persons
from ghostpoi.audits.persons import summary as persons_summary
from ghostpoi.audits.request import RELEASE, Attacks, AuditSettings
from ghostpoi.audits.verdicts import LEAKS, SEVERITY, Player, best, conclude, decide, judge
from ghostpoi.data.checkins import Bytes, Longs
from ghostpoi.data.displacement import Moves, moves, without_category
from ghostpoi.draw.whole_table import fast_steps
from ghostpoi.release.manifest import settings_of
from ghostpoi.settings import SpeedSettings


@dataclass(frozen=True)
class RowCounts:
    """What is counted over all rows of a release or of a region."""

    moved: Moves
    steps: dict[str, tuple[int, int]]  # of the clean and the released table: all, and those over the speed limit
    has_category: bool

    @property
    def measures(self) -> Mapping[str, float | None]:
        """Speed violations are the share of all steps of users that are faster than the limit, in sessions or not."""
        found = self.moved.measures
        for name, (steps, fast) in self.steps.items():
            found[f"speed_violations_{name}"] = fast / max(1, steps)
        return found if self.has_category else without_category(found)


def count_rows(pair: TablePair, speed: SpeedSettings) -> RowCounts:
    """Compare all rows. Withheld rows count as not substituted.

    The steps of the release are counted as anyone can count them: a pseudonym is a user.
    """
    _, after, venues = joint_venues(pair)
    clean, released = pair.clean.venue, pair.clean.venue.copy()
    released[pair.clean_row] = after
    shown = pair.released if pair.pseudonym is None else replace(pair.released, user=pair.pseudonym.astype(np.int32))
    steps = {}
    for name, table in (("clean", pair.clean), ("released", shown)):
        counted = fast_steps(table, speed.limit_kmh, speed.min_gap_s)
        steps[name] = int(counted["steps"]), int(counted["steps_over_limit"])
    return RowCounts(moves(venues, clean, released), steps, bool(pair.clean.category_field))


STEPS, FAR = COUNTS = ("steps", "far_moves")  # what distances are counted over
SHARES = ("restored", "of_substituted", "spoiled")


class StepCounts(NamedTuple):
    """What accuracies, shares and statistics are taken of."""

    test: int  # steps of the test sessions
    moves: int
    last: int
    validation: int  # steps of the validation sessions
    trained: int  # positions
    substituted: int  # of them
    positions: int  # of all sessions
    steps: int
    users: int


@dataclass(frozen=True)
class Measured:
    """What was measured in a release or in one region of it.

    Measures of contests are lists with one value per seed; HITS are a bit per test step, packed.
    """

    contests: dict[Contest, dict[str, Any]]
    floors: dict[str, dict[str, Any]]  # as contests
    counts: StepCounts
    step_users: Longs  # (test steps,) the user of each, numbered per region
    rows: RowCounts
    utility: dict[str, dict[str, float]]
    sessions: dict[str, int]
    released: int  # rows that lack no value
    kept: int = 0  # rows that lack a value, which are genuine
    kept_columns: tuple[str, ...] = ()
    naturalness: dict[str, float] | None = None
    bound: dict[str, float] | None = None  # of releases by crowds
    persons: Persons | None = None
    sample: dict[str, Any] | None = None  # of the people, in a file with very many visits


def result(
    request: Attacks, chosen: AuditSettings, manifest: Mapping[str, Any] | None, m: Measured,
    given_away: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Return the result: rounded accuracies, everything else that was measured, and what follows.

    The figures of an adversary or a control are those of the victim that does best on validation sessions.
    """
    named = _named(m)
    for name, floor in m.floors.items():
        named[name] = _spreads(floor, named[CLEAN]["acc@1"]["seeds"], m.counts)
    others = sorted((name for name in named if name not in (CLEAN, *request.adversaries)), key=in_table_order)
    bound = m.bound and {  # mean numbers of guesses to a tenth, vulnerabilities as shares
        name: round(value, 1) if name.endswith("_guesses") else rounded([value], m.counts.trained)[0]
        for name, value in m.bound.items()
    }
    found = {
        "clean": named[CLEAN], "adversaries": {name: named[name] for name in request.adversaries},
        "controls": {name: named[name] for name in others}, "gives_away": dict(given_away),
        "plausibility": m.rows.measures, "naturalness": m.naturalness, "bound": bound,
        "persons": persons_summary(m.persons), "sample": m.sample, "utility": m.utility,
        "protocol": request.protocol, "victims": list(request.victims), "leak": request.leak,
        "leak_by": request.leak_by, "sessions": m.sessions, "test_positions": m.counts.test,
        "kept_columns": list(m.kept_columns),
        "pseudonyms": settings_of(dict(manifest)).identity.pseudonyms if manifest else "keep",
        "settings": {name: value for name, value in asdict(chosen).items() if name != "limits"},
        "version": __version__,
    }  # fmt: skip
    return found | {"limits": decide(chosen.limits.given, found)} | conclude(found)


Found = TypeVar("Found", bound=Mapping[str, Any])
Key = TypeVar("Key")


def best_of(by_victim: Mapping[Key, Found]) -> tuple[Key, Found]:
    """Return the victim with the best acc@1 on validation sessions, and its measures; ties go to the first."""
    return max(by_victim.items(), key=lambda item: float(np.mean(item[1]["validation"])))


def _named(m: Measured) -> dict[str, dict[str, Any]]:
    """Return the figures of each adversary and control: those of the chosen victim, and of all by victim."""
    each: dict[str, dict[str, dict[str, Any]]] = {}
    for contest, measures in m.contests.items():
        random = contest.release in (RANDOM, RANDOM_MATCHED)
        name = under(contest.release, contest.adversary) if random else contest.adversary
        each.setdefault(name, {})[contest.victim] = measures
    clean = {victim: rounded(found["all"]["acc@1"], m.counts.test) for victim, found in each[CLEAN].items()}
    best, _ = best_of(each[CLEAN])
    named = {}
    for name, by_victim in each.items():
        victim, measures = best_of(by_victim)
        figures = {v: _spreads(found, clean.get(v, clean[best]), m.counts) for v, found in by_victim.items()}
        named[name] = _spreads(measures, clean[best], m.counts) | {"victim": victim, "by_victim": figures}
    return named


def _spreads(measures: dict[str, Any], clean: Sequence[float], counts: StepCounts) -> dict[str, Any]:
    """Mean, deviation and seeds of the measures that an audit reports, rounded."""
    values = {
        name: rounded(seeds, counts.moves if name.endswith("_moves") else counts.test)
        for name, seeds in in_one(measures).items()
    }
    values |= {name: rounded(measures[name], counts.trained) for name in SHARES if name in measures}
    if "validation" in measures:
        values["validation"] = rounded(measures["validation"], counts.validation)
    values["accuracy_lost"] = accuracy_lost(clean, values["acc@1"])
    found: dict[str, Any] = {name: spread(seeds) for name, seeds in values.items()}
    if distance := measures.get(DISTANCE):  # shares, rounded by the fewest steps of a seed, and mean numbers of steps
        near = {n: spread(rounded(s, int(min(distance[_of(n)])))) for n, s in distance.items() if n not in COUNTS}
        found[DISTANCE] = near | {name: round(float(np.mean(distance[name]))) for name in COUNTS}
    return found


def _of(name: str) -> str:
    """The number of steps that a share of guesses is of."""
    return FAR if name.startswith(FAR) else STEPS


Weights = Mapping[str, Sequence[int]]  # by the name of a measure or of a group of them: one per region


def joined(each: Sequence[Measured]) -> Measured:
    """Join what was measured in the regions.

    Accuracies are those over the test steps of all regions. Regions share no venue and no square, so divergences of
    venues and the common part of flows are those of the whole, too; other statistics of use are means over regions.
    """
    first, c = each[0], np.array([one.counts for one in each])  # (regions, counts)
    counts = {name: c[:, at].tolist() for at, name in enumerate(StepCounts._fields)}
    kept = np.subtract(counts["trained"], counts["substituted"]).tolist()
    weights: Weights = counts | {
        "all": counts["test"], "restored": counts["trained"], "of_substituted": counts["substituted"], "spoiled": kept,
    }  # fmt: skip
    of_use: Weights = {"flows": counts["steps"], "gyration": counts["users"]}
    bounds = [one.bound for one in each if one.bound is not None]
    natural = [one.naturalness for one in each if one.naturalness is not None]
    rows, some = [one.rows for one in each], [int(one.step_users.max(initial=-1)) + 1 for one in each]
    return Measured(
        contests={name: joined_measures([one.contests[name] for one in each], weights) for name in first.contests},
        floors={name: joined_measures([one.floors[name] for one in each], weights) for name in first.floors},
        counts=StepCounts(*c.sum(axis=0).tolist()),
        step_users=np.concatenate([one.step_users + n for one, n in zip(each, np.cumsum([0, *some]), strict=False)]),
        rows=RowCounts(
            Moves.added([one.moved for one in rows]),
            {name: tuple(np.sum([one.steps[name] for one in rows], axis=0).tolist()) for name in rows[0].steps},
            rows[0].has_category,
        ),
        utility={
            name: means([one.utility[name] for one in each], of_use.get(name, counts["positions"]))
            for name in first.utility
        },
        sessions={part: sum(one.sessions[part] for one in each) for part in first.sessions},
        released=sum(one.released for one in each), kept=sum(one.kept for one in each),
        kept_columns=tuple(dict.fromkeys(name for one in each for name in one.kept_columns)),
        naturalness=means(natural, weights["restored"]) if natural else None,
        bound=means(bounds, weights["restored"]) if len(bounds) == len(each) else None,
        persons=joined_persons([one.persons for one in each]),
    )  # fmt: skip


def joined_measures(each: Sequence[Mapping[str, Any]], weights: Weights) -> dict[str, Any]:
    """Join the accuracies and recovered shares of one contest; values are numbers, or lists with one per seed."""
    parts = {part: means([one[part] for one in each], weights[part]) for part in PARTS}
    alone = (*SHARES, "validation")
    found = parts | means([{name: one[name] for name in alone if name in one} for one in each], weights)
    if HITS in each[0]:
        seeds = zip(*(one[HITS] for one in each), strict=True)
        found[HITS] = [np.packbits(np.concatenate(_bits(regions, weights["all"]))) for regions in seeds]
    if DISTANCE in each[0]:
        near = [one[DISTANCE] for one in each]
        total = {name: np.sum([one[name] for one in near], axis=0) for name in COUNTS}
        found[DISTANCE] = {name: value.tolist() for name, value in total.items()}
        for name in (name for name in near[0] if name not in COUNTS):
            right = np.sum([np.multiply(one[name], one[_of(name)]) for one in near], axis=0)
            found[DISTANCE][name] = (right / np.maximum(total[_of(name)], 1)).tolist()
    return found


def _bits(packed: Sequence[Bytes], counts: Sequence[int]) -> list[Bytes]:
    return [np.unpackbits(bits, count=n) for bits, n in zip(packed, counts, strict=True)]


def means(each: Sequence[Mapping[str, Any]], weights: Weights | Sequence[int]) -> dict[str, Any]:
    """Return the mean of every value, weighted by region."""

    def mean(name: str) -> Any:
        weight = weights[name] if isinstance(weights, Mapping) else weights
        used = weight if sum(weight) else [1] * len(weight)  # of nothing, every share is 0
        return np.average(np.array([one[name] for one in each], float), axis=0, weights=used).tolist()

    return {name: mean(name) for name in each[0]}


Place = Contest | str  # where the measures of a player stand: a contest or a floor


class Chosen(NamedTuple):
    """Who is compared, all chosen on validation steps."""

    adversary: Place
    control: Place  # what adversaries with the same knowledge have without the release
    clean: Place

    @property
    def contests(self) -> list[Contest]:
        return [place for place in self if isinstance(place, Contest)]


def given_away(
    whole: Measured, regions: Mapping[int, Measured], further: Sequence[Measured] = ()
) -> dict[str, dict[str, Any]]:
    """Return what the release gives away by what adversaries hold: no leak, or one.

    Of several regions, the worst one counts. All their intervals hold together: each has the level that Bonferroni's
    correction leaves it. `further` windows of the same sessions add test steps.
    """
    found = _judged([whole, *further])
    if len(regions) < 2:
        return found
    level = 1 - (1 - LEVEL) / len(regions)
    each = {number: _judged([one], level) for number, one in regions.items()}
    for leak, pool in found.items():
        number = max(each, key=lambda n: (SEVERITY[each[n][leak]["verdict"]], each[n][leak]["mean"]))
        pool["pool_verdict"], pool["worst_region"] = pool["verdict"], {"region": number} | each[number][leak]
        pool["verdict"] = max(pool["verdict"], each[number][leak]["verdict"], key=SEVERITY.__getitem__)
    return found


def _judged(windows: Sequence[Measured], level: float = LEVEL) -> dict[str, dict[str, Any]]:
    """Judge by what adversaries hold. The first window chooses who is compared, all are tested."""

    def player(place: Place) -> Player:
        packed = ((_measures(one, place)[HITS], one.counts.test) for one in windows)
        hits = [np.stack(_bits(seeds, [steps] * len(seeds))) for seeds, steps in packed]  # (S, N) each
        name = place.adversary if isinstance(place, Contest) else place
        return Player(name, np.concatenate(hits, axis=1).astype(bool))

    users, found = np.concatenate([one.step_users for one in windows]), {}
    for leak, places in chosen(windows[0]).items():
        adversary, control, clean = map(player, places)
        found[leak] = judge(adversary, control, clean, users, level)
    return found


def chosen(m: Measured) -> dict[str, Chosen]:
    """Choose the strongest adversary, the best control and the best victim of clean data."""
    on_release = [contest for contest in m.contests if contest.release == RELEASE]
    on_clean = [contest for contest in m.contests if contest.release == CLEAN]
    leaked = controls.LEAK_ONLY, controls.LEAK_STAY
    alone: list[Place] = [contest for contest in on_clean if contest.adversary in leaked]
    clean: list[Place] = [contest for contest in on_clean if contest.adversary == CLEAN]
    held: dict[str, tuple[list[Place], list[Place]]] = {
        "no_leak": ([contest for contest in on_release if not uses_leak(contest.adversary)], [*controls.FLOORS]),
        "with_leak": ([*on_release], [*alone, *controls.FLOORS]),
    }

    def top(places: list[Place]) -> Place:
        return places[best([_measures(m, place)["validation"] for place in places])]

    return {leak: Chosen(*map(top, (*held[leak], clean))) for leak in LEAKS}


def _measures(m: Measured, place: Place) -> Mapping[str, Any]:
    return m.contests[place] if isinstance(place, Contest) else m.floors[place]
