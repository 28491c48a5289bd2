"""Names of controls and floors, by the key under which results store them."""

CONTROLS: dict[str, str] = {
    "leak-only": "leaked sessions only",
    "leak-mixed": "release with leaked sessions",
    "random": "random release",
    "popularity": "popularity (floor)",
    "markov": "Markov on clean sessions (floor)",
    "markov_on_release": "Markov on the release (floor)",
}
