"""The audit in a manifest: its public part, and how a new run joins what is stored.

Runs with the same settings add up, and everything is concluded again over all their adversaries. A run with other
settings replaces a stored audit only if it is at least as full. So nobody gets a better verdict by running less.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ghostpoi.audits import persons
from ghostpoi.audits.controls import DISTANCE, in_order, in_table_order
from ghostpoi.audits.verdicts import LEAKS, SEVERITY, conclude, decide, limits_of
from ghostpoi.data.displacement import published
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.progress import Say
from ghostpoi.release.manifest import MANIFEST, release_identity, seal_of, store_manifest

PUBLIC = (
    "verdict", "gives_away", "limits", "worst_case", "distance", "bound", "persons", "over", "strongest", "clean",
    "adversaries", "not_run", "gaps", "controls", "plausibility", "naturalness", "utility", "protocol", "victims",
    "leak", "leak_by", "test_positions", "kept_columns", "pseudonyms", "version",
)  # fmt: skip
ALWAYS = ("acc@1", "acc@1_moves", "acc@5", "mrr", "accuracy_lost")  # measures of every victim
PUBLIC_MEASURES = (*ALWAYS, "restored", DISTANCE)  # what reports show
REGIONS = "regions"  # which of them were audited; an audit of a whole release has no such section
SAME = (
    "victims",
    "protocol",
    "leak",
    "leak_by",
    "version",
    "settings_sha256",
    REGIONS,
)  # what runs that add up have in common


def public(found: dict[str, Any]) -> dict[str, Any]:
    """Return what a release may contain: accuracies and measures of the release, no statistic of clean data."""
    out = {name: found[name] for name in PUBLIC} | {"settings_sha256": settings_hash(found["settings"])}
    out |= {REGIONS: found[REGIONS]} if REGIONS in found else {}
    out["persons"] = persons.public(out["persons"])
    out["clean"] = _measures(out["clean"])
    for group in ("adversaries", "controls"):
        out[group] = {name: _measures(measures) for name, measures in out[group].items()}
    out["plausibility"] = _without(out["plausibility"], "_clean")
    # If all radii grow, their Wasserstein distance and their mean after reveal their mean before.
    out["utility"] = {name: _without(group, "_before", "wasserstein_km") for name, group in out["utility"].items()}
    out["naturalness"] = out["naturalness"] and published({"released": out["naturalness"]["released"]})
    return out


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Return the SHA-256 of settings as canonical JSON."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def store(
    release: Path, private: Path, found: dict[str, Any], say: Say, replace: bool = False
) -> dict[str, Any]:  # fmt: skip
    """Store an audit in the manifest and return it, merged with the stored one if both have the same settings.

    The key in the private folder signs the manifest again.
    """
    path = release / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
        of = release_identity(manifest)
        if manifest.get("plausibility", {}) is None:
            say("the audit is not stored: its figures, like those of its draws, would reveal single rows")
            return found
        old = None if replace else _stored(manifest.get("audit"), of, say)
        if old is not None and (other := _differences(old, public(found))):
            if less := _less(old, found):
                say(
                    f"the stored audit stays: it has other settings ({', '.join(other)}), and this one {less}; "
                    f"{option('replace')} stores this one"
                )
                return found
            say(f"replaced the stored audit, which has other settings ({', '.join(other)})")
        elif old is not None:
            found = _merged(old, found, say)
        manifest["audit"] = public(found) | {"of": of}
        signer = seal_of(release).signer
        store_manifest(release, manifest, private)
        if signer and not seal_of(release).signer:
            say(
                f"warning: {release} is no longer signed, because its key is not in {private}; name it with "
                f"{option('private')}"
            )
    except OSError as e:
        raise InputError(
            f"the audit cannot be stored in {path} ({(e.strerror or str(e)).lower()}); free some space or use "
            f"{option('no_store')}"
        ) from None
    return found


def check_writable(release: Path) -> None:
    """Refuse a release in which nothing can be stored."""
    if not os.access(release, os.W_OK | os.X_OK):
        raise InputError(f"{release} is not writable, so the result cannot be stored; use {option('no_store')}")


def _stored(audit: Any, of: dict[str, str], say: Say) -> dict[str, Any] | None:
    """The stored audit, unless it is damaged or belongs to other data."""
    if not audit:
        return None
    try:
        conclude(audit)
        victims = (audit["clean"], *audit["adversaries"].values(), *audit["controls"].values())
        if not all(name in measures for measures in victims for name in ALWAYS):
            raise KeyError("a measure that earlier versions did not take")
        if audit.get("of", of) == of:
            return audit
        say("replaced the stored audit, which belongs to other data")
    except (KeyError, TypeError, ValueError, AttributeError):
        say("replaced the stored audit, which is damaged or of another version")
    return None


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What keeps two audits of one release from adding up."""
    names = {"settings_sha256": f"{option('set')} or {option('config')}"}
    found = [names.get(key, key) for key in SAME if old.get(key) != new.get(key)]
    if _seeds(old) != _seeds(new):
        return [*found, "seeds"]
    if not found and old["clean"]["acc@1"]["seeds"] != new["clean"]["acc@1"]["seeds"]:
        return ["another accuracy on clean data, from another device or file"]
    return found


def _less(old: dict[str, Any], new: dict[str, Any]) -> str:
    """In what a new audit is less full than an old one; empty if in nothing."""
    if missing := [name for name in old["adversaries"] if name not in new["adversaries"]]:
        return f"lacks {', '.join(missing)}"
    if _seeds(new) < _seeds(old):
        return f"has fewer seeds ({_seeds(new)} against {_seeds(old)})"
    ours, theirs = (float(audit.get(REGIONS, {}).get("share_of_rows", 1.0)) for audit in (new, old))
    if ours < theirs:
        return "audits fewer regions"
    return f"has a smaller leak ({new['leak']:g} against {old['leak']:g})" if new["leak"] < old["leak"] else ""


def _merged(old: dict[str, Any], new: dict[str, Any], say: Say) -> dict[str, Any]:
    groups = {group: old[group] | new[group] for group in ("adversaries", "controls")}
    if kept := [name for name in in_order(old["adversaries"]) if name not in new["adversaries"]]:
        say(f"merged with the stored audit, which has the same settings and also ran {', '.join(kept)}")
    order = {"adversaries": in_order(groups["adversaries"]), "controls": sorted(groups["controls"], key=in_table_order)}
    groups = {group: {name: groups[group][name] for name in names} for group, names in order.items()}
    merged = new | groups | {"naturalness": new["naturalness"] or old.get("naturalness")}
    merged["gives_away"] = {leak: _given_away(old, new, leak) for leak in LEAKS}
    merged["limits"] = decide(limits_of(new["limits"]), merged)
    return merged | conclude(merged)


def _given_away(old: dict[str, Any], new: dict[str, Any], leak: str) -> dict[str, Any]:
    """What the run with more adversaries found; what the worse one found if each has some that the other lacks."""
    ours, theirs = ({*run["adversaries"]} for run in (new, old))
    both: tuple[dict[str, Any], dict[str, Any]] = (new["gives_away"][leak], old["gives_away"][leak])
    if ours >= theirs:
        return both[0]
    return both[1] if theirs >= ours else max(both, key=lambda found: (SEVERITY[found["verdict"]], found["mean"]))


def _seeds(audit: dict[str, Any]) -> int:
    return len(audit["clean"]["acc@1"]["seeds"])


def _measures(measures: dict[str, Any]) -> dict[str, Any]:
    found = {name: measures[name] for name in PUBLIC_MEASURES if name in measures}
    if "by_victim" in measures:
        found |= {"victim": measures["victim"]}
        found |= {"by_victim": {victim: _measures(one) for victim, one in measures["by_victim"].items()}}
    return found


def _without(measures: dict[str, float | None], *endings: str) -> dict[str, float | None]:
    return published({name: value for name, value in measures.items() if not name.endswith(endings)})
