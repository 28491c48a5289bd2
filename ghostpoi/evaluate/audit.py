"""The audit: what can still be learned from a release, ours or another tool's.

The auditor holds the clean file and the release. The audit plays the recipient: it filters the release alone, hands its
training sessions to every adversary, trains a victim on what each restores, and tests all victims on the clean last
part of each user's sessions. Every result is compared with controls.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.evaluate.audit_request import (
    LM_UNITS,
    RELEASE,
    AuditRequest,
    AuditSettings,
    audit_settings,
    cache_of,
    check_request,
    random_controls,
)
from ghostpoi.evaluate.audit_result import Measured, StepCounts, result
from ghostpoi.evaluate.controls import RANDOM, RANDOM_MATCHED
from ghostpoi.evaluate.default_set import completed
from ghostpoi.evaluate.grid import Grid
from ghostpoi.evaluate.kept_columns import kept_columns
from ghostpoi.evaluate.matched_control import matched_draw, matched_rule
from ghostpoi.evaluate.measures.accuracy import moves
from ghostpoi.evaluate.measures.accuracy_gaps import strongest
from ghostpoi.evaluate.measures.utility import utility
from ghostpoi.evaluate.restoration import Contest, Release, with_poi
from ghostpoi.evaluate.rounding import rounded
from ghostpoi.evaluate.row_matching import AlignedSessions, TablePair, align, public_rule, publisher_of, read_pair
from ghostpoi.evaluate.stored_audit import check_writable, store
from ghostpoi.evaluate.whole_release import count_rows
from ghostpoi.models.trajectory_lm import load_or_train, naturalness
from ghostpoi.progress import Report, Say
from ghostpoi.publish.methods import METHODS
from ghostpoi.publish.publication_settings import publication
from ghostpoi.publish.rounds import publish
from ghostpoi.publish.task import Task
from ghostpoi.randomness import Seed
from ghostpoi.settings import TrajectoryLM


def audit(request: AuditRequest, say: Say, report: Report) -> dict[str, Any]:
    """Measure a release and, if it is ours, store the public part of the result in its manifest.

    The result includes what earlier runs with the same settings stored there.
    """
    check_request(request)
    pair = read_pair(request.file, request.release, request.mapping, request.private_folder)
    kept = (pair.manifest or {}).get("rows", {}).get("missing", {}).get("kept", 0)
    chosen = audit_settings(request, pair.manifest)
    keep = request.store and pair.manifest is not None
    if keep:
        check_writable(request.release.path)
    adversaries = completed(request.adversaries, bool(pair.kept), pair.pseudonym is not None)
    request = replace(request, adversaries=adversaries)
    data = align(pair, chosen.filters)
    grid = grid_of(request, chosen, pair, data, report)
    contests = run_contests(request, grid, random_controls(pair.manifest), data.test.positions - len(data.test))
    found = result(request, chosen, pair.manifest, measured(request, chosen, pair, data, grid, contests, say))
    found["release_sha256"] = pair.sha256
    made = store(request.release.path, request.private_folder, found, say, request.replace) if keep else found
    return made | {"rows": {"audited": len(pair.released), "kept_genuine": kept}}


def grid_of(
    request: AuditRequest, chosen: AuditSettings, pair: TablePair, data: AlignedSessions, report: Report
) -> Grid:
    publisher = publisher_of(pair.manifest)
    ours, rule = (public_rule(pair, data.vocabulary, chosen, method) for method in (publisher, METHODS[RANDOM]))
    clean, pseudonym = data.train.poi, data.pseudonym

    @cache
    def random(number: int) -> Ints:
        """The paper's control: a uniform draw from the candidate sets, at the same positions."""
        settings = replace(publication(RANDOM), speed=chosen.speed)
        task = Task(settings, data.train, data.vocabulary, rule.candidates)
        # A derived seed, because a publisher with the same small seed would have drawn the same release.
        return publish(task, Seed(Seed(number).derive("audit", "random")), request.device).poi

    @cache
    def matched(number: int) -> Ints:
        return matched_draw(ours, clean, data.released, Seed(number))

    releases = {
        RELEASE: Release(lambda number: data.released, ours, pseudonym),
        RANDOM: Release(random, rule, pseudonym),
    }
    if publisher is not None:
        same = matched_rule(publisher, ours, clean, data.released)
        releases[RANDOM_MATCHED] = Release(matched, same, pseudonym)
    return Grid(
        train=data.train, val=data.val, test=data.test, vocabulary=data.vocabulary, releases=releases.__getitem__,
        seeds=request.seeds, protocol=request.protocol, model=chosen.victim, training=chosen.training,
        device=request.device, cache=cache_of(request), kept=kept_columns(pair, data), report=report,
    )  # fmt: skip


def measured(
    request: AuditRequest, chosen: AuditSettings, pair: TablePair, data: AlignedSessions, grid: Grid,
    contests: dict[Contest, dict[str, Any]], say: Say,
) -> Measured:  # fmt: skip
    """Add to the measures of the contests all that needs no victim."""
    test, every = data.test, data.all
    counts = StepCounts(
        test=test.positions - len(test), moves=int(moves(test).sum()), last=int((test.length > 1).sum()),
        trained=data.train.positions, substituted=int((data.released != data.train.poi).sum()),
        positions=every.positions, steps=every.positions - len(every), users=len(np.unique(every.user)),
    )  # fmt: skip
    return Measured(
        contests=contests,
        floors=grid.floors() | {"markov_on_release": grid.markov(RELEASE, 0)},
        counts=counts,
        rows=count_rows(pair, chosen.speed),
        utility=utility(data.all, data.all_released, data.vocabulary),
        sessions={"train": len(data.train), "val": len(data.val), "test": len(data.test)},
        released=len(pair.released),
        kept_columns=tuple(pair.kept),
        naturalness=_naturalness(chosen, data, grid, say) if request.naturalness else None,
    )


def run_contests(
    request: AuditRequest, grid: Grid, random: Sequence[str], positions: int
) -> dict[Contest, dict[str, Any]]:
    """Return the measures of all contests, including the random releases against the strongest adversary."""
    # The adversary that restores most is likely the strongest. It is known before any victim is trained, so its
    # controls can train side by side with the other victims.
    ours = {name: request.contest(RELEASE, name) for name in request.adversaries}
    seeds = range(request.seeds)
    likely = strongest({n: [grid.restoration(c, seed).measures["restored"] for seed in seeds] for n, c in ours.items()})
    contests = list(dict.fromkeys([*request.contests(random), *(request.contest(name, likely) for name in random)]))
    found = {contest: cell["measures"] for contest, cell in zip(contests, grid.cells(contests), strict=True)}
    top = strongest({name: rounded(found[contest]["all"]["acc@1"], positions) for name, contest in ours.items()})
    missing = [contest for contest in (request.contest(name, top) for name in random) if contest not in found]
    cells = grid.cells(missing) if missing else []
    return found | {contest: cell["measures"] for contest, cell in zip(missing, cells, strict=True)}


def _naturalness(chosen: AuditSettings, data: AlignedSessions, grid: Grid, say: Say) -> dict[str, float]:
    """Mean log-likelihood of the clean and the released training sessions under a trajectory LM of the clean ones."""
    grid.report("training the trajectory LM", 0)
    settings, folder = TrajectoryLM(chosen.lm, chosen.lm_training), grid.cache.folder / "trajectory_lm"
    lm = load_or_train(folder, grid.train, grid.rows, settings, grid.device, say)
    grid.report("training the trajectory LM", LM_UNITS)
    return {"clean": naturalness(lm, data.train), "released": naturalness(lm, with_poi(data.train, data.released))}
