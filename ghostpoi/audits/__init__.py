"""Evaluation: one grid of releases, adversaries, victims and seeds, the measures on it, and the audit of a release."""
