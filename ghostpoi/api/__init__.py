"""The Python API: one function and one result per step. The command line calls the same functions."""
