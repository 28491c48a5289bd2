"""The one exception that a user may see."""


class InputError(Exception):
    """Bad input or usage: one sentence that names the thing, the place and the remedy. The command exits with 2."""
