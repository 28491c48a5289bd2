"""Keywords for options that messages do not name as data yet."""

import re
from collections.abc import Mapping, Sequence

from ghostpoi.options import declared, in_python

# Words that continue the sentence after an option. Any other word after an option that takes one is its value.
PROSE = {
    "and", "are", "cannot", "contradict", "differs", "does", "exclude", "for", "from", "has", "hides", "holds", "in",
    "instead", "is", "keeps", "leaves", "lies", "lists", "makes", "must", "names", "needs", "or", "out", "prints",
    "reads", "says", "stores", "takes", "to", "when", "with", "would", "writes",
}  # fmt: skip
SHORT = {"-o": "output"}


def spoken(message: str) -> str:
    """Return a message as a caller of the Python API reads it."""
    kinds = {}
    for options in declared().values():
        for one in options.values():
            if one.only != "command":
                many = "mapping" if one.type in ("mapping", "settings") else "list" if one.is_list else "value"
                kinds[one.keyword] = "flag" if one.type == "flag" else many
    return with_keywords(in_python(message), kinds)


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
