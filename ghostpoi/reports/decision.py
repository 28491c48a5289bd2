"""The first screen of the page: what a publisher decides from, for readers who know nothing of models."""

from collections.abc import Iterator
from dataclasses import dataclass

from ghostpoi.audits.controls import RANDOM, uses_leak
from ghostpoi.audits.verdicts import (
    BEYOND,
    CANNOT_TELL,
    LINKED,
    LITTLE,
    MUCH,
    NOTHING,
    PERSONS,
    SEVERITY,
    UNSURE,
    WITHIN,
    worst,
)
from ghostpoi.reports.audit_view import AuditView, GivenAway, PersonRow, tone_of
from ghostpoi.reports.release_view import ReleaseView
from ghostpoi.reports.texts import plain, share

FOUND = 0.1  # more people than by chance are singled out: worth a warning
RANDOM_LOSS = 0.8  # of what the same visits in random places lose: hardly better than noise
TELLING = 0.25  # where random places lose less, as in a small city, they say nothing about noise
USEFUL = 0.4  # of the trips between squares survive; what `choose` asks for
NEXT_VENUE, PERSON, STATISTICS = "What a model learns", "Whether a person can be found", "What it costs"
VISITS = "Whether visits can be read back"  # of an audit that measured no people
MARKS = {WITHIN: "nothing", BEYOND: "much", UNSURE: "little"}  # the tone of each verdict on a limit
SHORT = {WITHIN: "within limit", BEYOND: "over limit", UNSURE: "cannot tell"}
NOISE = "mostly noise"
FOUND_IN_IT, GUESSED = "people can be found in it", "it gives away too much about where people go next"
DANGERS = {PERSONS: FOUND_IN_IT, LINKED: "people can be linked from release to release"}


@dataclass(frozen=True)
class Answer:
    """One number, in percent of the same thing as its controls. Lower is better."""

    title: str
    value: float
    sentence: str
    controls: tuple[tuple[str, float], ...]  # names and values, from low to high
    verdict: str = ""  # on the limit of the publisher, or that it is noise
    tone: str = ""
    most: float | None = None  # what it may be, where it cannot be told

    @property
    def big(self) -> str:
        return _short(self.value) if self.most is None else f"≤ {_short(self.most)}"

    @property
    def top(self) -> float:
        return max(self.value, self.most or 0.0, 1e-9, *(value for _, value in self.controls))

    @property
    def bar(self) -> float:
        return max(self.value, 0.0) / self.top


@dataclass(frozen=True)
class Decision:
    """What the first screen says: the verdict, what it means, and three numbers; then what to do next and how."""

    headline: str
    tone: str
    action: str
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
        action = "Do not publish it yet: what can be learned from it has not been measured."
        return Decision("Not audited yet", "", action, [], "Measure it with the clean file:", command)
    found = list(answers(audit))
    word = audit.decision or worst(one.verdict for one in audit.gives_away.values())
    headline, tone = word[:1].upper() + word[1:], MARKS.get(word, tone_of(word))
    if word in (UNSURE, CANNOT_TELL):
        headline, tone = "Cannot tell yet", ""
    elif word in (NOTHING, LITTLE) and _people_unlimited(audit):
        headline, tone = "People can be found", "much"
    elif word in (WITHIN, NOTHING) and (_is_noise(found) or _people_unlimited(audit)):
        tone = "little"
    action, how, command = _next(word, release, audit, found)
    return Decision(headline, tone, action, found, how, command, audit.decision is None)


def answers(audit: AuditView) -> Iterator[Answer]:
    """What the release adds to what a model learns, whether people can be found, and what the statistics lost."""
    ranks = {limit.key: [WITHIN, UNSURE, BEYOND].index(limit.verdict) + 1 for limit in audit.limits}

    def rank(one: tuple[str, GivenAway]) -> tuple[float, ...]:
        leak, found = one
        return ranks.get(leak, 0), SEVERITY[found.verdict], found.verdict == CANNOT_TELL, found.mean

    yield _learned(audit, *max(audit.gives_away.items(), key=rank))
    if people := next((row for row in audit.persons if row.limit == PERSONS), None):
        yield _person(audit, people)
    elif restored := [
        s.restored["mean"] for name, s in audit.adversaries.items() if s.restored and not uses_leak(name)
    ]:
        text = "of past visits: somebody who knows how it was made names the real venue."
        random = audit.controls.get(RANDOM)
        chance = (("by chance", random.restored["mean"]),) if random is not None and random.restored else ()
        yield Answer(VISITS, max(restored), text, (*chance, ("real data", 1.0)))
    flows = audit.utility.get("flows", {})
    if "common_part" in flows:
        lost, shuffled = 1 - flows["common_part"], flows.get("common_part_shuffled")
        random_loss = None if shuffled is None else 1 - shuffled
        noise = lost > 1 - USEFUL
        text, controls = "of trips between parts of the city are lost or invented.", [("all lost", 1.0)]
        if random_loss is not None:
            noise = noise or lost > RANDOM_LOSS * random_loss >= RANDOM_LOSS * TELLING
            text += f" With random places it would be {_short(random_loss)}"
            text += "." if random_loss >= TELLING else ": the city is too small to tell."
            controls.insert(0, ("random places", random_loss))
        yield Answer(STATISTICS, lost, text, tuple(controls), *((NOISE, "little") if noise else ()))


def _mark(audit: AuditView, key: str) -> tuple[str, str, str, tuple[tuple[str, float], ...]]:
    """What is said of a limit: a sentence, the verdict, its tone, and the limit as a control."""
    limit = next((one for one in audit.limits if one.key == key), None)
    if limit is None:
        return "", "", "", ()
    allowed = f" You allow {_short(limit.limit)}."
    return allowed, SHORT[limit.verdict], MARKS[limit.verdict], (("you allow", limit.limit),)


def _learned(audit: AuditView, leak: str, found: GivenAway) -> Answer:
    """What training on the release adds to what can be guessed without it."""
    allowed, verdict, tone, limit = _mark(audit, leak)
    clean = max(audit.clean.acc1["mean"] - audit.controls[found.control].acc1["mean"], 0.0)
    holder = f"somebody who holds {_short(audit.leak)} of the real data" if leak == "with_leak" else "anybody"
    unsure = verdict == SHORT[UNSURE] or (not verdict and found.verdict == CANNOT_TELL)
    text = "more of the next visits can be guessed with the release than without it"
    text += f", by {holder}." if leak == "with_leak" else "."
    if (found.high if unsure else found.mean) <= 0:
        text = f"The release does not help {holder} to guess next visits."
    text += f"{allowed} With the real data it is {_short(clean)}."
    controls = sorted((*limit, ("real data", clean)), key=lambda c: c[1])
    most = max(found.high, 0.0) if unsure else None
    return Answer(NEXT_VENUE, max(found.mean, 0.0), text, tuple(controls), verdict, tone, most)


def _person(audit: AuditView, row: PersonRow) -> Answer:
    """What singling out by four known check-ins finds."""
    allowed, verdict, tone, limit = _mark(audit, PERSONS)
    every = {"by chance": row.control, "real data": row.clean}
    known = {name: float(figure["mean"]) for name, figure in every.items() if figure}
    text = f"of people are found by somebody who knows four of their visits (place and part of the day).{allowed}"
    said = {"by chance": "By chance it is", "real data": "In the real data it is"}
    text += "".join(f" {said[name]} {_short(figure)}." for name, figure in known.items())
    shown = limit or tuple(pair for pair in known.items() if pair[0] == "by chance")
    controls = sorted((*shown, *(pair for pair in known.items() if pair[0] == "real data")), key=lambda c: c[1])
    return Answer(PERSON, float(row.release["mean"]) if row.release else 0.0, text, tuple(controls), verdict, tone)


def _short(value: float) -> str:
    """A share in percent, with one digit where it is small."""
    return share(value, 1 if abs(value) < 0.2 else 0).replace(".0%", "%")


def _people_unlimited(audit: AuditView) -> bool:
    """Whether people can be found in a release whose publisher has set no limit on that."""
    found = any(
        row.release["low"] > (row.control["mean"] if row.control else 0.0) + FOUND
        for row in audit.persons
        if row.limit == PERSONS and row.release
    )
    return found and not any(limit.key == PERSONS for limit in audit.limits)


def _is_noise(found: list[Answer]) -> bool:
    return any(one.verdict == NOISE for one in found)


def _next(word: str, release: ReleaseView, audit: AuditView, found: list[Answer]) -> tuple[str, str, str]:
    """What the verdict means, what to do now, and the command."""
    folder, noise, people = plain(release.folder), _is_noise(found), _people_unlimited(audit)
    again = f"ghostpoi audit FILE {folder} --config ghostpoi.toml --report"
    if word in (BEYOND, MUCH):
        dangers = [DANGERS.get(limit.key, GUESSED) for limit in audit.limits if limit.verdict == BEYOND] or [GUESSED]
        said = ", and ".join(dict.fromkeys([*dangers, *([FOUND_IN_IT] if people else [])]))
        action, how = f"Do not publish it: {said}.", "Try settings that protect better:"
        command = "ghostpoi choose FILE"
    elif word in (UNSURE, CANNOT_TELL) and audit.not_run:
        action, how = "Do not publish it yet: not every attack was run.", "Run the whole audit:"
        command = f"ghostpoi audit FILE {folder} --report"
    elif word in (UNSURE, CANNOT_TELL):
        action = "Do not publish it yet: the file is too small to measure what it gives away."
        unsure = [one for one in audit.gives_away.values() if one.verdict == CANNOT_TELL and one.region is None]
        how = f"{unsure[0].remedy[:1].upper()}{unsure[0].remedy[1:]}. " if unsure else ""
        how += "Take a file with more people or a longer time:"
        command = f"ghostpoi protect LARGER_FILE -o {folder}-larger\n"
        command += f"ghostpoi audit LARGER_FILE {folder}-larger --report"
    elif people:
        end = ", and most of it is noise." if noise else "."
        action = f"Do not publish it yet. About next visits, it {word}{end}"
        if audit.decision is not None:
            action = f"Do not publish it yet: you set no limit on people, and they can be found in it{end}"
        how, command = "Say how many people may be found, and audit again:", f"{again}   # [limits] persons = 0.2"
        if release.ours and not release.pseudonyms:
            how = "Change user ids and times, too, and say how many people may be found:"
            command = f"ghostpoi protect FILE -o {folder}-2 --for public\n{command.replace(folder, f'{folder}-2', 1)}"
    elif noise:
        action = "It is of little use: most of it is noise."
        if audit.decision is not None:
            action = "You may publish it, but it is of little use: most of it is noise."
        how, command = "Try settings that keep more:", f"ghostpoi choose FILE --min-flows {USEFUL:g}"
    elif audit.decision is None:
        action = "You have set no limits, so you must judge whether that is too much."
        how, command = "Write your limits into a file, and audit again:", again.rpartition(" ")[0]
    else:
        action, how = "You can publish it.", "Check the folder once more, then publish it:"
        command = f"ghostpoi verify {folder} --against FILE"
    return action, how, command
