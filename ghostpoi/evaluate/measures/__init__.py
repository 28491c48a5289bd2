"""Measures: what a release denies a learner, and what it costs everybody else."""
