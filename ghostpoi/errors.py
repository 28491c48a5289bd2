"""The exceptions for bad input or usage."""

TYPE_CHECKING = False  # importing `typing` would delay the first handler of Ctrl-C
if TYPE_CHECKING:
    from collections.abc import Callable

    from ghostpoi.options import Named


class InputError(Exception):
    """Bad input or usage. The message is one sentence: the problem, the place, the remedy. Commands exit with 2.

    `options` are the options that it names, with their values.

    >>> try:
    ...     ghostpoi.protect("checkins.csv", drop=["user"])
    ... except ghostpoi.InputError as e:
    ...     print(e)
    ...     print([(named.option.keyword, named.values) for named in e.options])
    drop=["user"]: a release needs this column; remove the option
    [('drop', ('user',))]
    """

    code = 2  # with which a command exits
    _named: "list[Named] | None" = None  # once they are spelled

    @property
    def text(self) -> str:
        """The message with its options as data, for a message that contains it."""
        return str(self.args[0]) if self.args else ""

    @property
    def options(self) -> "list[Named]":
        """The options that the message names."""
        from ghostpoi.options import options_of

        return options_of(self.text) if self._named is None else self._named

    def spell(self, written: "Callable[[str], str]") -> None:
        """Fix how the message spells its options."""
        self._named, self.args = self.options, (written(self.text),)

    def __str__(self) -> str:
        from ghostpoi.options import in_shell

        return in_shell(self.text)


class EngineFailed(InputError):
    """The machines that work on a dataset could not go on, whatever its content. What they have done can be used."""


class ConnectionLost(InputError):
    """A database went away while it was read or written. Commands exit with 1: the input may be right."""

    code = 1


class RegionsFailed(InputError):
    """Some regions of a dataset could not be protected; the others are done. Commands exit with 1."""

    code = 1
