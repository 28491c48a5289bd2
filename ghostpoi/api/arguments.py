"""The arguments of a step: each has a type that its annotation names, or one sentence says what to give."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from math import inf
from numbers import Integral, Real
from typing import Any

from ghostpoi.api.reading import ReadingOptions
from ghostpoi.errors import InputError

WRONG = object()
READING: dict[str, str] = {name: hint.__forward_arg__ for name, hint in ReadingOptions.__annotations__.items()}


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # those of numpy


def _is_frame(value: Any) -> bool:
    return any(hasattr(value, name) for name in ("iloc", "write_csv")) and hasattr(value, "columns")


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _is_mapping_of_texts(value: Any) -> bool:
    return _is_mapping(value) and all(isinstance(one, str) for one in value.values())


# The types that annotations name: what belongs to each, what it becomes, and its name in a message.
TYPES: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any], str]] = {
    "None": (lambda value: value is None, lambda value: value, "None"),
    "str": (lambda value: isinstance(value, str), str, "text"),
    "int": (_is_whole, int, "a whole number"),
    "float": (lambda value: isinstance(value, Real) and not isinstance(value, bool), float, "a number"),
    "bool": (_is_flag, bool, "True or False"),
    "PathLike": (lambda value: isinstance(value, str | os.PathLike), lambda value: value, "a path"),
    "Frame": (_is_frame, lambda value: value, "a polars or pandas DataFrame"),
    "Release": (lambda value: hasattr(value, "manifest"), lambda value: value, "what protect returned"),
    "Mapping[str, str]": (_is_mapping_of_texts, dict, "a dict of texts"),
    "Mapping[str, Any]": (_is_mapping, dict, "a dict"),
}
ALIASES = {"Source": "PathLike | Frame", "ReleaseLike": "PathLike | Release"}
LISTS = {"str": "a list of texts", "PathLike": "a list of paths", "ReleaseLike": "a list of releases"}
EXAMPLES = {
    "cluster_points": '"100m"', "map": '{"poi": "venue_id"}', "max_size": '"20GB"', "memory": '"8GB"',
    "timezone": '"America/New_York"',
}  # fmt: skip
# As the options of the commands have them.
RANGES = {
    "max_mean_km": (0, inf), "max_popularity_js": (0, 1), "min_flows": (0, 1), "regions": (1, inf), "seed": (0, inf),
    "seeds": (1, inf), "workers": (0, inf),
}  # fmt: skip


def checked(function: Callable[..., Any], arguments: Iterable[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name: one text as a list where a list is due, numbers of numpy as Python's."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*arguments, **keywords).arguments
    except TypeError as e:
        raise TypeError(f"{function.__name__}(): {e}") from None
    hints = {name: str(p.annotation) for name, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
    if "reading" in signature.parameters:
        given |= given.pop("reading", {})
        hints |= {name: f"{hint} | None" for name, hint in READING.items()}
    if strange := [name for name in given if name not in hints]:
        raise TypeError(f"{function.__name__}(): got an unexpected keyword argument {strange[0]!r}")
    return {name: _checked(name, hints[name], value) for name, value in given.items()}


def _checked(name: str, hint: str, value: Any) -> Any:
    found = _taken(hint, value)
    if found is WRONG:
        example = f", e.g. {EXAMPLES[name]}" if name in EXAMPLES else ""
        raise InputError(f"{name}= takes {_words(hint)}{example}, not {_kind(value)}")
    least, most = RANGES.get(name, (-inf, inf))
    if found is not None and name in RANGES and not least <= found <= most:
        raise InputError(f"{name}={value}: give {least} {'or more' if most == inf else f'to {most}'}")
    return found


def _taken(hint: str, value: Any) -> Any:
    """Return a value as the first type of an annotation to which it belongs; WRONG if there is none."""
    for name in _types(hint):
        if name.startswith("Sequence["):
            many = isinstance(value, Iterable) and not (isinstance(value, str | Mapping) or _is_frame(value))
            found = [_taken(_item(name), one) for one in (value if many else [value])]
            if not any(one is WRONG for one in found):
                return found
        elif TYPES[name][0](value):
            return TYPES[name][1](value)
    return WRONG


def _types(hint: str) -> list[str]:
    return [name for part in hint.split(" | ") for name in ALIASES.get(part, part).split(" | ")]


def _item(sequence: str) -> str:
    return sequence.removeprefix("Sequence[").removesuffix("]")


def _words(hint: str) -> str:
    words = [LISTS[_item(name)] if "Sequence" in name else TYPES[name][2] for name in _types(hint) if name != "None"]
    return " or ".join(dict.fromkeys(words))


def _kind(value: Any) -> str:
    name = type(value).__name__
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return f"{name} of {', '.join(sorted({type(one).__name__ for one in items}))}" if items else name
