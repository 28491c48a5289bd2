"""The exception for bad input or usage."""


class InputError(Exception):
    """Bad input or usage. The message is one sentence: the problem, the place, the remedy. Commands exit with 2."""
