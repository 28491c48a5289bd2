"""The audit in a manifest, checked and typed: its verdict in one line, and what it found about people as rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ghostpoi.audits import verdicts
from ghostpoi.audits.controls import ALONE, RANDOM, RANDOM_MATCHED, under
from ghostpoi.audits.measures.accuracy import step
from ghostpoi.audits.measures.gaps import Spread, differs, spread
from ghostpoi.audits.stored import ALWAYS
from ghostpoi.audits.verdicts import CANNOT_TELL, LEAKS, SEVERITY, worst
from ghostpoi.errors import InputError
from ghostpoi.release.manifest import release_identity
from ghostpoi.reports.texts import TEXTS, TONES, regions_text, sample_text, victim_label

Figure = Mapping[str, Any]


@dataclass(frozen=True)
class PersonRow:
    """One measure. A figure is None where too few people are concerned; the control, where it cannot be measured."""

    test: str
    label: str
    release: Figure | None
    control: Figure | None
    clean: Figure | None
    limit: str = ""  # of the settings file, that applies to it

    @property
    def cells(self) -> dict[str, str | None]:
        spread = ((self.release or {}).get(name) for name in ("median", "p95"))  # p95 is not stated of few people
        people = " / ".join("-" if one is None else f"{one:.0%}" for one in spread)
        return {
            "test": self.test, "label": self.label, "release": percent(self.release), "interval": ends(self.release),
            "control": percent(self.control) or "-", "clean": percent(self.clean) or "-",
            "people": people.replace("- / -", "-"),
        }  # fmt: skip


def percent(figure: Figure | None) -> str | None:
    """Return a share as a text."""
    return None if figure is None else f"{100 * figure['mean']:.3g}%"


def ends(figure: Figure | None) -> str | None:
    """Return the interval of a share as a text."""
    return None if figure is None else f"{100 * figure['low']:.3g} to {100 * figure['high']:.3g}%"


def person_rows(persons: Mapping[str, Any] | None) -> list[PersonRow]:
    """Return the rows of what an audit found; none if too few people are in the file or the audit is an older one."""
    out, limits = [], {where: name for name, where in verdicts.FIGURES.items()}
    for test, label, where in TEXTS["audit"]["persons"] if persons else ():
        found = verdicts.figures_at(where, persons)
        # Without the release, one can still name everybody, and is right for all who make such visits.
        without = [one for one in (found.get("control"), found.get("anybody")) if one]
        control = max(without, key=lambda one: float(one["mean"]), default=None)
        if found.get("release") is not None:
            out.append(PersonRow(test, label, found["release"], control, found.get("clean"), limits.get(where, "")))
    return out


RANDOM_DOES = {1: "protects better", 0: "protects neither clearly better nor worse", -1: "protects less"}
BOUNDS = {
    "nothing": "by someone who knows nothing else",
    "city": "by someone who knows the city's true popularity and hours",
    "habits": "by someone who knows how often each person visited each venue",
}
WHEN = {"no_leak": "without a leak", "with_leak": "with the leak"}
LIMITED = {"no_leak": "accuracy given away without a leak", "with_leak": "accuracy given away with the leak"}
LIMITED[verdicts.FAR_WITHIN_1KM] = "far moves guessed within 1 km without a leak"
LIMITED |= {verdicts.PERSONS: "people singled out", verdicts.LINKED: "people linked from release to release"}
OVER = {"default": "default adversaries", "all": "all adversaries", "part": "partial audit; not run: {}"}


@dataclass(frozen=True, kw_only=True)
class GivenAway:
    """What the release gives away to adversaries that hold no leak, or one."""

    verdict: str
    mean: float
    low: float
    high: float
    adversary: str
    control: str
    positions: int  # test steps, in all windows of the sessions
    needed: int | None  # test steps that would decide
    pool_verdict: str | None = None  # of all regions together, where a release has many
    region: "tuple[int, GivenAway] | None" = None  # the worst one
    partial: bool = False  # adversaries of the default set are missing

    @staticmethod
    def of(found: Mapping[str, Any]) -> "GivenAway":
        """Read what an audit returned or a manifest stores."""
        if found["verdict"] not in SEVERITY:
            raise ValueError(f"no such verdict: {found['verdict']}")
        needed, region = found["positions_needed"], found.get("worst_region")
        return GivenAway(
            verdict=found["verdict"], mean=float(found["mean"]), low=float(found["low"]), high=float(found["high"]),
            adversary=str(found["adversary"]), control=str(found["control"]), positions=int(found["test_positions"]),
            needed=None if needed is None else int(needed), pool_verdict=found.get("pool_verdict"),
            region=region and (int(region["region"]), GivenAway.of(region)),
        )  # fmt: skip

    @property
    def tone(self) -> str:
        return tone_of(self.verdict)

    @property
    def interval(self) -> str:
        return f"{_signed(self.mean)} ({_signed(self.low)} to {_signed(self.high)})"

    def sentence(self) -> str:
        """The difference, what was compared, and what would decide if this does not."""
        who, alone = victim_label(self.adversary), victim_label(self.control)
        text = f"{who} against {alone}: {self.interval} in acc@1, on {self.positions:,} test steps"
        if self.partial:
            text += "; adversaries of the default set are missing"
        elif self.verdict == CANNOT_TELL and self.region is None:
            text += f"; {self.remedy}"
        if self.region is not None:
            number, one = self.region
            text += f"; all regions together: {self.pool_verdict}; worst region {number}: {one.verdict}, {one.interval}"
        return text

    @property
    def remedy(self) -> str:
        """Say how many test steps would decide."""
        if self.needed is None:
            return "more test steps would not help, since clean data teaches no more than that"
        return f"{self.positions:,} test visits are too few; about {self.needed:,} are needed"


def tone_of(verdict: str) -> str:
    """The key of TONES that a verdict stands for; empty if it cannot be told."""
    return next((tone for tone, word in TONES.items() if word == verdict), "")


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("0.", ".", 1) if value else "0"


class Limit(NamedTuple):
    """A limit that the publisher set, and whether the release keeps to it."""

    key: str  # what an audit calls it
    verdict: str
    limit: float

    @property
    def name(self) -> str:
        return LIMITED[self.key]

    @property
    def tone(self) -> str:
        return {verdicts.WITHIN: "nothing", verdicts.BEYOND: "much"}.get(self.verdict, "")


class Scores(NamedTuple):
    """What one victim reached: the measures in ALWAYS, and `restored` where an adversary worked on its data."""

    acc1: Spread
    moves: Spread  # acc@1 where the next venue differs from the present one
    acc5: Spread
    mrr: Spread
    accuracy_lost: Spread
    restored: Spread | None


@dataclass(frozen=True, kw_only=True)
class AuditView:
    """All victims of one audit, in the order in which they ran."""

    clean: Scores
    adversaries: dict[str, Scores]
    controls: dict[str, Scores]
    verdict: str
    over: str  # the adversaries that the verdict holds for
    gives_away: dict[str, GivenAway]  # by what adversaries hold: no leak, or one
    limits: list[Limit]
    decision: str | None  # the worst verdict of the limits; None without limits
    persons: list[PersonRow]  # what it says about people; empty where too few are in it
    bound: dict[str, float] | None  # what no adversary can exceed, of releases by crowds
    distance: dict[str, dict[str, float]]  # shares of guesses near the truth: of clean data, without and with a leak
    not_run: list[str]  # adversaries of the default set; without them, an audit is partial
    strongest: str  # the worst case of those with a leak: an adversary, or a control without the release
    leak: float
    by_person: bool  # whether all sessions of some people leaked
    protocol: str
    victim: str
    positions: int
    regions: str  # which were audited, where a release has many; else empty
    utility: dict[str, dict[str, float]]
    naturalness: float | None
    version: str

    @staticmethod
    def read(manifest: dict[str, Any], folder: Path) -> "AuditView | None":
        """Read the audit of a manifest, if it has one."""
        if not (found := manifest.get("audit")):
            return None
        try:
            view, of = AuditView.of(found), found.get("of")
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError(
                f"the audit in {folder / 'manifest.json'} is damaged or of another version; run ghostpoi audit again"
            ) from None
        if of is not None and of != release_identity(manifest):
            raise InputError(
                f"the audit in {folder / 'manifest.json'} belongs to other data or settings; run ghostpoi audit again"
            )
        return view

    @staticmethod
    def of(audit: dict[str, Any]) -> "AuditView":
        """Read what an audit returned or a manifest stores; raise KeyError, TypeError or ValueError if it is broken."""
        clean = _scores(audit["clean"])
        adversaries, controls = (
            {name: _scores(measures) for name, measures in audit[group].items()}
            for group in ("adversaries", "controls")
        )
        seeds = {len(v.acc1["seeds"]) for v in (clean, *adversaries.values(), *controls.values())}
        known = audit["strongest"] in adversaries | controls and audit["verdict"] in SEVERITY
        if not (known and len(seeds) == 1 and set(ALONE) <= set(controls)):
            raise ValueError("the audit contradicts itself")
        limits, not_run = dict(audit["limits"] or {}), [str(name) for name in audit["not_run"]]
        decision, regions = limits.pop(verdicts.DECISION, None), ""
        if "regions" in audit:
            regions = regions_text(audit["regions"], "audited")
        elif audit.get("sample"):
            regions = sample_text(audit["sample"])
        return AuditView(
            clean=clean, adversaries=adversaries, controls=controls, verdict=audit["verdict"],
            over=OVER[audit["over"]].format(", ".join(not_run)), not_run=not_run,
            gives_away={leak: _given_away(audit, leak) for leak in LEAKS}, decision=decision,
            limits=[Limit(name, str(one["verdict"]), float(one["limit"])) for name, one in limits.items()],
            persons=person_rows(audit.get("persons")),
            bound=audit["bound"] and {str(name): float(value) for name, value in audit["bound"].items()},
            distance={
                name: {"clean": float(one["clean"])} | {leak: float(one[leak]["share"]) for leak in LEAKS}
                for name, one in audit["distance"].items()
            },
            strongest=audit["strongest"], leak=float(audit["leak"]), by_person=audit.get("leak_by") == "person",
            protocol=str(audit["protocol"]), victim=", ".join(map(str, audit["victims"])),
            positions=int(audit["test_positions"]), regions=regions,
            utility={
                group: {k: float(v) for k, v in measures.items() if isinstance(v, int | float) and np.isfinite(v)}
                for group, measures in audit["utility"].items()
            },
            naturalness=float(audit["naturalness"]["released"]) if audit.get("naturalness") else None,
            version=str(audit.get("version", "unknown")),
        )  # fmt: skip

    @property
    def seeds(self) -> int:
        return len(self.clean.acc1["seeds"])

    @property
    def victims(self) -> list[tuple[str, str, Scores]]:
        """Kind, label and scores of every victim."""
        groups = {"adversary": self.adversaries, "control": self.controls}
        each = [(kind, victim_label(name), s) for kind, group in groups.items() for name, s in group.items()]
        return [("reference", "clean sessions", self.clean), *each]

    @property
    def without_release(self) -> dict[str, str]:
        return {leak: found.control for leak, found in self.gives_away.items()}

    @property
    def alone(self) -> list[Scores]:
        """What adversaries have without the release."""
        return [self.controls[name] for name in ALONE]

    @property
    def headline(self) -> str:
        """The verdict in one line, for adversaries without a leak and with one."""
        words = [self.gives_away[leak].verdict for leak in LEAKS]
        leak = f"a leak of {self.leak:.3g}" if self.leak < 0.01 else f"a {100 * self.leak:.3g}% leak"
        leak += " by person" if self.by_person else ""
        if self.not_run and not SEVERITY[worst(words)]:
            return f"{CANNOT_TELL.capitalize()} what it gives away ({self.over})"
        both = f" without a leak; {words[1]}" if words[0] != words[1] else ", without a leak and"
        return f"{words[0].capitalize()}{both} with {leak} ({self.over})"

    @property
    def leaked(self) -> str:
        return "people, with all their sessions" if self.by_person else "training sessions"

    @property
    def details(self) -> dict[str, GivenAway]:
        return {WHEN[leak]: found for leak, found in self.gives_away.items()}

    @property
    def bound_text(self) -> str:
        """What no adversary can exceed who names the clean venue of a visit; nothing for a release without crowds."""
        if not self.bound:
            return ""
        each = ", ".join(
            f"{self.bound[f'{prior}_vulnerability']:.1%} ({self.bound[f'{prior}_guesses']:.1f} guesses) {knows}"
            for prior, knows in BOUNDS.items()
        )
        return f"The first guess of a clean venue is right for at most {each}"

    @property
    def near(self) -> list[tuple[str, tuple[float, float, float]]]:
        """How often the guess lies near the truth: over which steps, without a leak, with it, and from clean data."""
        words = {"within": "all steps", "far_moves_within": "far moves (over 1 km)"}
        return [
            (f"{words[steps]}, within {place.removesuffix('km')} km", (one["no_leak"], one["with_leak"], one["clean"]))
            for name, one in self.distance.items()
            for steps, _, place in [name.rpartition("_")]
        ]

    @property
    def faced(self) -> str:
        known = [name for name in self.adversaries if self.random(name)]
        return max(known, key=lambda name: self.adversaries[name].acc1["mean"], default="none")

    def random(self, adversary: str) -> Scores | None:
        """The paper's control: the random release under the same adversary."""
        return self.controls.get(under(RANDOM, adversary))

    def matched(self, adversary: str) -> Scores | None:
        """The control with the method's own sets and rate, under the same adversary; None if it is the paper's."""
        return self.controls.get(under(RANDOM_MATCHED, adversary))

    def compare_random(self, random: Scores) -> str:
        """What a random release does against the strongest adversary that it faced, compared with this one."""
        ours, positions = self.adversaries[self.faced].acc1["seeds"], self.positions
        return RANDOM_DOES[differs(ours, random.acc1["seeds"], positions, step(positions))]

    def gap(self, victims: Iterable[Scores]) -> Spread:
        """Clean acc@1 minus that of the best of these victims, per seed."""
        best = np.max([v.acc1["seeds"] for v in victims], axis=0)
        return spread((np.asarray(self.clean.acc1["seeds"]) - best).tolist())


def _given_away(audit: Mapping[str, Any], leak: str) -> GivenAway:
    """What is given away; a partial audit can say that it is a little or much, but not that it is nothing."""
    found = GivenAway.of(audit["gives_away"][leak])
    partial = bool(audit["not_run"]) and not SEVERITY[found.verdict]
    return replace(found, verdict=CANNOT_TELL, partial=True) if partial else found


def _scores(measures: dict[str, Any]) -> Scores:
    acc1, moves, acc5, mrr, lost = (_spread(measures[name]) for name in ALWAYS)
    return Scores(acc1, moves, acc5, mrr, lost, _spread(measures["restored"]) if "restored" in measures else None)


def _spread(value: Mapping[str, Any]) -> Spread:
    found = spread([float(v) for v in value["seeds"]])
    if not np.isfinite(found["mean"]):
        raise ValueError("a measure is not a number")
    return found
