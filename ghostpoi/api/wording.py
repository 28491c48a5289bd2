"""How a step speaks to its caller.

Messages name options as the command line has them: `--keep near`. Python callers read the same messages with the
keywords of the function that they called: `keep=["near"]`.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from ghostpoi.api.arguments import READING, checked
from ghostpoi.api.reading import FRAMES
from ghostpoi.errors import InputError
from ghostpoi.progress import Report, Say, no_report

P = ParamSpec("P")
R = TypeVar("R")

# Words that continue the sentence after an option. Any other word after an option that takes one is its value.
PROSE = {
    "and", "are", "cannot", "contradict", "differs", "does", "exclude", "for", "from", "has", "hides", "holds", "in",
    "instead", "is", "keeps", "leaves", "lies", "lists", "makes", "must", "names", "needs", "or", "out", "prints",
    "reads", "says", "stores", "takes", "to", "when", "with", "would", "writes",
}  # fmt: skip
SHORT = {"-o": "output"}


@dataclass(frozen=True)
class Caller:
    """Who called a step: how to give messages, show progress, name options, and write a call that repeats a step."""

    say: Say
    bar: Callable[[float], AbstractContextManager[Report]]
    text: Callable[[str], str]  # a message with the caller's names of options
    call: Callable[[str, str, Mapping[str, Any]], str]  # step, source, keywords


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


def caller() -> Caller:
    """Return who called the step that runs."""
    found = _caller.get()
    assert found is not None, "only a step may ask who called it"
    return found


@contextmanager
def called_by(who: Caller) -> Iterator[None]:
    """Let steps inside the block speak to this caller."""
    token = _caller.set(who)
    try:
        yield
    finally:
        _caller.reset(token)


def step(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function a step of the API: it checks types and speaks of keywords, unless a command called it."""

    @functools.wraps(function)
    def speaking(*arguments: P.args, **keywords: P.kwargs) -> R:
        if _caller.get() is not None:
            return function(*arguments, **keywords)
        text = functools.partial(with_keywords, kinds=kinds_of(function), values=_texts([*arguments, keywords]))
        with called_by(Caller(functools.partial(_warn, text), _no_bar, text, python_call)):
            try:
                run: Callable[..., R] = function
                return run(**checked(function, arguments, keywords))
            except InputError as e:
                e.args = (text(str(e)),)
                raise

    return speaking


def kinds_of(function: Callable[..., Any]) -> dict[str, str]:
    """Return what each keyword of a step holds: flag, list, mapping or value."""
    kinds: dict[str, str] = {}
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_KEYWORD:
            kinds |= dict.fromkeys(READING, "value")
        else:
            hint = str(p.annotation)
            many = "mapping" if "Mapping" in hint else "list" if "Sequence" in hint else "value"
            kinds[p.name] = "flag" if isinstance(p.default, bool) else many
    return kinds


def with_keywords(message: str, kinds: Mapping[str, str], values: Sequence[str] = ()) -> str:
    """Return a message with its options as keywords of a step. `values` were given by the caller; they may have spaces.

    >>> kinds = {"keep": "list", "set": "mapping", "missing": "value", "seed": "value", "force": "flag"}
    >>> with_keywords("keep it with --keep a --keep b; see --seed", kinds)
    'keep it with keep=["a", "b"]; see seed='
    >>> with_keywords("use --missing drop, --set method.size=8 or --force", kinds)
    'use missing="drop", set={"method.size": 8} or force=True'
    """
    given = [re.escape(text) for text in sorted(values, key=len, reverse=True) if text.strip()]
    word = "|".join([*given, r"'[^']*'", ",", r"(?!-)[^\s;][^\s;]*?"])
    word = rf"(?:{word})(?=[,;:.)]*(?:\s|$))"
    option = re.compile(rf"(?<![\w-])(?P<flag>--[a-z][a-z-]*|-o)(?![\w-])(?: (?P<value>{word}))?")
    out, end, last = "", 0, ""
    for found in option.finditer(message):
        name, kind = _keyword(found["flag"], kinds)
        value = found["value"]
        if value is not None and (kind in ("flag", "off") or (value in PROSE and value not in values)):
            value = None
        stop = found.end() if value is not None else found.end("flag")
        between = message[end : found.start()]
        if kind in ("list", "mapping") and value is not None and last == name and between == " ":
            out = f"{out[:-1]}, {_item(kind, value)}{out[-1]}"
        else:
            out += between + _written(name, kind, value)
        end, last = stop, name if value is not None else ""
    return out + message[end:]


def python_call(step: str, source: str, keywords: Mapping[str, Any]) -> str:
    """Return the Python call of a step with these keywords.

    >>> python_call("protect", "c.csv", {"set": ["method.size=8"], "keep": ["note"], "config": None})
    'ghostpoi.protect("c.csv", set={"method.size": 8}, keep=["note"])'
    """
    arguments = []
    for name, value in keywords.items():
        if isinstance(value, Mapping):
            value = [f"{key}={one}" for key, one in value.items()]
            arguments += [f"{name}={{{', '.join(_item('mapping', text) for text in value)}}}"] if value else []
        elif name == "set":
            arguments += [f"set={{{', '.join(_item('mapping', text) for text in value)}}}"] if value else []
        elif isinstance(value, Sequence) and not isinstance(value, str):
            arguments += [f"{name}=[{', '.join(_quoted(str(one)) for one in value)}]"] if value else []
        elif value is not None:
            arguments += [f"{name}={value if isinstance(value, int) else _variable(str(value))}"]
    return f"ghostpoi.{step}({', '.join([_variable(source), *arguments])})"


def _variable(text: str) -> str:
    """Return a text in quotes, but a name for a data frame."""
    return FRAMES.get(text) or _quoted(text)


def _keyword(flag: str, kinds: Mapping[str, str]) -> tuple[str, str]:
    """Return the keyword that stands for an option, and its kind. `--no-x` switches the keyword `x` off."""
    name = SHORT.get(flag) or flag.removeprefix("--").replace("-", "_")
    positive = name.removeprefix("no_")
    if name not in kinds and kinds.get(positive) == "flag":
        return positive, "off"
    return name, kinds.get(name, "value")


def _written(name: str, kind: str, value: str | None) -> str:
    if kind in ("flag", "off"):
        return f"{name}={kind == 'flag'}"
    if value is None:
        return f"{name}="
    if kind == "list":
        return f"{name}=[{_item(kind, value)}]"
    if kind == "mapping" and "=" in value:
        return f"{name}={{{_item(kind, value)}}}"
    return f"{name}={_literal(value)}"


def _item(kind: str, value: str) -> str:
    if kind == "list":
        return _quoted(_bare(value))
    key, _, one = _bare(value).partition("=")
    return f"{_quoted(key)}: {_literal(one)}"


def _literal(text: str) -> str:
    """Return the text of an option as Python writes the value: numbers bare, anything else in quotes."""
    text = _bare(text)
    return text if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text) else _quoted(text)


def _bare(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _texts(values: Any) -> list[str]:
    """Return the texts and paths among the arguments of a call, as messages show them."""
    if isinstance(values, Mapping):
        return [f"{key}={one}" for key, one in values.items()] + _texts(list(values.values()))
    if isinstance(values, list | tuple):
        return [text for value in values for text in _texts(value)]
    return [str(values)] if isinstance(values, str | os.PathLike) else []


def _warn(text: Callable[[str], str], message: str) -> None:
    """Show a warning as Python does. Notes about progress are for a terminal only."""
    label, _, said = message.partition("warning: ")
    if said and not label:
        warnings.warn(text(said), stacklevel=_levels())


def _levels() -> int:
    """Return how many calls lie between a warning and the code outside this package that called the step."""
    inside, level = os.path.dirname(os.path.dirname(__file__)), 1
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith((inside, functools.__file__)):
        frame, level = frame.f_back, level + 1
    return level - 1


def _no_bar(total: float) -> AbstractContextManager[Report]:
    return nullcontext(no_report)
