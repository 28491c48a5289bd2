"""Mutated manifests of a release that is otherwise fine."""

import json
from copy import deepcopy
from random import Random
from typing import Any

from fuzz.text_files import mutated

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 10**30, 1e308, -0.5, float("nan"), float("inf"), "", "x", "\x1b[31m", "\ud800", "../x",
    "/etc/passwd", [], [None], ["lat"], [["lat"]], {}, {"a": None}, {"": {}}, "a" * 10_000, 2**63, "checkins.txt\x00",
)  # fmt: skip


def manifest(draw: Random, text: str) -> bytes:
    """Return a mutated manifest."""
    kind = draw.random()
    if kind < 0.15:
        return mutated(draw, text.encode())
    if kind < 0.18:
        return draw.choice((b"", b"null", b"[]", b"{}", b"1", b'"x"', b"[" * 5000, b'{"a":' * 700 + b"1" + b"}" * 700))
    value = json.loads(text)
    for _ in range(draw.choice((1, 1, 2, 5))):
        _change(draw, value)
    return json.dumps(value, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")


def _change(draw: Random, value: Any) -> None:
    """Replace, remove or add something at a random depth."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = draw.choice(keys)
        if isinstance(value[key], dict | list) and value[key] and draw.random() < 0.8:
            value = value[key]
            continue
        kind = draw.randrange(4)
        if kind == 0:
            del value[key]
        elif kind == 1 and isinstance(value, dict):
            value[draw.choice(("seed", "x", "\x1b[2J", key + "x"))] = deepcopy(draw.choice(VALUES))
        else:
            value[key] = deepcopy(draw.choice(VALUES))
        return
