"""The result of an audit, made from what was measured in a release or in all of its regions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from ghostpoi import __version__
from ghostpoi.evaluate.audit_request import AuditRequest, AuditSettings
from ghostpoi.evaluate.conclusions import conclude
from ghostpoi.evaluate.controls import CLEAN, RANDOM, RANDOM_MATCHED, in_table_order, under
from ghostpoi.evaluate.grid import over_seeds
from ghostpoi.evaluate.measures.accuracy import Metrics, in_one
from ghostpoi.evaluate.measures.accuracy_gaps import accuracy_lost, spread
from ghostpoi.evaluate.restoration import Contest
from ghostpoi.evaluate.rounding import rounded
from ghostpoi.evaluate.whole_release import RowCounts
from ghostpoi.publish.manifest import settings_of

SHARES = ("restored", "of_substituted", "spoiled")


class StepCounts(NamedTuple):
    """What accuracies, shares and statistics are taken of."""

    test: int  # steps of the test sessions
    moves: int
    last: int
    trained: int  # positions
    substituted: int  # of them
    positions: int  # of all sessions
    steps: int
    users: int


@dataclass(frozen=True)
class Measured:
    """What was measured in a release or in one region of it. Measures of contests are lists, one value per seed."""

    contests: dict[Contest, dict[str, Any]]
    floors: dict[str, dict[str, Metrics]]
    counts: StepCounts
    rows: RowCounts
    utility: dict[str, dict[str, float]]
    sessions: dict[str, int]
    released: int  # rows that lack no value
    kept: int = 0  # rows that lack a value, which are genuine
    kept_columns: tuple[str, ...] = ()
    naturalness: dict[str, float] | None = field(default=None)


def result(
    request: AuditRequest, chosen: AuditSettings, manifest: Mapping[str, Any] | None, m: Measured
) -> dict[str, Any]:
    """Return the result: rounded accuracies, everything else that was measured, and what follows."""
    clean = rounded(m.contests[request.contest(CLEAN, CLEAN)]["all"]["acc@1"], m.counts.test)
    named = {_name(contest): _spreads(found, clean, m.counts) for contest, found in m.contests.items()}
    for name, floor in m.floors.items():
        named[name] = _spreads(over_seeds([floor] * request.seeds), clean, m.counts)
    controls = sorted((name for name in named if name not in (CLEAN, *request.adversaries)), key=in_table_order)
    found = {
        "clean": named[CLEAN],
        "adversaries": {name: named[name] for name in request.adversaries},
        "controls": {name: named[name] for name in controls},
        "plausibility": m.rows.measures,
        "naturalness": m.naturalness,
        "utility": m.utility,
        "protocol": request.protocol,
        "victim": request.victim,
        "leak": request.leak,
        "sessions": m.sessions,
        "test_positions": m.counts.test,
        "kept_columns": list(m.kept_columns),
        "pseudonyms": settings_of(dict(manifest)).identity.pseudonyms if manifest else "keep",
        "settings": asdict(chosen),
        "version": __version__,
    }
    return found | conclude(found)


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
    values["accuracy_lost"] = accuracy_lost(clean, values["acc@1"])
    return {name: spread(seeds) for name, seeds in values.items()}
