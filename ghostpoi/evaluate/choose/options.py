"""The settings that `choose` tries, and what the publisher wants of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ghostpoi.options import option
from ghostpoi.publish.methods.base import KeepsCategory

WIDTHS = ((8, 3.0), (16, 5.0), (32, 10.0))  # minimum size and maximum width of a crowd
STRICTNESS: tuple[KeepsCategory, ...] = ("exact", "group", "any")
EPSILON = 1e-9


@dataclass(frozen=True)
class Option:
    """One setting of crowds."""

    category: KeepsCategory
    draw: Literal["even", "popular-by-hour"]
    size: int
    reach_km: float

    @property
    def name(self) -> str:
        kind = {"exact": "same category", "group": "same group", "any": "any category"}[self.category]
        how = {"even": "drawn evenly", "popular-by-hour": "by popularity"}[self.draw]
        return f"{kind}, {self.size}/{self.reach_km:g}, {how}"

    @property
    def assignments(self) -> list[str]:
        """The settings as `--set` takes them."""
        values = {"category": self.category, "draw": self.draw, "size": self.size, "reach_km": f"{self.reach_km:g}"}
        return [f"method.{key}={value}" for key, value in values.items()]


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a release must keep to be useful. Among the settings that do, the best protected one is recommended."""

    max_mean_km: float = 2.0
    min_flows: float = 0.5
    max_popularity_js: float = 0.1
    keep_category: KeepsCategory = "any"

    def missed(self, trial: Mapping[str, Any]) -> list[str]:
        """Name the wishes that a trial does not fulfil, as options of the command."""
        wanted = {
            option("max_mean_km", f"{self.max_mean_km:g}"): trial["mean_km"] - self.max_mean_km,
            option("min_flows", f"{self.min_flows:g}"): self.min_flows - trial["flows"],
            option("max_popularity_js", f"{self.max_popularity_js:g}"): trial["popularity"] - self.max_popularity_js,
        }
        return [name for name, excess in wanted.items() if excess > EPSILON]


def options(wishes: Wishes, has_category: bool = True, has_groups: bool = True) -> list[Option]:
    """Return the settings to try; a file without categories has crowds of any category only.

    Groups are left out where they are unknown: those of regions cannot be learned, since all must have the same. Draws
    without popularity are tried where they can protect best: in any category.
    """
    allowed = STRICTNESS[: STRICTNESS.index(wishes.keep_category) + 1] if has_category else STRICTNESS[-1:]
    allowed = tuple(category for category in allowed if has_groups or category != "group")
    popular = [Option(category, "popular-by-hour", *width) for category in allowed[::-1] for width in WIDTHS]
    return popular + [Option(allowed[-1], "even", *width) for width in WIDTHS]


def frontier(trials: list[dict[str, Any]]) -> list[bool]:
    """Mark the trials that no other beats: none is better in worst case, flows or distance and as good in the rest.

    The worst case is that of the adversaries which all settings faced.
    """

    def costs(trial: dict[str, Any]) -> tuple[float, float, float]:
        return trial["worst_of_fast"], -trial["flows"], trial["mean_km"]

    def beats(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
        return one != two and all(a <= b for a, b in zip(one, two, strict=True))

    every = [costs(trial) for trial in trials]
    return [not any(beats(other, own) for other in every) for own in every]
