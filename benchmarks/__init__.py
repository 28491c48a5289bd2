"""Benchmarks: `python -m benchmarks NAME`. Each reports ratios of times measured in one run on one machine."""
