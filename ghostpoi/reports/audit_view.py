"""The audit in a manifest, checked and typed, and its verdict in one line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ghostpoi.audits.controls import FLOORS, RANDOM, RANDOM_MATCHED, under
from ghostpoi.audits.measures.gaps import Spread, differs, spread
from ghostpoi.audits.stored import ALWAYS
from ghostpoi.audits.verdicts import RANDOM_DOES, step
from ghostpoi.errors import InputError
from ghostpoi.release.manifest import release_identity
from ghostpoi.reports.texts import VERDICTS, regions_text, victim_label


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
    verdicts: dict[str, str]  # empty if there is no verdict
    no_verdict: str | None  # why
    not_run: list[str]  # adversaries of the default set; without them, an audit is partial
    strongest: str
    leak: float
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
        if audit["strongest"] not in adversaries or len(seeds) != 1 or not set(FLOORS) <= set(controls):
            raise ValueError("the audit contradicts itself")
        reason = audit["no_verdict"]
        return AuditView(
            clean=clean,
            adversaries=adversaries,
            controls=controls,
            verdicts={} if reason else {name: str(audit["verdicts"][name]) for name in adversaries},
            no_verdict=None if reason is None else str(reason),
            not_run=[str(name) for name in audit["not_run"]],
            strongest=audit["strongest"],
            leak=float(audit["leak"]),
            protocol=str(audit["protocol"]),
            victim=", ".join(map(str, audit["victims"])),
            positions=int(audit["test_positions"]),
            regions=regions_text(audit["regions"], "audited") if "regions" in audit else "",
            utility={
                group: {k: float(v) for k, v in measures.items() if isinstance(v, int | float) and np.isfinite(v)}
                for group, measures in audit["utility"].items()
            },
            naturalness=float(audit["naturalness"]["released"]) if audit.get("naturalness") else None,
            version=str(audit.get("version", "unknown")),
        )

    @property
    def seeds(self) -> int:
        return len(self.clean.acc1["seeds"])

    @property
    def victims(self) -> list[tuple[str, str, Scores]]:
        """Kind, label and scores of every victim."""
        return [
            ("reference", "clean sessions", self.clean),
            *(("adversary", victim_label(name), scores) for name, scores in self.adversaries.items()),
            *(("control", victim_label(name), scores) for name, scores in self.controls.items()),
        ]

    @property
    def best_floor(self) -> str:
        """The name of the best prediction that needs no knowledge of who goes where."""
        return max(FLOORS, key=lambda name: self.controls[name].acc1["mean"])

    @property
    def floor_text(self) -> str:
        """What a sentence calls the best floor."""
        return FLOORS[self.best_floor]

    def verdict(self, adversary: str) -> str:
        """The key of VERDICTS that an adversary's sentence begins with; `partly` where it begins otherwise."""
        first = self.verdicts[adversary].partition(".")[0].strip().lower()
        return first if first in VERDICTS else "partly"

    @property
    def headline(self) -> str:
        """The verdict in one line, the worst first. Only an audit with all default adversaries says "holds"."""
        if self.no_verdict:
            return f"No verdict: {self.no_verdict}"
        names = list(self.adversaries)
        missing = f"not run: {', '.join(self.not_run)}"
        for verdict, text in (("fails", "Fails against"), ("partly", "Partly holds against")):
            if found := [victim_label(name) for name in names if self.verdict(name) == verdict]:
                if self.not_run and verdict == "partly":
                    break
                whom = " and ".join(found) if len(found) < 3 else f"{len(found)} of {len(names)} adversaries"
                return f"{text} {whom}" + (f" (partial audit; {missing})" if self.not_run else "")
        if self.not_run:
            ran = f"{len(names)} of {len(names) + len(self.not_run)} adversaries ran"
            return f"Partial audit, no verdict: {ran}; {missing}"
        tested = {1: "the one adversary", 2: "both adversaries"}.get(len(names), f"all {len(names)} adversaries")
        return f"Holds against {tested} tested"

    @property
    def tone(self) -> str:
        """The key of VERDICTS that the line stands for; empty if it is no verdict."""
        if self.no_verdict:
            return ""
        worst = min(map(self.verdict, self.adversaries), key=list(VERDICTS).index)
        return "" if self.not_run and worst != "fails" else worst

    def random(self, adversary: str) -> Scores | None:
        """The paper's control: the random release under the same adversary."""
        return self.controls.get(under(RANDOM, adversary))

    def matched(self, adversary: str) -> Scores | None:
        """The control with the method's own sets and rate, under the same adversary; None if it is the paper's."""
        return self.controls.get(under(RANDOM_MATCHED, adversary))

    def compare_random(self, random: Scores) -> str:
        """What a random release does against the strongest adversary, compared with this one."""
        ours, positions = self.adversaries[self.strongest].acc1["seeds"], self.positions
        found = differs(ours, random.acc1["seeds"], positions, step(positions))
        return RANDOM_DOES[found]

    def gap(self, victims: Iterable[Scores]) -> Spread:
        """Clean acc@1 minus that of the best of these victims, per seed."""
        best = np.max([v.acc1["seeds"] for v in victims], axis=0)
        return spread((np.asarray(self.clean.acc1["seeds"]) - best).tolist())


def _scores(measures: dict[str, Any]) -> Scores:
    acc1, moves, acc5, mrr, lost = (_spread(measures[name]) for name in ALWAYS)
    return Scores(acc1, moves, acc5, mrr, lost, _spread(measures["restored"]) if "restored" in measures else None)


def _spread(value: Mapping[str, Any]) -> Spread:
    found = spread([float(v) for v in value["seeds"]])
    if not np.isfinite(found["mean"]):
        raise ValueError("a measure is not a number")
    return found
