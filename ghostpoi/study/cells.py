"""The cells of a study: which there are, the stages that each goes through, and the seeds that are not measured yet.

A cell is identified by its data, its settings, its seeds and the version of each stage that it went through. A version
is a constant next to the code of the stage: code can move, and a change of results asks for a new version.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.evidence import EVIDENCE_VERSION
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.attack.victims.judge import DISTANCE_VERSION
from ghostpoi.audits.controls import CLEAN, DISTANCE, ITSELF, LEAK_MIXED, LEAK_ONLY, LEAK_STAY
from ghostpoi.audits.grid import LEAK_STAY_VERSION, RESTORATION_VERSION, Contest, contests_between, find_adversary
from ghostpoi.audits.measures.accuracy import ACCURACY_VERSION
from ghostpoi.audits.measures.detection import DETECTION_VERSION
from ghostpoi.audits.measures.utility import PLAUSIBILITY_VERSION, UTILITY_VERSION
from ghostpoi.data.candidates import CANDIDATES_VERSION
from ghostpoi.draw.table import DRAW_VERSION
from ghostpoi.models.trajectory_lm import TRAJECTORY_LM_VERSION
from ghostpoi.study.plan import Study, Variant
from ghostpoi.study.store import Cell, identity

NATURALNESS = "naturalness"  # the measure of a release that needs a trajectory LM
Stages = dict[str, int]  # versions by the name of a stage, in the order of the pipeline


class Missing(NamedTuple):
    """A cell of the plan, without measures, and the seeds that it lacks."""

    cell: Cell
    contest: Contest | None
    seeds: list[int]

    @property
    def is_control(self) -> bool:
        """Whether the cell needs no release."""
        return bool(self.cell["method"] == CLEAN)


def missing_cells(study: Study, protocol: str, data: str, content: str, stored: Sequence[Cell]) -> list[Missing]:
    """Return the cells of a study that lack seeds. `stored` are those of all studies, this one's first."""
    known = {identity(cell): cell for cell in stored[::-1]}
    found = []
    for asked, contest in _plan(study):
        settings = "" if asked["method"] == CLEAN else Variant(asked["method"]).settings_hash(protocol)
        cell = {"kind": asked["kind"], "data": data} | asked | {"settings": settings, "content": content}
        there = known.get(identity(cell))
        fresh = there is not None and there.get("content") == content and is_current(there)
        if there and fresh:
            fresh = extras_of(study, cell) <= set(there["measures"])
        measured = there["seeds"] if there and fresh else []
        found.append(Missing(cell, contest, [seed for seed in range(study.seeds) if seed not in measured]))
    return [one for one in found if one.seeds]


def _plan(study: Study) -> Iterator[tuple[Cell, Contest | None]]:
    """All cells of a study by what they measure; a contest belongs to an accuracy."""
    for variant in study.methods:
        yield {"kind": "release", "method": variant.text}, None
    for method in (CLEAN, *(variant.text for variant in study.methods)):
        yield {"kind": "floor", "method": method}, None
    for contest in contests_of(study):
        yield contest.cell, contest


def extras_of(study: Study, cell: Cell) -> set[str]:
    """Return the measures of a cell that not all studies ask for."""
    if cell["kind"] == "release":
        return {name for name in (NATURALNESS, "detector") if getattr(study, name)}
    scored = cell["kind"] == "accuracy" or cell["method"] == CLEAN  # a Markov model on a release is not
    return {DISTANCE} if study.distance and scored else set()


def contests_of(study: Study) -> list[Contest]:
    """Return all contests of a study, including the controls."""
    contests = []
    several = [f"{name}-{n}" for name, a in ADVERSARIES.items() if a.many_releases for n in study.releases]
    for victim in study.victims:
        contests += [Contest(CLEAN, CLEAN, None, victim)]
        contests += [Contest(CLEAN, control, r, victim) for control in (LEAK_ONLY, LEAK_STAY) for r in study.leak]
        for variant in study.methods:
            method = variant.text
            for name in study.attackers(method):
                contests += [one for r in study.leak for one in contests_between(method, name, r, [victim])]
            contests += [Contest(method, name, r, victim) for name in (LEAK_MIXED, *several) for r in study.leak]
    return list(dict.fromkeys(contests))  # a predictor is one contest for all victims, and one without a leak for all r


def is_current(cell: Cell) -> bool:
    """Whether a stored cell went through the stages as they are today."""
    return bool(cell.get("stages") == stages_of(cell))


def stages_of(cell: Cell) -> Stages:
    """Return the stages that a cell goes through, with their versions of today."""
    found = release_stages(cell["method"])
    if cell["kind"] == "release":
        found |= {"trajectory-lm": TRAJECTORY_LM_VERSION} if NATURALNESS in cell["measures"] else {}
        found |= {"plausibility": PLAUSIBILITY_VERSION, "utility": UTILITY_VERSION}
        return found | ({"detection": DETECTION_VERSION} if "detector" in cell["measures"] else {})
    if cell["kind"] == "accuracy":
        found |= _attack_stages(cell["adversary"])
        if cell["victim"] != ITSELF:
            found |= {f"victim/{cell['victim']}": VICTIMS[cell["victim"]].version}
    found |= {DISTANCE: DISTANCE_VERSION} if DISTANCE in cell["measures"] else {}
    return found | {"accuracy": ACCURACY_VERSION}


def release_stages(method: str) -> Stages:
    """Return the stages that make a release; none for the clean sessions."""
    if method == CLEAN:
        return {}
    variant = Variant(method)
    made = variant.settings("strong").method
    model = {"trajectory-lm": TRAJECTORY_LM_VERSION} if made.needs_trajectory_lm else {}
    return {"candidates": CANDIDATES_VERSION} | model | {f"method/{variant.method}": made.version, "draw": DRAW_VERSION}


def _attack_stages(name: str) -> Stages:
    """The stages from a release to what a victim trains on."""
    if name == CLEAN:
        return {}
    leak = {"evidence": EVIDENCE_VERSION}
    if name == LEAK_ONLY:
        return leak
    if name == LEAK_STAY:
        return leak | {"adversary/distilled": LEAK_STAY_VERSION}  # its model, without a release
    adversary, count = find_adversary(name)
    made = {f"adversary/{name.removesuffix(f'-{count}')}": adversary.version} if adversary else {}
    return leak | made | {"restoration": RESTORATION_VERSION}
