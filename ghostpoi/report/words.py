"""What the page says in words. Names of adversaries that it does not know yet stand as they are."""

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.report.figures import Audit, Spread

SHORT = {"none": "as released"}
SAYS = {"holds": "Holds", "partly": "Partly holds", "fails": "Fails"}
BESIDE_RANDOM = {
    -1: "Less is learned than from a random draw of near venues.",
    0: "A random draw of near venues does as well.",
    1: "A random draw of near venues does better.",
}
LIMITS = (
    ("The rule is public.", "Whoever reads the code of ghostpoi knows which venues could stand behind a released one. "
     "An adversary who pools one user's visits may invert the draws better than those tried here."),
    ("Leaked rows teach.", "Whoever holds some clean rows learns from them directly. No release can push an adversary "
     "below what such a leak gives by itself."),
    ("This is no anonymisation.", "Users, times and categories are untouched. Visits at odd hours, rare categories and "
     "the number of check-ins stay as identifying as they were."),
    ("Kept rows are genuine.", "A row whose venue has no candidate stays as it was, unless it was withheld, and which "
     "rows those are follows from the rule."),
    ("One release only.", "A second release of the same rows, drawn anew, can give an adversary more evidence, never "
     "less."),
    ("Only what was tried was measured.", "The verdict speaks of the adversaries and the victim model above, on the "
     "last part of each user's sessions, and of no others."),
)  # fmt: skip
UTILITY = (  # group, figure, what it is, what 0 and 1 mean, whether more is better
    ("popularity", "poi_js", "Popularity of venues", "divergence, 0 the same, 1 nothing in common", False),
    ("popularity", "category_js", "Popularity of categories", "divergence; 0 by construction", False),
    ("flows", "common_part", "Flows between 1 km cells", "common part, 1 the same", True),
    ("flows", "common_part_between", "Flows that leave their cell", "common part, 1 the same", True),
    ("hours", "category_hour_js", "Categories by hour", "divergence; 0 by construction", False),
    ("hours", "cell_hour_js", "1 km cells by hour", "divergence, 0 the same, 1 nothing in common", False),
    ("gyration", "relative_change", "Radius of gyration", "mean relative change per user, 0 the same", False),
    ("visits", "unique_pois_relative_change", "Venues per user", "mean relative change per user, 0 the same", False),
)


def short(name: str) -> str:
    """An adversary beside a bar."""
    return SHORT.get(name, name)


def share(value: float) -> str:
    """A share as people say it; never rounded up to all or down to nothing."""
    percent = 100 * value
    if 0 < percent < 0.05:
        return "<0.1%"
    if 99.95 <= percent < 100:
        return ">99.9%"
    return f"{percent:.{int(0 < percent < 0.5 or 99.5 < percent < 100)}f}%"


def headline(audit: Audit) -> str:
    """The verdict in one line: what fails comes first."""
    names = list(audit.adversaries)
    failed = [n for n in names if audit.word(n) == "fails"]
    partly = [n for n in names if audit.word(n) == "partly"]
    tried = {1: "the one adversary", 2: "both adversaries"}.get(len(names), f"all {len(names)} adversaries")
    if failed:
        return f"Fails against {_listed(failed, len(names))}"
    if partly:
        return f"Holds only partly against {_listed(partly, len(names))}"
    return f"Holds against {tried} tried"


def _listed(names: list[str], tried: int) -> str:
    """By name, or by number where the names would fill the screen."""
    quoted = [f"“{short(n)}”" for n in names]
    return " and ".join(quoted) if len(quoted) < 3 else f"{len(names)} of {tried} adversaries"


def who(name: str) -> str:
    """What an adversary knows and does: the first paragraph of its docstring."""
    text = type(ADVERSARIES[name]).__doc__ if name in ADVERSARIES else None
    return " ".join((text or "").split("\n\n")[0].split())


def sentence(verdict: str) -> str:
    """A verdict without its first word, as a sentence."""
    text = verdict.partition(".")[2].strip() or verdict
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def spread_note(audit: Audit) -> str:
    """How sure the figures are."""
    if audit.seeds == 1:
        return "One seed: no spread is known."
    return f"Means over {audit.seeds} seeds, with one standard deviation."


def gone(figure: Spread) -> str:
    """A share of accuracy gone, in large type; where the victim gained, that is what it says."""
    return share(figure.mean) if figure.mean > -0.005 else f"-{share(-figure.mean)}"
