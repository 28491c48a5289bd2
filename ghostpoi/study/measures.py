"""The measures of a release itself, by the keys that tables, claims and paper.toml use."""

from typing import NamedTuple


class Measure(NamedTuple):
    """Where a release cell holds a measure, and how it is written and judged."""

    heading: str
    path: tuple[str, ...]
    better: int = 0  # the sign of what is better; 0: neither direction is
    clean: tuple[str, ...] = ()  # where the cell holds the measure of the clean sessions
    near_clean: bool = False  # what counts is the distance to the clean sessions' value


MEASURES = {
    "naturalness": Measure("naturalness (mean log p)", ("naturalness",), 1, ("clean_naturalness",)),
    "popularity": Measure("popularity (JS, bits)", ("utility", "popularity", "poi_js"), -1),
    "flows": Measure("common part of flows", ("utility", "flows", "common_part"), 1),
    "gyration": Measure(
        "radius of gyration, km", ("utility", "gyration", "mean_km_after"), -1,
        ("utility", "gyration", "mean_km_before"), near_clean=True,
    ),
    "substitution_rate": Measure("substituted", ("plausibility", "substitution_rate")),
    "category_match": Measure("category kept", ("plausibility", "category_match"), 1),
    "beyond_1km": Measure("beyond 1 km", ("plausibility", "beyond_1km"), -1),
    "mean_km": Measure("mean km", ("plausibility", "mean_km"), -1),
    "p95_km": Measure("P95 km", ("plausibility", "p95_km"), -1),
    "speed_violations_clean": Measure("over speed limit, clean", ("plausibility", "speed_violations_clean"), -1),
    "speed_violations_released": Measure(
        "over speed limit", ("plausibility", "speed_violations_released"), -1,
        ("plausibility", "speed_violations_clean"),
    ),
    "detector": Measure("detector AUC (A12)", ("detector", "auc"), -1),
    "detector_positions": Measure("detector AUC, single check-ins", ("detector", "auc_positions"), -1),
}  # fmt: skip
