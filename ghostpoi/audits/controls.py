"""Controls, floors and the adversaries of an audit, by the names under which results store them."""

from collections.abc import Iterable

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.errors import InputError
from ghostpoi.options import option

CLEAN, LEAK_ONLY, LEAK_MIXED, RANDOM = "clean", "leak-only", "leak-mixed", "random"
LEAK_STAY = "leak-stay"  # A16 without the release: leaked steps, and staying where none is known
RANDOM_MATCHED = "random-matched"  # a random release with the method's own sets, at the positions that it substitutes
# What needs no knowledge of who goes where, and what a sentence calls it.
FLOORS = {"popularity": "guessing by popularity", "stay": "guessing that people stay where they are"}

DISTANCE = "distance"  # the measures of `attack.victims.distances`
ITSELF = "itself"  # the victim of an adversary that predicts
ALONE = (LEAK_ONLY, LEAK_STAY, *FLOORS)  # what an adversary has without the release

MARKOV = "markov"  # what counting steps of clean sessions predicts

CONTROLS: dict[str, str] = {
    LEAK_ONLY: "leaked sessions alone",
    LEAK_STAY: "leaked steps and staying, no release",
    LEAK_MIXED: "release with leaked sessions swapped in",
    RANDOM: "random release",
    RANDOM_MATCHED: "matched random release",
    "popularity": "popularity (floor)",
    "stay": "same venue again (floor)",
    MARKOV: "Markov on clean sessions",
    "markov_on_release": "Markov on the release",
}


def under(control: str, adversary: str) -> str:
    """Return the key of a random release under an adversary."""
    return control if adversary == "none" else f"{control}+{adversary}"


def in_table_order(name: str) -> int:
    """Return the place of a control in a table; those under an adversary follow the plain one."""
    base = name.partition("+")[0]
    return list(CONTROLS).index(base) if base in CONTROLS else len(CONTROLS)


def default_adversaries(everybody: bool = False, columns: bool = False, pseudonyms: bool = False) -> tuple[str, ...]:
    """Return the adversaries of one release that train no model and hold the release, its rule and the leak alone.

    `everybody` adds those that do or that know the city from outside, `columns` those that need columns which the
    release kept, and `pseudonyms` those that need user ids which change.
    """
    return tuple(
        name
        for name, a in ADVERSARIES.items()
        if not a.many_releases
        and (everybody or not (a.trains or a.needs_outside))
        and (columns or not a.needs_columns)
        and (pseudonyms or not a.needs_pseudonyms)
    )


def completed(adversaries: tuple[str, ...], columns: bool, pseudonyms: bool) -> tuple[str, ...]:
    """Add to a full default set what a release with kept columns or with pseudonyms needs; a shorter list stays."""
    odd = [name for name in adversaries if ADVERSARIES[name].needs_pseudonyms and not pseudonyms]
    if odd:
        raise InputError(
            f"{option('adversaries', odd[0])}: the release keeps the user ids, so there is nothing to relink; drop it"
        )
    full = set(default_adversaries()) <= set(adversaries)
    return in_order({*adversaries, *default_adversaries(False, columns, pseudonyms)}) if full else adversaries


def parse_adversaries(text: str | None, everybody: bool = False) -> tuple[str, ...]:
    """Read adversaries from the command line. The default is all that train no model; `none` always runs."""
    if text is None:
        return default_adversaries(everybody)
    every = default_adversaries(everybody=True, columns=True, pseudonyms=True)
    return in_order({"none", *known_names(text, "adversaries", "adversary", every)})


def known_names(text: str, flag: str, what: str, known: Iterable[str]) -> list[str]:
    """Read names that commas separate, each once; refuse an unknown one."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"{option(flag, unknown[0])}: unknown {what}; choose from {', '.join(known)}")
    return names


def uses_leak(adversary: str) -> bool:
    """Whether an adversary needs leaked sessions; one that is not registered is taken to."""
    return adversary not in ADVERSARIES or ADVERSARIES[adversary].uses_leak


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return adversaries in the order of the registry, unknown ones last: ties must not depend on the order of runs."""
    order = {name: place for place, name in enumerate(ADVERSARIES)}
    return tuple(sorted(names, key=lambda name: (order.get(name, len(order)), name)))
