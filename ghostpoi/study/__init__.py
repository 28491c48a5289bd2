"""Studies: a small TOML file names methods, adversaries, leak ratios and seeds; a run makes one JSON per cell."""
