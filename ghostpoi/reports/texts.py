"""Templates, texts and labels of the report, and text from the data made harmless for its place.

Plug-ins name themselves; a name that is not registered stays as it is.
"""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.audits.controls import CONTROLS
from ghostpoi.audits.measures.gaps import Spread

if TYPE_CHECKING:
    from jinja2 import Template


LONGEST = 80  # characters of a name
# Control characters, and those that reverse the direction of the text around them.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # no encoding can write one


def asset(name: str) -> str:
    """Read one of the report's own files."""
    return (resources.files("ghostpoi.reports") / "assets" / name).read_text("utf-8")


TEXTS: dict[str, Any] = tomllib.loads(asset("texts.toml"))


def template(name: str, filters: Mapping[str, Any] = MappingProxyType({}), **options: Any) -> "Template":
    """A template with the filters that all share, and with these filters and options of Jinja."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow, and most of this file does without

    loader = PackageLoader("ghostpoi.reports", "assets")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options)
    environment.filters |= {"count": "{:,}".format, **{one.__name__: one for one in FILTERS}, **filters}
    return environment.get_template(name)


def plain(text: object, longest: int = LONGEST) -> str:
    """A name from the data as one short line."""
    line = " ".join(LONE_SURROGATE.sub("\ufffd", UNSEEN.sub(" ", str(text))).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def embedded(value: Any) -> Markup:
    """JSON that can stand inside a script element and cannot end it."""
    text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _finite(value: Any) -> Any:
    """Replace what JSON cannot write by None, which is a gap in a chart."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list | tuple) else value


TONES: dict[str, str] = TEXTS["tones"]  # the verdict of each


class UtilityMeasure(NamedTuple):
    """One measure of an audit's `utility`."""

    group: str
    key: str
    label: str
    scale: str
    unchanged: int  # the value where release and clean data agree


PER_USER = ("gyration", "visits")  # groups of measures that describe users
UTILITY = [UtilityMeasure(*row) for row in TEXTS["utility"]]


def victim_label(name: str) -> str:
    """The name of a victim's training data: an adversary, a control, or a random release under an adversary."""
    if name in ADVERSARIES:
        return ADVERSARIES[name].label
    control, _, adversary = name.partition("+")
    if control in CONTROLS and adversary:
        return f"{CONTROLS[control]}, {victim_label(adversary)}"
    return CONTROLS.get(name, name)


NUMBER = re.compile(r"\bA\d+\b")  # of an adversary


def unnumbered(name: str) -> str:
    """The name of a victim's training data without the numbers of adversaries, which only tables need."""
    text = " ".join(NUMBER.sub("", victim_label(name)).split()).replace(" ,", ",")
    return text[:1].upper() + text[1:]


def known_to(name: str) -> str:
    """What an adversary holds, spelled out where it refers to another one; "" for one that is not registered."""
    numbered = {found[0]: a.holds for a in ADVERSARIES.values() if (found := NUMBER.search(a.label))}
    text = ADVERSARIES[name].holds if name in ADVERSARIES else ""
    while found := re.search(r"what (A\d+) holds", text):
        text = text.replace(found[0], numbered[found[1]].removesuffix("; no leak"))
    return text


def adversary_text(name: str) -> str:
    """What an adversary knows and does; nothing for one that is not registered."""
    does = ADVERSARIES[name].does if name in ADVERSARIES else ""
    return does and f"Knows: {known_to(name)}. {does[:1].upper()}{does[1:]}."


def share(value: float, digits: int = 0) -> str:
    """A share in percent, never rounded to all or nothing."""
    percent = 100 * value
    if percent < 0:
        return f"-{share(-value, digits)}"
    if 0 < percent < 0.05:
        return "<0.1%"
    if 99.95 <= percent < 100:
        return ">99.9%"
    near_end = 0 < percent < 0.5 or 99.5 < percent < 100
    return f"{percent:.{max(digits, int(near_end))}f}%"


def with_spread(value: Spread, digits: int = 3, percent: bool = False) -> str:
    """A mean with its standard deviation where there are several seeds."""
    scale, unit = (100, "%") if percent else (1, "")
    mean = f"{value['mean'] * scale:.{digits}f}"
    return mean + (f"\u00a0±\u00a0{value['std'] * scale:.{digits}f}" if len(value["seeds"]) > 1 else "") + unit


def seeds_text(count: int) -> str:
    """How sure the measures are."""
    return "one seed, so the spread is unknown" if count == 1 else f"mean ± standard deviation over {count} seeds"


def regions_text(found: Mapping[str, Any], done: str) -> str:
    """Say on which regions something was `done`, and how many of them say nothing."""
    count, sampled, few = (int(found[name]) for name in ("count", "sampled", "too_few_sessions"))
    share, silent = (float(found[name]) for name in ("share_of_rows", "too_few_share_of_rows"))
    text = f"{done} {sampled:,} of {count:,} regions ({share:.1%} of rows)"
    if sampled < count:
        text += ", chosen by a hash of their keys"
    return f"{text}; {few:,} of {sampled:,} regions ({silent:.1%} of rows) have too few sessions" if few else text


def sample_text(found: Mapping[str, Any]) -> str:
    """Say on which people of a large file adversaries and victims were measured."""
    return (
        f"adversaries and victims saw {found['users']:,} of {found['of_users']:,} people "
        f"({found['share_of_visits']:.1%} of visits in sessions), chosen by a hash of their ids"
    )


FILTERS = (plain, share, with_spread, seeds_text, victim_label)  # of templates
