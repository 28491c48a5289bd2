"""How a step is called: with the arguments that options.toml declares, its messages and its progress."""

from __future__ import annotations

import functools
import inspect
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from ghostpoi.api.given import FRAMES, Given
from ghostpoi.errors import InputError
from ghostpoi.files import refuse_loops
from ghostpoi.options import COPIES, Option, declared, in_python, keyword, quoted, texts, with_urls
from ghostpoi.progress import Report, Say, logged, no_report, timed
from ghostpoi.stores import at_hand, url_of

WRONG = object()


def _is(*kinds: type) -> Callable[[Any], bool]:
    """Return what checks whether a value is of one of these kinds; True and False are no numbers."""
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool)


def _is_frame(value: Any) -> bool:
    if _is_path(value) or isinstance(value, Mapping | list | tuple):
        return False
    from ghostpoi.formats.frames import known  # slow to import

    return known(value) is not None


def _is_texts(value: Any, values: Callable[[Any], bool] = lambda value: True) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value)) and all(map(values, value.values()))


_is_text, _is_path = _is(str), _is(str, os.PathLike)


class Kind(NamedTuple):
    """What belongs to a type, its names in a message and in an annotation, for one value and for a list of them."""

    belongs: Callable[[Any], bool]
    one: str
    hint: str
    many: str = ""
    become: Callable[[Any], Any] = lambda value: value


PATH, FRAME, PATH_HINT = "a path", "a data frame", "PathLike"
TEXT = Kind(_is_text, "text", "str", "a list of texts", str)
KINDS = {
    "text": TEXT,
    "names": TEXT,
    "whole": Kind(_is(Integral), "a whole number", "int", become=int),
    "number": Kind(_is(Real), "a number", "float", become=float),
    "flag": Kind(lambda value: type(value).__name__ in ("bool", "bool_"), "True or False", "bool", become=bool),
    "path": Kind(_is_path, PATH, PATH_HINT, "a list of paths"),
    "source": Kind(lambda value: _is_path(value) or _is_frame(value), f"{PATH} or {FRAME}", "PathLike | IntoFrame"),
    "release": Kind(lambda value: _is_path(value) or hasattr(value, "manifest"), f"{PATH} or what protect returned",
                    "PathLike | Release[Any]", "a list of releases"),
    "released": Kind(lambda value: _is_path(value) or hasattr(value, "manifest") or _is_frame(value),
                     f"{PATH}, what protect returned or {FRAME}", "PathLike | Release[Any] | IntoFrame"),
    "mapping": Kind(lambda value: _is_texts(value, _is_text), "a dict of texts", "Mapping[str, str]", become=dict),
    "settings": Kind(_is_texts, "a dict or a list of texts", "Mapping[str, Any] | Sequence[str]", become=dict),
}  # fmt: skip


def _parameter(one: Option) -> inspect.Parameter:
    hint = KINDS[one.type].hint
    if one.many or one.type == "names":
        hint = f"Sequence[{hint}] | {hint}"
    return inspect.Parameter(
        one.keyword, inspect.Parameter.POSITIONAL_OR_KEYWORD if one.positional else inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if one.needed else one.python_default,
        annotation=f"{hint} | None" if one.takes_none() else hint,
    )  # fmt: skip


def checked(
    step: str, signature: inspect.Signature, arguments: Iterable[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by name: one text as a list where a list is due, numbers of numpy as Python's."""
    try:
        given = signature.bind(*arguments, **keywords).arguments
    except TypeError as e:
        raise TypeError(f"{step}(): {e}") from None
    options = {one.keyword: one for one in declared()[step].values() if one.only != "command"}
    return {name: _checked(options[name], value) for name, value in given.items()}


def _checked(option: Option, value: Any) -> Any:
    if value is None and option.takes_none():
        return None
    name, kind = option.keyword, KINDS[option.type]
    found = _taken(option, kind, value)
    if found is WRONG:
        words = kind.many if option.is_list and kind.many else kind.one
        raise InputError(
            f"{name}= takes {words}{f', e.g. {option.example}' if option.example else ''}, not {_name(value)}"
        )
    refuse_loops(found)
    least, most = (-inf if option.min is None else option.min), (inf if option.max is None else option.max)
    if (least, most) != (-inf, inf) and not least <= found <= most:
        raise InputError(f"{name}={value}: give {least:g} {'or more' if most == inf else f'to {most:g}'}")
    return found


def _taken(option: Option, kind: Kind, value: Any) -> Any:
    """Return a value as its type has it; WRONG if it is of another one."""
    if (option.is_list and not kind.belongs(value)) or option.many or option.type == "names":
        item = TEXT if option.type == "settings" else kind
        many = isinstance(value, Iterable) and not (isinstance(value, str | Mapping) or _is_frame(value))
        values = value if many else [value]
        found = [item.become(one) if item.belongs(one) else WRONG for one in values]
        return WRONG if any(one is WRONG for one in found) else found
    return kind.become(value) if kind.belongs(value) else WRONG


def _name(value: Any) -> str:
    name = type(value).__name__
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return f"{name} of {', '.join(sorted({type(one).__name__ for one in items}))}" if items else name


R = TypeVar("R")


@dataclass(frozen=True)
class Door:
    """How to give messages, show progress, spell options, and write a call that repeats a step."""

    say: Say
    bar: Callable[[float], AbstractContextManager[Report]]
    text: Callable[[str], str]  # a message with its options as the caller spells them
    call: Callable[[str, str, Mapping[str, Any]], str]  # step, source, keywords


def step(function: Callable[[Door, Given], R]) -> Callable[..., R]:
    """Make a function a step of the Python API: it checks its arguments, and its messages name keywords."""
    name = function.__name__
    options = [one for one in declared()[name].values() if one.only != "command"]
    returns = function.__annotations__["return"]
    signature = inspect.Signature(list(map(_parameter, options)), return_annotation=returns)

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> R:
        try:
            asked = checked(name, signature, arguments, keywords)
            with at_hand(asked, name) as here, timed(name):
                return elsewhere(function(PYTHON, Given(name, here)))
        except InputError as e:
            e.spell(in_python)
            raise

    called.__signature__ = signature  # type: ignore[attr-defined]
    return called


def elsewhere(result: R) -> R:
    """Return a result that names URLs in place of their copies, which are removed."""
    held = {one.name: getattr(result, one.name) for one in fields(cast(Any, result))} if is_dataclass(result) else {}
    changed = {name: new for name, old in held.items() if (new := _url(old)) is not old}
    return cast(R, replace(cast(Any, result), **changed)) if changed else result


def _url(value: Any) -> Any:
    if isinstance(value, tuple) and any(isinstance(one, Path) for one in value):
        return tuple(map(_url, value))
    if isinstance(value, dict) and COPIES in (text := json.dumps(value)):
        return json.loads(with_urls(text))
    return (url_of(value) or value) if isinstance(value, Path) else value


def through(door: Door, step: str, keywords: Mapping[str, Any]) -> Any:
    """Call a step from another door, which checks the keywords itself."""
    import ghostpoi

    return getattr(ghostpoi, step).__wrapped__(door, Given(step, keywords))


def python_call(step: str, source: str, keywords: Mapping[str, Any]) -> str:
    """Return the Python call of a step with these keywords.

    >>> python_call("protect", "c.csv", {"set": ["method.size=8"], "keep": ["note"], "config": None})
    'ghostpoi.protect("c.csv", set={"method.size": 8}, keep=["note"])'
    """
    options = {one.keyword: one for one in declared()[step].values()}
    arguments = [FRAMES.get(source) or quoted(source)]
    for name, value in keywords.items():
        if values := texts(value):
            variable = FRAMES.get(values[0])
            arguments.append(f"{name}={variable}" if variable else keyword(options[name], values))
    return f"ghostpoi.{step}({', '.join(arguments)})"


def _warn(message: str) -> None:
    """Show a warning as Python does. Notes about progress are for a terminal only."""
    label, _, said = message.partition("warning: ")
    if said and not label:
        warnings.warn(in_python(said), stacklevel=_levels())


def _levels() -> int:
    """Return how many calls lie between a warning and the code outside this package that called the step."""
    inside, level = os.path.dirname(os.path.dirname(__file__)), 1
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith((inside, functools.__file__)):
        frame, level = frame.f_back, level + 1
    return level - 1


PYTHON = Door(_warn, lambda total: nullcontext(logged(no_report)), in_python, python_call)
