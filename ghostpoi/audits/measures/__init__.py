"""Measures: what a victim can learn from a release, how plausible the release is, and how useful it remains."""
