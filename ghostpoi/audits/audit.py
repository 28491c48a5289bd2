"""The audit: what can still be learned from a release, ours or another tool's.

The audit plays the recipient: it filters the release alone, hands its training sessions to every adversary, trains a
victim on what each restores, and tests all victims on the clean last part of each user's sessions, next to controls.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache as once
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.attack.evidence import Outside
from ghostpoi.audits import match
from ghostpoi.audits.cache import Cache
from ghostpoi.audits.controls import ITSELF, RANDOM, RANDOM_MATCHED, completed
from ghostpoi.audits.grid import Contest, Grid, Release, over_seeds, with_poi
from ghostpoi.audits.match import AlignedSessions, TablePair, align, has_sessions, public_rule, publisher_of
from ghostpoi.audits.measures.accuracy import moves, rounded
from ghostpoi.audits.measures.bound import CrowdVisits, bound
from ghostpoi.audits.measures.gaps import strongest
from ghostpoi.audits.measures.utility import utility_with_control
from ghostpoi.audits.persons import Again
from ghostpoi.audits.persons import measured as measured_persons
from ghostpoi.audits.request import RELEASE, UNITS, Attacks, AuditRequest, AuditSettings, random_controls
from ghostpoi.audits.result import Measured, StepCounts, best_of, count_rows, given_away, joined, result
from ghostpoi.audits.result import chosen as who_is_compared
from ghostpoi.audits.stored import check_writable, store
from ghostpoi.data.checkins import Ints
from ghostpoi.data.places import slot_of
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw.methods import METHODS
from ghostpoi.draw.methods.crowd import CrowdDraw
from ghostpoi.draw.publication import Task, publication
from ghostpoi.draw.table import publish
from ghostpoi.errors import InputError
from ghostpoi.models.trajectory_lm import load_or_train, naturalness
from ghostpoi.options import option
from ghostpoi.progress import Report, Say, Whole, no_report
from ghostpoi.randomness import Seed
from ghostpoi.regions.compare import opened_pair
from ghostpoi.regions.dataset import Stages
from ghostpoi.regions.divide import read_region
from ghostpoi.regions.engine import Scale
from ghostpoi.regions.job import Job, sample, sampled
from ghostpoi.release.manifest import checked_manifest, read_manifest, settings_of, with_groups
from ghostpoi.release.verify import Check
from ghostpoi.settings import TrajectoryLM

Measures = dict[Contest, dict[str, Any]]
ENOUGH_STEPS = 3000  # test steps; with fewer, earlier windows of each user's sessions are tested too
MOST_WINDOWS = 4


def audit(request: AuditRequest, scale: Scale | None, count: int | None, say: Say, report: Report) -> dict[str, Any]:
    """Measure a release and, if it is ours, store the public part of the result in its manifest.

    The result includes what earlier runs with the same settings stored there. A release of many regions may be audited
    region by region: `count` of them, by default as many as have enough rows. Finished victims are kept in the cache,
    so an interrupted audit goes on.
    """
    request.check()
    shown = request.work()  # on the bar, which is older than what the columns of the release add
    release, private = request.release.path, request.private_folder
    manifest = checked_manifest(release) if release.is_dir() else None
    chosen, keep = request.settings_for(manifest), request.store and manifest is not None
    if keep:
        check_writable(release)
    if manifest is not None and by_region(request, scale):
        kept, rotates = bool(manifest["columns"].get("kept")), settings_of(manifest).rotates_users
        request = replace(request, adversaries=completed(request.adversaries, kept, rotates))
        with opened_pair(release, request.file, request.mapping, manifest, private, scale, report) as pair:
            found, away, more = _sampled(request, chosen, manifest, pair, count)
    else:
        if count is not None:
            raise InputError(
                f"{option('regions')} is for a release of many regions and needs {option('engine')}; leave it out"
            )
        tables = match.read_pair(request.file, request.release, request.mapping, private)
        adversaries = completed(request.adversaries, bool(tables.kept), tables.pseudonym is not None)
        request = replace(request, adversaries=adversaries)
        kept = (manifest or {}).get("rows", {}).get("missing", {}).get("kept", 0)
        whole = Whole(report, shown, request.work())
        found, away = with_windows(request, chosen, tables, None, request.open_cache(), say, whole)
        found, more = replace(found, kept=kept), {}
        whole.finish()
    sha256 = manifest["data"]["sha256"] if manifest else hashlib.sha256(request.release.raw_bytes).hexdigest()
    joint = result(request, chosen, manifest, found, away) | {"release_sha256": sha256} | more
    made = store(release, private, joint, say, request.replace) if keep else joint
    return made | {"rows": {"audited": found.released, "kept_genuine": found.kept}}


def by_region(request: AuditRequest, scale: Scale | None) -> bool:
    """Whether a release is audited region by region."""
    release = request.release.path
    return scale is not None and release.is_dir() and "regions" in read_manifest(release)


def _sampled(
    request: AuditRequest, chosen: AuditSettings, manifest: dict[str, Any], pair: tuple[Job, Job, Stages] | Check,
    count: int | None,
) -> tuple[Measured, dict[str, Any], dict[str, Any]]:  # fmt: skip
    """Audit a sample of regions; return what was measured in all of them, what they give away, and which they are."""
    if isinstance(pair, Check):
        raise InputError(
            f"{request.release} does not fit {request.file}: {pair.detail}; give the file that it was made from"
        )
    clean, written, stages = pair
    regions, random = sample(clean.regions, count), random_controls(manifest)

    def run(label: str, contests: Sequence[Contest], numbers: Sequence[int], persons: bool) -> dict[int, Measured]:
        asked = (written, replace(request, persons=persons), chosen, manifest, tuple(contests))
        found = stages.regions(label, audit_region, clean, numbers, *asked, on_gpu=request.device.type == "cuda")
        return {number: one for number, one in found.items() if one is not None}

    found = run("auditing", request.contests(random), [region.number for region in regions], True)
    if not found:
        raise InputError(
            f"{request.release}: the filters leave too few sessions in all {len(regions):,} audited regions; audit "
            f"more with {option('regions')}, or lower filters.min_poi_checkins or filters.min_session_length with "
            f"{option('set')}"
        )
    # Which adversary is the strongest is known when all regions are joined; only then do its controls run.
    together = joined(list(found.values()))
    contests = with_controls(
        request, random, together.contests, together.counts.test,
        lambda missing: joined(list(run("auditing controls", missing, [*found], False).values())).contests,
    )  # fmt: skip
    whole = replace(together, contests=contests)
    return whole, given_away(whole, found), {"regions": sampled(clean.regions, regions, found)}


def audit_region(
    clean: Job, number: int, written: Job, request: AuditRequest, chosen: AuditSettings, manifest: dict[str, Any],
    contests: Sequence[Contest],
) -> Measured | None:  # fmt: skip
    """Audit a region like a release of its own, with its own victims and leak; None if it has too few sessions."""
    if not written.regions[number].pieces:  # all its rows are withheld
        return None
    before, after = read_region(clean, clean.regions[number]), read_region(written, written.regions[number])
    kept, names = len(after.kept), (before.path, Path(after.table.name))
    ours, theirs = replace(before, table=with_groups(before.table, manifest)), match.Side.of(after)
    pair = match.pair_of(match.Side.of(ours, theirs), theirs, names, manifest, whole_file=False)
    if not has_sessions(pair.released, chosen.filters):
        return None
    data, cache = align(pair, chosen.filters), request.open_cache()
    found = measured(request, chosen, pair, data, contests, cache, lambda text: None, no_report)
    return replace(found, kept=kept)


def with_windows(
    request: Attacks, chosen: AuditSettings, pair: TablePair, contests: Sequence[Contest] | None, cache: Cache,
    say: Say, report: Report,
) -> tuple[Measured, dict[str, Any]]:  # fmt: skip
    """Measure contests, by default all, and return what the release gives away.

    Where the test steps are few, those who are compared are tested on earlier windows of each user's sessions too.
    """
    data = align(pair, chosen.filters)
    whole = measured(request, chosen, pair, data, contests, cache, say, report)
    compared = list(dict.fromkeys(c for one in who_is_compared(whole).values() for c in one.contests))
    request, further = replace(request, naturalness=False, persons=False), list[Measured]()
    for window in range(1, MOST_WINDOWS):
        if steps_of(data.test) * window >= ENOUGH_STEPS:
            break
        earlier = align(pair, chosen.filters, window)
        if not (steps_of(earlier.train) and steps_of(earlier.val) and steps_of(earlier.test)):
            break
        further.append(measured(request, chosen, pair, earlier, compared, cache, say, no_report))
    return whole, given_away(whole, {}, further)


def measured(
    request: Attacks, chosen: AuditSettings, pair: TablePair, data: AlignedSessions,
    contests: Sequence[Contest] | None, cache: Cache, say: Say, report: Report,
) -> Measured:  # fmt: skip
    """Measure contests, by default all, and all that needs no victim."""
    grid = grid_of(request, chosen, pair, data, cache, report)
    if contests is None:
        found = run_contests(request, grid, random_controls(pair.manifest), steps_of(data.test))
    else:
        found = grid.measures(contests)
    floors = grid.floors() | {"markov_on_release": grid.markov(RELEASE, 0)}
    test, every, train, sets = data.test, data.all, data.train, grid.releases(RELEASE).rule.candidates
    counts = StepCounts(
        test=steps_of(test), moves=int(moves(test).sum()), last=int((test.length > 1).sum()),
        validation=steps_of(data.val), trained=train.positions, substituted=int((data.released != train.poi).sum()),
        positions=every.positions, steps=steps_of(every), users=len(np.unique(every.user)),
    )  # fmt: skip
    natural, persons, most = None, None, None
    if request.naturalness:
        natural = _naturalness(chosen, data, grid, say)
    if isinstance(publisher_of(pair.manifest), CrowdDraw):
        user = np.repeat(train.user, train.length).astype(np.int64)
        visits = CrowdVisits(sets, user, train.poi, slot_of(train.time))
        most = bound(visits, {"nothing": Outside(), "city": Outside.true(train, data.vocabulary)})
    if request.persons:
        report("looking for persons", 0)
        persons = measured_persons(pair, chosen.filters, chosen.persons, Again(request.device, cache))
        report("looking for persons", UNITS["persons"])
    return Measured(
        contests=found, floors={name: over_seeds([floor] * request.seeds) for name, floor in floors.items()},
        counts=counts, step_users=grid.step_users, rows=count_rows(pair, chosen.speed),
        utility=utility_with_control(every, data.all_released, data.vocabulary, sets.hidden),
        sessions={"train": len(train), "val": len(data.val), "test": len(test)}, released=len(pair.released),
        kept_columns=tuple(pair.kept), naturalness=natural, bound=most, persons=persons, sample=data.sample,
    )  # fmt: skip


def steps_of(sessions: Sessions) -> int:
    """Return the number of steps inside sessions."""
    return sessions.positions - len(sessions)


def grid_of(
    request: Attacks, chosen: AuditSettings, pair: TablePair, data: AlignedSessions, cache: Cache, report: Report
) -> Grid:
    publisher = publisher_of(pair.manifest)
    ours, rule = (public_rule(pair, data.vocabulary, chosen, method) for method in (publisher, METHODS[RANDOM]))
    clean, pseudonym = data.train.poi, data.pseudonym

    @once
    def random(number: int) -> Ints:
        """The paper's control: a uniform draw from the candidate sets, at the same positions."""
        settings = replace(publication(RANDOM), speed=chosen.speed)
        task = Task(settings, data.train, data.vocabulary, rule.candidates)
        # A derived seed, because a publisher with the same small seed would have drawn the same release.
        return publish(task, Seed(Seed(number).derive("audit", "random")), request.device).poi

    @once
    def matched(number: int) -> Ints:
        return match.matched_draw(ours, clean, data.released, Seed(number))

    releases = {
        RELEASE: Release(lambda number: data.released, ours, pseudonym),
        RANDOM: Release(random, rule, pseudonym),
    }
    if publisher is not None:
        same = match.matched_rule(publisher, ours, clean, data.released)
        releases[RANDOM_MATCHED] = Release(matched, same, pseudonym)
    return Grid(
        train=data.train, val=data.val, test=data.test, vocabulary=data.vocabulary, releases=releases.__getitem__,
        seeds=request.seeds, protocol=request.protocol, model=chosen.victim, training=chosen.training,
        device=request.device, cache=cache, kept=match.kept_columns(pair, data), report=report,
        distance=request.distance, leak_by=request.leak_by,
    )  # fmt: skip


def run_contests(request: Attacks, grid: Grid, random: Sequence[str], positions: int) -> Measures:
    """Return the measures of all contests, including the random releases against the strongest adversary."""
    # The adversary that restores most is likely the strongest. It is known before any victim is trained, so its
    # controls can train side by side with the other victims.
    ours = {name: request.contests_of(RELEASE, name)[0] for name in request.adversaries}
    shares: dict[str, list[float]] = {name: [] for name, contest in ours.items() if contest.victim != ITSELF}
    for seed in range(request.seeds):  # all adversaries under one seed: some share what they infer
        for name, found in shares.items():
            found.append(grid.restoration(ours[name], seed).measures["restored"])
    likely = strongest(shares)
    again = [contest for name in random for contest in request.contests_of(name, likely)]
    contests = list(dict.fromkeys([*request.contests(random), *again]))
    return with_controls(request, random, grid.measures(contests), positions, grid.measures)


def with_controls(
    request: Attacks, random: Sequence[str], found: Measures, positions: int,
    measure: Callable[[Sequence[Contest]], Measures],
) -> Measures:  # fmt: skip
    """Add the random releases against the strongest adversary to what was measured, if they are missing."""
    each = {
        name: best_of({c: found[c] for c in request.contests_of(RELEASE, name)})[1]["all"]["acc@1"]
        for name in request.adversaries
    }
    top = strongest({name: rounded(seeds, positions) for name, seeds in each.items()})
    missing = [c for name in random for c in request.contests_of(name, top) if c not in found]
    return found | measure(missing) if missing else found


def _naturalness(chosen: AuditSettings, data: AlignedSessions, grid: Grid, say: Say) -> dict[str, float]:
    """Mean log-likelihood of the clean and the released training sessions under a trajectory LM of the clean ones."""
    grid.report("training the trajectory LM", 0)
    settings, folder = TrajectoryLM(chosen.lm, chosen.lm_training), grid.cache.folder / "trajectory_lm"

    def count(loss: float) -> None:
        grid.report("training the trajectory LM", UNITS["lm"] / settings.training.epochs)

    lm = load_or_train(folder, grid.train, grid.rows, settings, grid.device, say, count)
    return {"clean": naturalness(lm, data.train), "released": naturalness(lm, with_poi(data.train, data.released))}
