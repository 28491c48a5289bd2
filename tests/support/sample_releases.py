"""Releases to report on, with invented audits where a real one would only take time."""

import csv
import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import small_city

from ghostpoi.formats import Source
from ghostpoi.release.manifest import release_identity
from ghostpoi.reports.charts import Chart
from ghostpoi.reports.page import charts_of
from ghostpoi.reports.page_data import read_page_data

HOSTILE = [
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    'Joe\'s "Best" <b>Café</b> & Söhne',
    "👩‍👩‍👧 Émile 🍜",
    "{{ 7 * 7 }} %{x} {% raw %}",
    "line\u2028end\u2029<!--",
    "<a href='javascript:window.hacked=1'>tap</a>",
    "‮right to left",
]
LOOSE = [
    f"filters.{name}=1" for name in ("min_poi_checkins", "min_user_checkins", "min_session_length")
] + ["candidates.radius_km=3"]  # fmt: skip
SETS = [word for text in LOOSE for word in ("--set", text)]
DAY = 86_400


def spread(*seeds: float) -> dict[str, Any]:
    mean = sum(seeds) / len(seeds)
    std = (sum((s - mean) ** 2 for s in seeds) / max(1, len(seeds) - 1)) ** 0.5
    return {"mean": mean, "std": std, "seeds": list(seeds)}


def victim(acc: float, restored: float | None = None, seeds: int = 2) -> dict[str, Any]:
    """The measures of a victim of this accuracy."""
    out = {name: spread(*(acc * scale + 0.002 * s for s in range(seeds))) for name, scale in SCALES.items()}
    out["accuracy_lost"] = spread(*(1 - (acc + 0.002 * s) / (0.2 + 0.002 * s) for s in range(seeds)))
    return out if restored is None else out | {"restored": spread(*[restored] * seeds)}


SCALES = {"acc@1": 1.0, "acc@1_moves": 0.8, "acc@5": 1.6, "mrr": 1.3, "acc@1_last": 0.9}


def audit(seeds: int = 2, fails: bool = True, **more: Any) -> dict[str, Any]:
    """What an audit stores: one adversary succeeds, and one is not registered."""
    top = 0.15 if fails else 0.05
    made = {"none": 0.01, "frequency": top, "tomorrow's <new>+one": 0.03}
    return {
        "strongest": "frequency",
        "clean": victim(0.2, seeds=seeds),
        "adversaries": {name: victim(acc, 0.1, seeds) for name, acc in made.items()},
        "verdict": "gives away much" if fails else "gives away nothing measurable",
        "gives_away": {
            "no_leak": given_away(-0.03, 0.01, "none", "stay"),
            "with_leak": given_away(0.09 if fails else -0.01, 0.01, "frequency", "leak-only"),
        },
        "worst_case": {
            "no_leak": {"name": "stay", "acc@1": 0.04},
            "with_leak": {"name": "frequency" if fails else "leak-only", "acc@1": max(top, 0.06)},
        },
        "distance": {
            "far_moves_within_1km": {
                "clean": 0.302,
                "no_leak": {"name": "none", "share": 0.163},
                "with_leak": {"name": "frequency", "share": 0.171},
            }
        },
        "bound": None,
        "over": "default",
        "limits": None,
        "not_run": [],
        "gaps": {"prot": spread(0.19, 0.19), "surv": {}, "mean": None, "worst": None, "worst_all": spread(0.05, 0.05)},
        "controls": {
            "leak-only": victim(0.06, seeds=seeds),
            "leak-stay": victim(0.05, seeds=seeds),
            "leak-mixed": victim(0.03, seeds=seeds),
            "random": victim(0.01, 0.1, seeds),
            "random+frequency": victim(0.08, 0.2, seeds),
            "popularity": victim(0.02, seeds=seeds),
            "stay": victim(0.04, seeds=seeds),
        },
        "plausibility": {"substitution_rate": 1.0, "mean_km": 1.5},
        "naturalness": {"released": -4.2},
        "utility": {
            "popularity": {"poi_js": 0.22, "category_js": 0.0},
            "flows": {"common_part": 0.6, "common_part_between": 0.5},
            "hours": {"category_hour_js": 0.0, "cell_hour_js": 0.05},
            "gyration": {"mean_km_after": 1.6, "wasserstein_km": 0.2, "relative_change": 0.25},
            "visits": {"revisit_rate_after": 0.35, "unique_pois_after": 40.0, "unique_pois_relative_change": 0.4},
        },
        "protocol": "strong",
        "victims": ["transformer"],
        "leak": 0.05,
        "test_positions": 4000,
        "version": "0.1.0",
    } | more


def given_away(mean: float, half: float, adversary: str, control: str) -> dict[str, Any]:
    """What an audit says that is given away."""
    word = "gives away much" if mean > half else "gives away nothing measurable"
    return {
        "mean": mean, "low": mean - half, "high": mean + half, "verdict": word, "adversary": adversary,
        "control": control, "headroom": {"mean": 0.14, "low": 0.13, "high": 0.15}, "test_positions": 4000,
        "positions_needed": None,
    }  # fmt: skip


def copied(made: small_city.Release, folder: Path) -> Path:
    """Copy a release and its private folder."""
    target = folder / "release"
    shutil.copytree(made.folder, target)
    shutil.copytree(made.private, folder / "release.private")
    return target


def put_audit(release: Path, found: dict[str, Any]) -> None:
    """Store an audit as `audit` does; the release is then unsigned."""
    manifest = json.loads((release / "manifest.json").read_text())
    put_manifest(release, manifest | {"audit": found | {"of": release_identity(manifest)}})


def put_manifest(release: Path, manifest: Any) -> None:
    """Write a manifest by hand, without its signature."""
    (release / "manifest.json").write_text(json.dumps(manifest))
    (release / "manifest.sig").unlink(missing_ok=True)


def write_csv(path: Path, rows: list[list[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([["user", "poi_id", "category", "lat", "lon", "time", "name"], *rows])
    return path


@cache
def hostile() -> small_city.Release:
    """A city across the antimeridian whose names of users, venues and categories hold markup."""
    names = [HOSTILE[i % len(HOSTILE)] for i in range(32)]
    rows = []
    for user in range(10):
        for k in range(40):
            v = (7 * user + 5 * k + k // 3) % 32
            lon = 179.97 + 0.01 * (v // 5)
            time = 1_333_400_000 + DAY * (k // 5) + 3600 * (k % 5)
            lat, lon = -17.0 + 0.01 * (v % 5), lon - 360 * (lon > 180)
            rows.append([f"{names[user]}{user}", f"{names[v]}#{v}", HOSTILE[v % 2], f"{lat:.6f}", f"{lon:.6f}", time,
                         f"{names[v]} {v}"])  # fmt: skip
    folder = small_city.scratch() / "hostile"
    folder.mkdir()
    return small_city.protect(write_csv(folder / "in.csv", rows), folder / "release", "--method", "random", *SETS)


@cache
def ten_rows() -> small_city.Release:
    rows = [
        [f"u{k % 2}", f"v{k % 5}", "c", 1 + 0.001 * (k % 5), 2, 1_333_400_000 + 1800 * k, f"n{k % 5}"]
        for k in range(10)
    ]
    folder = small_city.scratch() / "ten"
    folder.mkdir()
    return small_city.protect(write_csv(folder / "in.csv", rows), folder / "release", "--method", "random", *SETS)


def trial(size: int, worst: float, flows: float, km: float, popularity: float = 0.05, **more: Any) -> dict[str, Any]:
    """A setting that `choose` tried."""
    settings = {"category": "any", "draw": "popular", "size": size, "reach_km": 5}
    return {
        "name": f"crowds of {size} venues within 5 km, any category, by popularity", "flows": flows, "mean_km": km,
        "settings": [f"method.{key}={value}" for key, value in settings.items()], "popularity": popularity,
        "given_away": worst - 0.045, "given_away_of_fast": worst - 0.045, "given_away_error": 0.007,
        "worst": worst, "worst_of_fast": worst, "worst_on_moves": worst / 2, "strongest": "habits+leak",
        "accuracy": {"none": spread(worst / 3), "habits+leak": spread(worst)}, "test_positions": 10_000,
        "left_genuine": 0.0, "category_match": None, "missed": [], "frontier": True, "complete": False,
        "command": f"ghostpoi protect city.csv -o RELEASE --set method.size={size}", **more,
    }  # fmt: skip


def choice(**more: Any) -> dict[str, Any]:
    """What `choose` returns: the second setting is recommended, the third moves visits too far."""
    tried = [
        trial(8, 0.09, 0.9, 0.5),
        trial(16, 0.06, 0.8, 1.5),
        trial(48, 0.05, 0.55, 3.2, missed=["--max-mean-km 2"]),
    ]
    known = {
        "clean": [0.2],
        "leak-only": [0.04],
        "leak-stay": [0.045],
        "popularity": 0.02,
        "stay": 0.03,
        "markov": [0.2],
    }
    return {
        "tried": tried, "recommended": tried[1], "nearest": tried[1], "controls": known, "controls_on_moves": known,
        "leak": 0.05, "seeds": 1, "times": "keep", "tried_times": [
            {"times": "keep", "refused": "", "missed": [], "singled_out": 1.0, "singled_out_with_place": 0.9,
             "hours": 1.0, "weekdays": 1.0, "gaps": 1.0},
            {"times": "shift", "refused": "the file covers one week", "missed": []},
        ], "victims": ["markov", "counting"], "pseudonyms": "keep",
        "wishes": {"max_mean_km": 2.0, "min_flows": 0.5, "max_popularity_js": 0.1, "min_rhythm": 1.0,
                   "keep_category": "any"},
    } | more  # fmt: skip


def block(page: str, name: str) -> str:
    """The text of one embedded JSON."""
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.S)
    assert found, name
    return found[1]


def embedded(page: str, name: str) -> Any:
    return json.loads(block(page, name))


def chart_ids(page: str) -> set[str]:
    """The charts on a page."""
    return set(re.findall(r'<figure class="chart[^"]*" id="chart-([a-z]+)"', page))


def charts(release: Path, private: Path | None = None) -> dict[str, Chart]:
    """The charts of a page by their names, before they are drawn."""
    groups = charts_of(read_page_data([Source(release)], private))
    return {chart.id: chart for group in groups.values() for chart in group}


AUDIT = ("filters.train_share=0.5", "filters.val_share=0.25")
