"""Adversaries that restore a release, and victims that learn from it."""
