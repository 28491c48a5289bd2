"""The adversaries of an audit, and those that a complete audit needs."""

from collections.abc import Iterable

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.errors import InputError


def default_adversaries(everybody: bool = False, columns: bool = False) -> tuple[str, ...]:
    """Return the adversaries of one release that train no model.

    `everybody` adds those that do, `columns` those that need columns which the release kept.
    """
    return tuple(
        name
        for name, a in ADVERSARIES.items()
        if not a.many_releases and (everybody or not a.trains) and (columns or not a.needs_columns)
    )


def with_columns(adversaries: tuple[str, ...]) -> tuple[str, ...]:
    """Add to a full default set what a release with kept columns needs; a shorter list stays."""
    full = set(default_adversaries()) <= set(adversaries)
    return in_order({*adversaries, *default_adversaries(columns=True)}) if full else adversaries


def parse_adversaries(text: str | None, everybody: bool = False) -> tuple[str, ...]:
    """Read adversaries from the command line. The default is all that train no model; `none` always runs."""
    if text is None:
        return default_adversaries(everybody)
    if everybody:
        raise InputError(f"--all and --adversaries {text} contradict each other; give one of them")
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = default_adversaries(everybody=True, columns=True)
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"--adversaries {text}: there is no {unknown[0]!r}; choose from {', '.join(known)}")
    return in_order({"none", *names})


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return adversaries in the order of the registry, unknown ones last: ties must not depend on the order of runs."""
    order = {name: place for place, name in enumerate(ADVERSARIES)}
    return tuple(sorted(names, key=lambda name: (order.get(name, len(order)), name)))


def not_run(adversaries: Iterable[str], columns: bool = False) -> list[str]:
    """Return the adversaries of the default set that are missing. An audit without them is partial."""
    ran = set(adversaries)
    return [name for name in default_adversaries(columns=columns) if name not in ran]
