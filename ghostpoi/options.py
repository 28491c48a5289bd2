"""The options of commands and of the steps of the Python API, which options.toml declares, and how messages name them.

A message carries the options that it names as data: `option("keep", "note")` is a marked piece of text, which f-strings
and joins leave whole. At the door `in_shell` writes it as `--keep note`, `in_python` as `keep=["note"]`.
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

# Unicode reserves these characters for use inside a program. Nothing else in a message has them.
OPEN, VALUE, SHOWN, CLOSE = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"
MARKED = re.compile(f"{OPEN}([a-z_]+)([^{OPEN}{CLOSE}]*){CLOSE}")
MARKS = re.compile(f"[{OPEN}-{CLOSE}]")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
COPIES = "ghostpoi-at-"  # how the name of a folder begins that holds copies of what lies at URLs
COPY = re.compile(rf"(?:/[^/\s'\"]+)*/{COPIES}\w+/([a-z0-9+.-]+)/")
COMMON, GROUPS, PANELS, EXAMPLES, LABELS = "common", "groups", "panels", "examples", "labels"


@dataclass(frozen=True)
class Option:
    """A parameter of a command, of a step of the Python API, or of both. `options.toml` explains the fields."""

    name: str
    type: str = "text"
    help: str = ""
    default: Any = None
    argument: bool = False
    required: bool = False
    many: bool = False
    flags: tuple[str, ...] = ()
    min: float | None = None
    max: float | None = None
    readable: bool = True
    metavar: str | None = None
    keyword: str = ""
    only: str = ""
    optional: bool = False
    positional: bool = False
    example: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "keyword", self.keyword or self.name)
        object.__setattr__(self, "flags", tuple(self.flags))
        object.__setattr__(self, "positional", self.positional or self.needed)

    @property
    def flag(self) -> str:
        """How the command line spells it first."""
        return self.flags[0] if self.flags else f"--{self.name.replace('_', '-')}"

    @property
    def needed(self) -> bool:
        """Whether Python has no default for it."""
        return (self.argument or self.required) and not self.optional

    @property
    def negates(self) -> bool:
        """Whether it switches off what the keyword switches on."""
        return self.name == f"no_{self.keyword}"

    @property
    def is_list(self) -> bool:
        """Whether Python takes a list."""
        return self.many or self.type in ("names", "settings")

    @property
    def python_default(self) -> Any:
        """What the Python function has by default. Its parameter has no default where this is one and required."""
        if self.type == "flag":
            return self.negates or bool(self.default)
        if self.many or self.type == "settings":
            return ()
        return None if self.optional else self.default

    def takes_none(self) -> bool:
        """Whether None means that it is not given."""
        return self.python_default is None and not (self.argument or (self.required and not self.optional))


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


@cache
def declared() -> dict[str, dict[str, Option]]:
    """Return the parameters of each command in order, by name. `study-run` is the command `study run`."""
    common, found = _tables()[COMMON], {}
    for command, own in _tables().items():
        if command not in (COMMON, GROUPS, PANELS, EXAMPLES, LABELS):
            names = [name for taken in own["takes"] for name in groups().get(taken, [taken])]
            found[command] = {name: Option(name, **(common.get(name, {}) | own.get(name, {}))) for name in names}
    return found


def places(command: str) -> set[str]:
    """Return the names of the parameters of a command, and of their keywords, that take paths or URLs."""
    taken = [one for one in declared()[command].values() if one.type in ("path", "source", "release", "released")]
    return {name for one in taken for name in (one.name, one.keyword)}


def groups() -> dict[str, list[str]]:
    """Return the names of options that belong together."""
    return _tables()[GROUPS]


@cache
def panels() -> dict[str, str]:
    """Return under which heading --help shows an option, by the name of the option."""
    each = ((name, title) for title, names in _tables()[PANELS].items() for name in names)
    return {name: title for taken, title in each for name in groups().get(taken, [taken])}


def examples(command: str) -> list[str]:
    """Return commands that --help shows as examples."""
    return _tables()[EXAMPLES].get(command, [])


@cache
def _by_name() -> dict[str, Option]:
    """Return one option of each name. Those of one name are spelled the same in all commands."""
    return {name: option for options in reversed(declared().values()) for name, option in options.items()}


class Named(NamedTuple):
    """An option that a message names, with the values that it names; `shown` is how the command line writes them."""

    option: Option
    values: tuple[str, ...]
    shown: tuple[str, ...]


def option(name: str, *values: object, shown: Callable[[str], str] = str) -> str:
    """Return the mark of an option in a message. Values with blanks take `shown=quote`.

    >>> in_shell(f"leave it out with {option('drop', 'a', 'b c')}")
    'leave it out with --drop a --drop b c'
    >>> in_python(f"leave it out with {option('drop', 'a', 'b c')}")
    'leave it out with drop=["a", "b c"]'
    """
    texts = [MARKS.sub("\ufffd", str(value)) for value in values]
    return OPEN + _by_name()[name].name + "".join(f"{VALUE}{text}{SHOWN}{shown(text)}" for text in texts) + CLOSE


def options_of(message: str) -> list[Named]:
    """Return the options that a message names."""
    return [_named(found) for found in MARKED.finditer(message)]


def _spelled(message: str, written: Callable[[Named], str]) -> str:
    return with_urls(MARKED.sub(lambda found: written(_named(found)), message) if OPEN in message else message)


def with_urls(text: str) -> str:
    """Return a text with URLs in place of the paths of their copies."""
    return COPY.sub(r"\1://", text) if COPIES in text else text


def in_shell(message: str) -> str:
    """Return a message with its options as the command line has them."""
    return _spelled(message, _in_shell)


def _in_shell(one: Named) -> str:
    return " ".join(f"{one.option.flag} {text}" for text in one.shown) or one.option.flag


def in_studio(message: str) -> str:
    """Return a message with its options as the pages of the studio call them.

    >>> in_studio(f"leave it out with {option('drop', 'a', 'b')}")
    'leave it out with “leave out: a, b”'
    """

    def written(named: Named) -> str:
        if (label := _tables()[LABELS].get(named.option.name)) is None:  # no page asks for it
            return f"{_in_shell(named)} in a terminal"
        values = [text.partition("=")[0] if named.option.type == "mapping" else text for text in named.values]
        return f"“{': '.join(filter(None, (label, ', '.join(values))))}”"

    return _spelled(message, written)


def values_of(name: str, message: str) -> list[str]:
    """Return the values that a message names for an option.

    >>> values_of("drop", f"leave it out with {option('drop', 'a', 'b')}")
    ['a', 'b']
    """
    return [value for named in options_of(message) if named.option.name == name for value in named.values]


def command_line(step: str, places: Sequence[str], keywords: Mapping[str, Any]) -> str:
    """Return the command line of a step with these arguments and options."""
    options = {one.keyword: one for one in declared()[step].values()}
    words = ["ghostpoi", step, *places]
    for name, value in keywords.items():
        flag = options[name].flag
        if options[name].type == "flag":
            words += [] if value == bool(options[name].default) else [f"--{'' if value else 'no-'}{flag[2:]}"]
        else:
            words += [word for text in texts(value) for word in (flag, text)]
    return shlex.join(words)


def texts(value: Any) -> list[str]:
    """Return the values of an option as texts: none for None, `key=value` for a mapping."""
    if isinstance(value, Mapping):
        return [f"{key}={one}" for key, one in value.items()]
    return [str(one) for one in (value if isinstance(value, list) else [] if value is None else [value])]


def in_python(message: str) -> str:
    """Return a message with its options as keywords.

    >>> in_python(f"use {option('missing', 'drop')}, {option('set', 'method.size=8')} or {option('no_store')}")
    'use missing="drop", set={"method.size": 8} or store=False'
    """
    return _spelled(message, lambda named: keyword(named.option, named.values))


def _named(found: re.Match[str]) -> Named:
    pairs = [text.split(SHOWN) for text in found[2].split(VALUE)[1:]]
    return Named(_by_name()[found[1]], tuple(pair[0] for pair in pairs), tuple(pair[-1] for pair in pairs))


def keyword(option: Option, values: Sequence[object]) -> str:
    """Return a keyword with its value as Python writes them; without values, the name of the keyword alone."""
    name = option.keyword
    if option.type == "flag":
        return f"{name}={not option.negates}"
    if not values:
        return f"{name}="
    texts = [str(value) for value in values]
    if option.type in ("mapping", "settings") and all("=" in text for text in texts):
        write, items = (_literal if option.type == "settings" else quoted), (text.split("=", 1) for text in texts)
        return f"{name}={{{', '.join(f'{quoted(key)}: {write(value)}' for key, value in items)}}}"
    if option.is_list:
        return f"{name}=[{', '.join(map(quoted, texts))}]"
    return f"{name}={_literal(texts[0]) if option.type in ('whole', 'number') else quoted(texts[0])}"


def _literal(text: str) -> str:
    """Return a number bare, anything else in quotes."""
    return text if NUMBER.fullmatch(text) else quoted(text)


def quoted(text: str) -> str:
    """Return a text in the double quotes of Python."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
