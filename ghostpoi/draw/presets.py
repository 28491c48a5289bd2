"""Presets of `protect --for`: settings that fit together, by who gets the release."""

from ghostpoi.draw.publication import Publication
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.settings import override

CROWDS = "method."  # settings of the default method alone
WITHHOLD = "no_candidate"  # an option, not a setting
PRESETS: dict[str, dict[str, str]] = {
    "partner": {"identity.pseudonyms": "file", "identity.times": "minute", WITHHOLD: "keep"},
    "research": {
        "identity.pseudonyms": "session", "identity.times": "hour", "hide.min_visitors": "2", WITHHOLD: "withhold",
    },
    "public": {
        "identity.pseudonyms": "session", "identity.times": "shift", "hide.min_visitors": "3", "method.size": "64",
        WITHHOLD: "withhold",
    },
}  # fmt: skip


def preset(name: str, method: str) -> dict[str, str]:
    """Return what a preset sets for a method; refuse an unknown name."""
    if name not in PRESETS:
        raise InputError(f"{option('purpose', name)}: use {', '.join(list(PRESETS)[:-1])} or {list(PRESETS)[-1]}")
    return {key: value for key, value in PRESETS[name].items() if method == "crowd" or not key.startswith(CROWDS)}


def with_preset(settings: Publication, name: str | None, method: str) -> Publication:
    """Return settings with those of a preset, if one is named."""
    if name is None:
        return settings
    chosen = preset(name, method)
    return override(settings, [f"{key}={value}" for key, value in chosen.items() if key != WITHHOLD])


def described(settings: Publication, name: str, method: str, withhold: bool) -> dict[str, dict[str, str]]:
    """Return what a manifest says about a preset: its name, what it sets, and which of that other options changed."""
    if not name:
        return {}
    public, own = settings.public(), preset(name, method)
    found = [] if own == PRESETS[name] else ["method"]
    for key, value in own.items():
        section, _, field = key.partition(".")
        now = ("withhold" if withhold else "keep") if key == WITHHOLD else str(public[section][field])
        found += [] if now == value else [key]
    sets = ", ".join(f"{key}={value}" for key, value in PRESETS[name].items())
    return {"preset": {"name": name, "sets": sets, "changed": ", ".join(found)}}
