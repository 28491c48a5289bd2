"""The first screen of the page: what a publisher decides from, for readers who know nothing of models."""

from collections.abc import Iterator
from dataclasses import dataclass

from ghostpoi.audits.controls import RANDOM, uses_leak
from ghostpoi.audits.verdicts import (
    BEYOND,
    CANNOT_TELL,
    LITTLE,
    MUCH,
    NOTHING,
    PERSONS,
    SEVERITY,
    UNSURE,
    WITHIN,
    worst,
)
from ghostpoi.reports.audit_view import AuditView, PersonRow, tone_of
from ghostpoi.reports.release_view import ReleaseView
from ghostpoi.reports.texts import plain, share

FOUND = 0.1  # more people than by chance are singled out: worth a warning
RANDOM_LOSS = 0.8  # of what the same visits in random places lose: hardly better than noise
USEFUL = 0.5  # of the trips between squares survive; what `choose` asks for
SHORT = {NOTHING: "nothing measurable", LITTLE: "a little", MUCH: "much", CANNOT_TELL: "it cannot be told how much"}


@dataclass(frozen=True)
class Answer:
    """One number, in percent of the same thing as its controls. Lower is better."""

    title: str
    value: float
    sentence: str
    controls: tuple[tuple[str, float], ...]  # names and values, from low to high

    @property
    def big(self) -> str:
        return share(self.value, 1 if self.value < 0.2 else 0)

    @property
    def top(self) -> float:
        """The end of the scale."""
        return max(self.value, 1e-9, *(value for _, value in self.controls))


@dataclass(frozen=True)
class Decision:
    """What the first screen says."""

    headline: str
    tone: str
    reasons: list[str]
    answers: list[Answer]
    next: str
    command: str
    without_limits: bool = False


def decision(release: ReleaseView) -> Decision:
    """Decide by the limits of the publisher; without limits, say what the release gives away."""
    audit, folder = release.audit, plain(release.folder)
    if audit is None:
        command = f"ghostpoi audit FILE {folder} --report"
        if not release.ours:
            command = f"ghostpoi audit FILE {folder} --json > audit.json\n"
            command += f"ghostpoi report {folder} --audit audit.json -o page.html"
        why = "What can be learned from this release has not been measured, so this page makes no claim."
        return Decision("Not audited yet", "", [why], [], "Measure it with the clean file:", command)
    found = list(answers(audit))
    useless = [a for a in found if a.title == STATISTICS and a.value > min(1 - USEFUL, RANDOM_LOSS * a.controls[0][1])]
    word = audit.decision or worst(found.verdict for found in audit.gives_away.values())
    headline, tone = word[:1].upper() + word[1:], {WITHIN: "nothing", BEYOND: "much"}.get(word, tone_of(word))
    if word in (UNSURE, CANNOT_TELL):
        headline = "Cannot tell yet"
    elif word in (WITHIN, NOTHING, LITTLE) and useless:
        headline, tone = headline + ", but of little use", "little"
    elif word in (WITHIN, NOTHING) and _people_unlimited(audit):
        headline, tone = headline + ", but people can be found", "little"
    next_, command = _next(word, release, audit, bool(useless))
    return Decision(headline, tone, list(_reasons(audit)), found, next_, command, audit.decision is None)


NEXT_VENUE, PERSON, STATISTICS = "What a model learns", "Whether a person can be found", "What the statistics lost"
VISITS = "Whether visits can be read back"  # of an audit that measured no people


def _reasons(audit: AuditView) -> Iterator[str]:
    """The limits and how the release keeps to them; without limits, what it gives away to whom."""
    for limit in audit.limits:
        text = f"{limit.name[:1].upper()}{limit.name[1:]}: you allow {share(limit.limit, 1)}"
        if found := audit.gives_away.get(limit.key):
            who = f"who also holds {share(audit.leak)} of the real data" if limit.key == "with_leak" else "who holds it"
            text = (
                f"It adds {100 * found.mean:.1f} right guesses in 100 ({100 * found.low:.1f} to {100 * found.high:.1f})"
            )
            text += f" for somebody {who}; you allow {100 * limit.limit:.1f}"
        yield f"{text}: {limit.verdict}."
    alone, leak = audit.gives_away["no_leak"], audit.gives_away["with_leak"]
    if not audit.limits:
        yield (
            f"To somebody who holds the release alone: {SHORT[alone.verdict]}. To somebody who also holds "
            f"{share(audit.leak)} of the real data: {SHORT[leak.verdict]}."
        )
    unsure = [found for found in (alone, leak) if found.verdict == CANNOT_TELL]
    if audit.not_run and unsure:
        yield "Not every attack of the default set was run, so the audit cannot say that it gives away nothing."
    elif unsure and unsure[0].region is None:
        yield unsure[0].remedy[:1].upper() + unsure[0].remedy[1:] + "."


def answers(audit: AuditView) -> Iterator[Answer]:
    every = audit.adversaries | audit.controls
    leak, found = max(audit.gives_away.items(), key=lambda one: (SEVERITY[one[1].verdict], one[1].mean))
    reached, without = every[found.adversary].acc1["mean"], audit.controls[found.control].acc1["mean"]
    clean = audit.clean.acc1["mean"]
    holds = f"holds {share(audit.leak)} of the real data too" if leak == "with_leak" else "knows how it was made"
    yield Answer(
        NEXT_VENUE, reached,
        f"of next visits are guessed right by somebody who trains on this release and {holds}. Without the release it "
        f"is {share(without, 1)}, from the real data {share(clean, 1)}.",
        (("without it", without), ("real data", clean)),
    )  # fmt: skip
    if people := next((row for row in audit.persons if row.limited and row.release), None):
        yield _person(people)
    elif restored := [
        s.restored["mean"] for name, s in audit.adversaries.items() if s.restored and not uses_leak(name)
    ]:
        random = audit.controls.get(RANDOM)
        chance = () if random is None or random.restored is None else (("by chance", random.restored["mean"]),)
        beside = "".join(f" {share(value, 1)} if each is taken as it is in a random release." for _, value in chance)
        yield Answer(
            VISITS, max(restored),
            f"of past visits: somebody who knows how it was made names the real venue.{beside}",
            (*chance, ("real data", 1.0)),
        )  # fmt: skip
    flows = audit.utility.get("flows", {})
    if "common_part" in flows:
        lost, shuffled = 1 - flows["common_part"], flows.get("common_part_shuffled")
        text = "of trips between 1 km squares are lost or invented."
        text += "" if shuffled is None else f" It is {share(1 - shuffled)} if the same visits change places at random."
        controls = () if shuffled is None else (("at random", 1 - shuffled),)
        yield Answer(STATISTICS, lost, text, (*controls, ("all lost", 1.0)))


def _person(row: PersonRow) -> Answer:
    """What singling out by four known check-ins finds."""
    value = row.release["mean"] if row.release else 0.0
    every = {"by chance": row.control, "real data": row.clean}
    controls = tuple((name, float(figure["mean"])) for name, figure in every.items() if figure)
    text = "of people are singled out by somebody who knows place and part of the day of four of their visits."
    said = {"by chance": "By chance it is", "real data": "In the real data it is"}
    text += "".join(f" {said[name]} {share(figure)}." for name, figure in controls)
    return Answer(PERSON, float(value), text, controls)


def _people_unlimited(audit: AuditView) -> bool:
    """Whether people can be found in a release whose publisher has set no limit on that."""
    rows = [row for row in audit.persons if row.limited and row.release]
    known = [row.control["mean"] if row.control else 0.0 for row in rows]
    found = any(
        row.release["low"] > by_chance + FOUND for row, by_chance in zip(rows, known, strict=True) if row.release
    )
    return found and not any(limit.key == PERSONS for limit in audit.limits)


def _next(word: str, release: ReleaseView, audit: AuditView, useless: bool) -> tuple[str, str]:
    """What to do now, and the command."""
    folder = plain(release.folder)
    if word in (BEYOND, MUCH):
        return "Do not publish it. Try settings that protect better:", "ghostpoi choose FILE"
    if word in (UNSURE, CANNOT_TELL):
        if audit.not_run:
            return "Run the whole audit:", f"ghostpoi audit FILE {folder} --report"
        return (
            "Do not publish it yet. Protect and audit a file with more people or a longer time:",
            f"ghostpoi protect LARGER_FILE -o {folder}-larger\nghostpoi audit LARGER_FILE {folder}-larger --report",
        )
    if useless:
        return (
            "It is safe, but most of it is noise. Try settings that keep more:",
            "ghostpoi choose FILE --min-flows 0.5",
        )
    if _people_unlimited(audit) and release.ours and not release.pseudonyms:
        return (
            "Set a limit on people, and let user ids and times change:",
            f"ghostpoi protect FILE -o {folder}-2 --for public\n"
            f"ghostpoi audit FILE {folder}-2 --config ghostpoi.toml --report   # [limits] persons = 0.2",
        )
    if audit.decision is None:
        return (
            "Write your limits into a file, and audit against them:",
            f"ghostpoi audit FILE {folder} --config ghostpoi.toml",
        )
    return "Check the folder once more, then publish it:", f"ghostpoi verify {folder} --against FILE"
