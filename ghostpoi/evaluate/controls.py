"""Controls and floors: what every result is compared with, by the key under which results store it."""

CLEAN, LEAK_ONLY, LEAK_MIXED, RANDOM = "clean", "leak-only", "leak-mixed", "random"
LEAK_STAY = "leak-stay"  # A16 without the release: leaked steps, and staying where none is known
RANDOM_MATCHED = "random-matched"  # a random release with the method's own sets, at the positions that it substitutes
# What needs no knowledge of who goes where, and what a sentence calls it.
FLOORS = {"popularity": "guessing by popularity", "stay": "guessing that people stay where they are"}

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
    """Return the place of a control in a table; those under an adversary stand beside the plain one."""
    base = name.partition("+")[0]
    return list(CONTROLS).index(base) if base in CONTROLS else len(CONTROLS)
