"""JSON: one object per line, or an array of objects. Objects inside objects become columns such as user.id."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from ghostpoi.errors import InputError
from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.records import json_text, read_records
from ghostpoi.formats.source import Source

Names = tuple[str, ...]  # the keys that lead to a value
Tree = dict[str, Any]  # name -> subtree or JSON text


@dataclass(frozen=True)
class JsonLayout:
    """Objects with separators around them. Null and absent are the same: both are written as null."""

    paths: Mapping[str, Names] = field(repr=False)  # of each column
    start: str
    between: str
    end: str
    words: str
    mime_type: str
    root: str  # JSONPath of the rows

    def json_path(self, column: str) -> str:
        return self.root + "".join(f"[{json_text(name)}]" for name in self.paths[column])

    def write(self, columns: Sequence[str], rows: Iterator[tuple[str | None, ...]], out: BinaryIO) -> None:
        paths = [self.paths[name] for name in columns]
        out.write(self.start.encode())
        for number, row in enumerate(rows):
            tree: Tree = {}
            for path, text in zip(paths, row, strict=True):
                inner = tree
                for name in path[:-1]:
                    inner = inner.setdefault(name, {})
                inner[path[-1]] = "null" if text is None else text
            out.write(((self.between if number else "") + self.record(tree)).encode())
        out.write(self.end.encode())

    def record(self, tree: Tree) -> str:
        """Return the text of one row."""
        return object_text(tree)

    def without_metadata(self) -> "JsonLayout":
        return self


@dataclass(frozen=True)
class JsonFormat:
    """JSON lines, and JSON arrays."""

    summary: str = "JSON lines (one object per line), or a JSON array of objects"

    def recognises(self, head: bytes) -> bool:
        """Look for an object that ends with its line, or for an array of objects."""
        text = head.decode("utf-8-sig", "replace").lstrip()
        if text.startswith("["):
            return text[1:].lstrip().startswith("{")
        first = first_object(text)
        return isinstance(first, dict) and bool(first)

    def read(self, source: Source, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        text = decoded(source, data)
        if text.lstrip().startswith("["):
            records, unit = objects(parsed(source, text), f"{source}, row {{}}"), "row"
            start, between, end, words = "[\n", ",\n", "\n]\n", "a JSON array with one object per row"
            mime_type, root = "application/json", "$[*]"
        else:
            records, unit = objects(lines(source, text), f"{source}, line {{}}"), "line"
            start, between, end, words = "", "\n", "\n", "JSON lines: one object per line"
            mime_type, root = "application/jsonlines", "$"
        columns = flattened(records)
        paths = {".".join(names): names for names in columns}
        layout = JsonLayout(paths, start, between, end, words, mime_type, root)
        named = dict(zip(paths, columns.values(), strict=False))
        if len(named) < len(columns):
            raise InputError(f"{source}: a key contains a point, so that two columns have one name; rename it")
        return read_records(source, data, "json", named, mapping, layout, unit)


def first_object(text: str) -> Any:
    """Return the value on the first line, or None if the line is not JSON."""
    try:
        return json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return None


def decoded(source: Source, data: bytes) -> str:
    """Decode the content, which JSON demands to be UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{source} is JSON, but not in UTF-8; save it as UTF-8") from None


def parsed(source: Source, text: str, line: int = 0) -> Any:
    """Parse JSON; name the line of an error. `line` is the number of a line that is parsed alone."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        raise InputError(f"{source}, line {line or e.lineno}: this is not valid JSON ({e.msg}); correct it") from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, endless nesting
        raise InputError(f"{source}: its JSON is nested too deeply or holds too long a number; correct it") from None


def lines(source: Source, text: str) -> list[Any]:
    """Parse one value per line; empty lines at the end do not count."""
    return [parsed(source, line, number) for number, line in enumerate(text.rstrip().split("\n"), 1)]


def objects(values: Any, place: str) -> list[dict[str, Any]]:
    """Return values as objects; refuse others. `place` is filled in with the number of a row."""
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise InputError(f"{place.format(number)}: this is not an object {{...}} with named values; correct it")
    return list(values)


def flattened(records: list[dict[str, Any]], before: Names = ()) -> dict[Names, list[str | None]]:
    """Return the columns of objects as JSON texts. A key whose values are all objects leads to columns of its own."""
    found: dict[Names, list[str | None]] = {}
    for name in dict.fromkeys(key for record in records for key in record):
        values = [record.get(name) for record in records]
        present = [value for value in values if value is not None]
        if any(present) and all(isinstance(value, dict) for value in present):
            found |= flattened([value or {} for value in values], (*before, name))
        else:
            found[*before, name] = [None if value is None else json_text(value) for value in values]
    return found


def object_text(tree: Tree) -> str:
    """Write an object whose values are JSON texts or such objects."""
    inner = (f"{json_text(k)}: {object_text(v) if isinstance(v, dict) else v}" for k, v in tree.items())
    return f"{{{', '.join(inner)}}}"


JSON = JsonFormat()
