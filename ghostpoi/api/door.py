"""How a step speaks to its caller: the door through which it was called gives messages and shows progress."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from ghostpoi.api.arguments import checked
from ghostpoi.api.given import FRAMES
from ghostpoi.errors import InputError
from ghostpoi.options import declared, in_python, keyword, quoted
from ghostpoi.progress import Report, Say, no_report

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Door:
    """How to give messages, show progress, spell options, and write a call that repeats a step."""

    say: Say
    bar: Callable[[float], AbstractContextManager[Report]]
    text: Callable[[str], str]  # a message with its options as the caller spells them
    call: Callable[[str, str, Mapping[str, Any]], str]  # step, source, keywords


def step(function: Callable[Concatenate[Door, P], R]) -> Callable[P, R]:
    """Make a function a step of the Python API: it checks its arguments, and its messages name keywords."""
    parts = inspect.signature(function)
    signature = parts.replace(parameters=list(parts.parameters.values())[1:])

    @functools.wraps(function)
    def called(*arguments: P.args, **keywords: P.kwargs) -> R:
        run: Callable[..., R] = function
        try:
            return run(PYTHON, **checked(function.__name__, signature, arguments, keywords))
        except InputError as e:
            e.spell(in_python)
            raise

    called.__signature__ = signature  # type: ignore[attr-defined]
    return called


def through(door: Door, step: Callable[..., R]) -> Callable[..., R]:
    """Return a step for callers at another door, who check arguments themselves."""
    function: Callable[..., R] = step.__wrapped__  # type: ignore[attr-defined]
    return functools.partial(function, door)


def python_call(step: str, source: str, keywords: Mapping[str, Any]) -> str:
    """Return the Python call of a step with these keywords.

    >>> python_call("protect", "c.csv", {"set": ["method.size=8"], "keep": ["note"], "config": None})
    'ghostpoi.protect("c.csv", set={"method.size": 8}, keep=["note"])'
    """
    options = {one.keyword: one for one in declared()[step].values()}
    arguments = [FRAMES.get(source) or quoted(source)]
    for name, value in keywords.items():
        if isinstance(value, Mapping):
            value = [f"{key}={one}" for key, one in value.items()]
        values = value if isinstance(value, list) else [] if value is None else [value]
        if values:
            variable = FRAMES.get(str(values[0]))
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


PYTHON = Door(_warn, lambda total: nullcontext(no_report), in_python, python_call)
