"""The result of an audit, made from what was measured in a release or in all of its regions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ghostpoi import __version__
from ghostpoi.audits.controls import CLEAN, DISTANCE, RANDOM, RANDOM_MATCHED, in_table_order, under
from ghostpoi.audits.grid import HITS, Contest
from ghostpoi.audits.match import TablePair, joint_venues
from ghostpoi.audits.measures.accuracy import PARTS, in_one, rounded
from ghostpoi.audits.measures.gaps import accuracy_lost, spread
from ghostpoi.audits.persons import Persons
from ghostpoi.audits.persons import joined as joined_persons
from ghostpoi.audits.persons import summary as persons_summary
from ghostpoi.audits.request import Attacks, AuditSettings
from ghostpoi.audits.verdicts import conclude, decide
from ghostpoi.data.checkins import Bytes, Longs
from ghostpoi.data.displacement import Moves, joined_moves, moves, without_category
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


def added(each: Sequence[RowCounts]) -> RowCounts:
    """Add up what was counted in several regions."""
    steps = {
        name: (sum(one.steps[name][0] for one in each), sum(one.steps[name][1] for one in each))
        for name in each[0].steps
    }
    return RowCounts(joined_moves([one.moved for one in each]), steps, each[0].has_category)


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
    naturalness: dict[str, float] | None = field(default=None)
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
    controls = sorted((name for name in named if name not in (CLEAN, *request.adversaries)), key=in_table_order)
    found = {
        "clean": named[CLEAN],
        "adversaries": {name: named[name] for name in request.adversaries},
        "controls": {name: named[name] for name in controls},
        "gives_away": dict(given_away),
        "plausibility": m.rows.measures,
        "naturalness": m.naturalness,
        "bound": _rounded_bound(m),
        "persons": persons_summary(m.persons),
        "sample": m.sample,
        "utility": m.utility,
        "protocol": request.protocol,
        "victims": list(request.victims),
        "leak": request.leak,
        "leak_by": request.leak_by,
        "sessions": m.sessions,
        "test_positions": m.counts.test,
        "kept_columns": list(m.kept_columns),
        "pseudonyms": settings_of(dict(manifest)).identity.pseudonyms if manifest else "keep",
        "settings": {name: value for name, value in asdict(chosen).items() if name != "limits"},
        "version": __version__,
    }
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
        each.setdefault(_name(contest), {})[contest.victim] = measures
    clean = {victim: rounded(found["all"]["acc@1"], m.counts.test) for victim, found in each[CLEAN].items()}
    best, _ = best_of(each[CLEAN])
    named = {}
    for name, by_victim in each.items():
        victim, measures = best_of(by_victim)
        figures = {v: _spreads(found, clean.get(v, clean[best]), m.counts) for v, found in by_victim.items()}
        named[name] = _spreads(measures, clean[best], m.counts) | {"victim": victim, "by_victim": figures}
    return named


def _rounded_bound(m: Measured) -> dict[str, float] | None:
    """Vulnerabilities rounded as shares are, mean numbers of guesses to a tenth."""
    return m.bound and {
        name: round(value, 1) if name.endswith("_guesses") else rounded([value], m.counts.trained)[0]
        for name, value in m.bound.items()
    }


def _name(contest: Contest) -> str:
    """The name of a contest in the result."""
    random = contest.release in (RANDOM, RANDOM_MATCHED)
    return under(contest.release, contest.adversary) if random else contest.adversary


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
    return found | ({DISTANCE: _near(measures[DISTANCE])} if DISTANCE in measures else {})


def _near(distance: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Shares of guesses near the truth, rounded by the fewest steps of a seed; and how many they are of, on average."""
    least = {name: int(min(distance[name])) for name in COUNTS}
    found: dict[str, Any] = {
        name: spread(rounded(seeds, least[_count_of(name)])) for name, seeds in distance.items() if name not in COUNTS
    }
    return found | {name: round(float(np.mean(distance[name]))) for name in COUNTS}


def _count_of(name: str) -> str:
    """The number that a share of guesses is of."""
    return FAR if name.startswith(FAR) else STEPS


Weights = Mapping[str, Sequence[int]]  # by the name of a measure or of a group of them: one per region


def joined(each: Sequence[Measured]) -> Measured:
    """Join what was measured in the regions.

    Accuracies are those over the test steps of all regions. Regions share no venue and no square, so divergences of
    venues and the common part of flows are those of the whole, too; other statistics of use are means over regions.
    """
    counts = [one.counts for one in each]
    total = StepCounts(*(sum(column) for column in zip(*counts, strict=True)))
    weights: Weights = {
        "all": [c.test for c in counts],
        "moves": [c.moves for c in counts],
        "last": [c.last for c in counts],
        "validation": [c.validation for c in counts],
        "restored": [c.trained for c in counts],
        "of_substituted": [c.substituted for c in counts],
        "spoiled": [c.trained - c.substituted for c in counts],
    }
    of_use: Weights = {"flows": [c.steps for c in counts], "gyration": [c.users for c in counts]}
    positions = [c.positions for c in counts]
    bounds = [one.bound for one in each if one.bound is not None]
    natural = [one.naturalness for one in each if one.naturalness is not None]
    return Measured(
        contests={
            contest: joined_measures([one.contests[contest] for one in each], weights) for contest in each[0].contests
        },
        floors={name: joined_measures([one.floors[name] for one in each], weights) for name in each[0].floors},
        counts=total,
        step_users=_apart([one.step_users for one in each]),
        rows=added([one.rows for one in each]),
        utility={
            name: means([one.utility[name] for one in each], of_use.get(name, positions)) for name in each[0].utility
        },
        sessions={part: sum(one.sessions[part] for one in each) for part in each[0].sessions},
        released=sum(one.released for one in each),
        kept=sum(one.kept for one in each),
        kept_columns=tuple(dict.fromkeys(name for one in each for name in one.kept_columns)),
        naturalness=means(natural, weights["restored"]) if natural else None,
        bound=means(bounds, weights["restored"]) if len(bounds) == len(each) else None,
        persons=joined_persons([one.persons for one in each]),
    )


def joined_measures(each: Sequence[Mapping[str, Any]], weights: Weights) -> dict[str, Any]:
    """Join the accuracies and recovered shares of one contest; values are numbers, or lists with one per seed."""
    parts = {part: means([one[part] for one in each], weights[part]) for part in PARTS}
    alone = (*SHARES, "validation")
    found = parts | means([{name: one[name] for name in alone if name in one} for one in each], weights)
    if HITS in each[0]:
        found[HITS] = [
            _end_to_end(regions, weights["all"]) for regions in zip(*(one[HITS] for one in each), strict=True)
        ]
    if DISTANCE in each[0]:
        found[DISTANCE] = _joined_distances([one[DISTANCE] for one in each])
    return found


def _joined_distances(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join shares of guesses near the truth; values are numbers, or lists with one per seed."""
    total = {name: np.sum([one[name] for one in each], axis=0) for name in COUNTS}
    found = {}
    for name in (name for name in each[0] if name not in COUNTS):
        count = _count_of(name)
        right = np.sum([np.multiply(one[name], one[count]) for one in each], axis=0)
        found[name] = (right / np.maximum(total[count], 1)).tolist()
    return found | {name: value.tolist() for name, value in total.items()}


def _end_to_end(regions: Sequence[Bytes], steps: Sequence[int]) -> Bytes:
    """Join the bits of the test steps of all regions."""
    return np.packbits(np.concatenate([np.unpackbits(bits, count=n) for bits, n in zip(regions, steps, strict=True)]))


def _apart(users: Sequence[Longs]) -> Longs:
    """Number the users of all regions without a collision, end to end."""
    size = [int(some.max(initial=-1)) + 1 for some in users]
    first = np.cumsum([0, *size[:-1]])
    return np.concatenate([some + number for some, number in zip(users, first, strict=True)])


def means(each: Sequence[Mapping[str, Any]], weights: Weights | Sequence[int]) -> dict[str, Any]:
    """Return the mean of every value, weighted by region."""

    def mean(name: str) -> Any:
        weight = weights[name] if isinstance(weights, Mapping) else weights
        used = weight if sum(weight) else [1] * len(weight)  # of nothing, every share is 0
        return np.average(np.array([one[name] for one in each], float), axis=0, weights=used).tolist()

    return {name: mean(name) for name in each[0]}
