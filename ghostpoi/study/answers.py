"""What cells say to a claim of the paper, and the verdict over all cities and protocols."""

from collections.abc import Sequence
from dataclasses import dataclass

from ghostpoi.evaluate.measures.accuracy_gaps import Verdict
from ghostpoi.study.labels import ARROWS, show

NOT_YET = "not measured yet"


@dataclass(frozen=True)
class Answer:
    """What the cells say to a claim: differences and the signs that the claim asks for, or a fact."""

    text: str | None = None  # without it, the differences are shown
    differences: tuple[Verdict, ...] = ()
    wanted: tuple[int, ...] = ()
    fact: bool = True

    @property
    def outcome(self) -> str:
        """`yes` or `no`; `open` if all differences have the sign claimed, but not all of them clearly."""
        if not self.fact or any(d.difference["mean"] * sign <= 0 for d, sign in self._pairs):
            return "no"
        return "yes" if all(d.sign == sign for d, sign in self._pairs) else "open"

    @property
    def reversed(self) -> bool:
        """Whether a difference clearly has the other sign."""
        return any(d.sign == -sign for d, sign in self._pairs)

    def __str__(self) -> str:
        shown = (show(d.difference["mean"], sign="+") + ARROWS[d.sign] for d in self.differences)
        return self.text if self.text is not None else ", ".join(shown)

    @property
    def _pairs(self) -> list[tuple[Verdict, int]]:
        return list(zip(self.differences, self.wanted, strict=True))


def verdict(found: Sequence[Answer | None]) -> str:
    """Sum up the answers of all cities and protocols that were measured."""
    known = [answer for answer in found if answer]
    outcomes = [answer.outcome for answer in known]
    count, reverse = len(known), sum(answer.reversed for answer in known)
    if not known:
        return NOT_YET
    if outcomes == ["yes"] * count:
        return "Yes"
    if outcomes == ["no"] * count:
        return "**No**" + (f", clearly reversed in {reverse} of {count}" if reverse else "")
    if outcomes == ["open"] * count:
        return "Open: the sign is right, but not clear"
    return "Mixed: " + ", ".join(f"{outcomes.count(o)} {o}" for o in ("yes", "open", "no") if o in outcomes)
