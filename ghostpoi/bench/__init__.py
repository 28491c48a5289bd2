"""Benchmarks. Each reports ratios of times measured in one run on one machine."""
