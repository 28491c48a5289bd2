"""The exceptions for bad input or usage."""


class InputError(Exception):
    """Bad input or usage. The message is one sentence: the problem, the place, the remedy. Commands exit with 2.

    >>> try:
    ...     ghostpoi.protect("checkins.csv", drop=["user"])
    ... except ghostpoi.InputError as e:
    ...     print(e)
    drop=["user"]: a release needs this column; remove the option
    """

    code = 2  # with which a command exits


class EngineFailed(InputError):
    """The machines that work on a dataset could not go on, whatever its content. What they have done can be used."""


class RegionsFailed(InputError):
    """Some regions of a dataset could not be protected; the others are done. Commands exit with 1."""

    code = 1
