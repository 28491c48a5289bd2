"""Controls and floors: what every result is compared with, by the key under which results store it."""

CLEAN, LEAK_ONLY, LEAK_MIXED, RANDOM = "clean", "leak-only", "leak-mixed", "random"

CONTROLS: dict[str, str] = {
    LEAK_ONLY: "leaked sessions alone",
    LEAK_MIXED: "release with leaked sessions swapped in",
    RANDOM: "random release",
    "popularity": "popularity (floor)",
    "markov": "Markov on clean sessions",
    "markov_on_release": "Markov on the release",
}
