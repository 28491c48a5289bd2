"""Formats that store values rather than text: JSON lines, JSON arrays, GeoJSON. Workbooks have rows of the same kind.

A field is kept as its JSON text, so that a number stays a number and text stays text, and the same value is always
written the same way. Objects inside objects become columns such as user.id. GeoJSON holds points, in a collection or
one per line; their properties are columns.
"""

import datetime
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.errors import InputError
from ghostpoi.files import Repeated, without_repeats
from ghostpoi.formats.content import is_workbook
from ghostpoi.formats.rows import NUMBER, Kind, Rows, shortest
from ghostpoi.formats.source import Format, Source
from ghostpoi.plugins import installing

TIME = "@"  # before the text of a time, which JSON lacks
MARKED = rf'^["{TIME}]'
EXACT = 1 << 53  # whole numbers up to this one are exact in every JSON parser and in workbooks


@dataclass(frozen=True, kw_only=True)
class RecordRows(Rows):
    """Fields as JSON texts, null where a value is missing."""

    path: Path

    def get_column(self, name: str) -> pl.Series:
        """Return a column as text: that of strings without their quotes."""
        if not self.held[name].str.contains(MARKED).any():
            return self.held[name]
        return self._each(name, lambda text: json.loads(text) if text.startswith('"') else text.removeprefix(TIME))

    def _each(self, name: str, change: Callable[[str], str]) -> pl.Series:
        """Return a column with each of its texts changed."""
        distinct = self.held[name].unique().drop_nulls()
        return self.held[name].replace_strict(distinct, [*map(change, distinct)], return_dtype=pl.String)

    def raw(self, name: str) -> pl.Series:
        return self.held[name]

    def in_one_form(self, columns: Sequence[str]) -> Self:
        """Write texts that hold numbers as numbers, too."""

        def shortened(text: str) -> str:
            value = shortest(json.loads(text) if text.startswith('"') else text)
            return value if not text.startswith('"') or re.match(NUMBER, value) else json_text(value)

        return replace(self, held={**self.held, **{name: self._each(name, shortened) for name in columns}})

    def largest_number(self, column: str) -> int | None:
        values = self.held[column].drop_nulls()
        if values.str.contains(r"^-?\d+$").all():
            return EXACT
        if values.str.starts_with('"').all():
            return None
        raise InputError(
            f"{self.path}: the column {column!r} mixes text and numbers, so its values cannot become pseudonyms; "
            "store it as text"
        )

    def with_ids(self, column: str, ids: NDArray[np.object_]) -> Self:
        first = self.held[column].drop_nulls().str.slice(0, 1)
        written = json_text if (first == '"').any() else (TIME if (first == TIME).any() else "").__add__
        new = [written(value) for value in ids.tolist()]
        return replace(self, held={**self.held, column: pl.Series(column, new, dtype=pl.String)})


def json_text(value: Any) -> str:
    """Return the one text by which a value is kept and written."""
    return json.dumps(value, ensure_ascii=False)


def held_as(source: Source, columns: Mapping[str, list[str | None]]) -> dict[str, pl.Series]:
    """Return columns of JSON texts as they are held."""
    try:
        return {name: pl.Series(name, texts, dtype=pl.String) for name, texts in columns.items()}
    except UnicodeEncodeError:
        raise InputError(f"{source} contains half of a character (a lone surrogate); write it as UTF-8") from None


Names = tuple[str, ...]  # the keys that lead to a value
Tree = dict[str, Any]  # name -> subtree or JSON text


@dataclass(frozen=True, kw_only=True)
class JsonRows(RecordRows):
    """Objects or features with separators around them. Null and absent are the same: both are written as null."""

    names: Mapping[str, Names] = field(repr=False)  # that lead to each column
    # Of features: the members of the collection. All but its coordinate system are notes.
    members: dict[str, Any] | None = field(default=None, repr=False)
    start: str  # this and what follows is one of LINES, ARRAY, POINTS and COLLECTION
    between: str
    end: str
    kind: Kind
    unit: str
    root: str  # JSONPath of the rows

    def json_path(self, column: str) -> str:
        first, *names = self.names[column]
        if self.members is not None and first == "geometry":
            return f'{self.root}["geometry"]["coordinates"][{AXES.index(names[0])}]'
        return self.root + "".join(f"[{json_text(name)}]" for name in (first, *names))

    def without_metadata(self) -> Self:
        crs = {name: value for name, value in (self.members or {}).items() if name == "crs"}
        return self if self.members is None else replace(self, members=crs)

    def write(self, out: BinaryIO) -> None:
        names, members = [self.names[column] for column in self.columns], (self.members or {}).items()
        listed = "".join(f"{json_text(name)}: {json_text(value)}, " for name, value in members)
        out.write(self.start.replace("MEMBERS", listed).encode())
        for number, row in enumerate(pl.DataFrame(self.held).iter_rows()):
            tree: Tree = {}
            for path, text in zip(names, row, strict=True):
                inner = tree
                for name in path[:-1]:
                    inner = inner.setdefault(name, {})
                inner[path[-1]] = "null" if text is None else text
            written = object_text(tree if self.members is None else _feature(tree))
            out.write(((self.between if number else "") + written).encode())
        out.write(self.end.encode())


Form = dict[str, Any]  # how rows are separated, and what the format is called
JSON_LINES: Form = {"start": "", "between": "\n", "end": "\n", "root": "$"}
LINES: Form = {
    **JSON_LINES, "unit": "line",
    "kind": Kind("JSON", ".jsonl", "JSON lines: one object per line", "application/jsonlines"),
}  # fmt: skip
ARRAY: Form = {
    "start": "[\n", "between": ",\n", "end": "\n]\n", "root": "$[*]", "unit": "row",
    "kind": Kind("JSON", ".json", "a JSON array with one object per row", "application/json"),
}  # fmt: skip


def _is_json(head: bytes) -> bool:
    """Look for an object that ends with its line, or for an array of objects."""
    text = head.decode("utf-8-sig", "replace").lstrip()
    return text[1:].lstrip().startswith("{") if text.startswith("[") else bool(first_object(text))


def _decode_json(source: Source, data: bytes) -> JsonRows:
    text = decoded(source, data)
    form = ARRAY if text.lstrip().startswith("[") else LINES
    records = parsed(source, text) if form is ARRAY else lines(source, text)
    columns = flattened(objects(records, f"{source}, {form['unit']} {{}}"))
    paths = {".".join(names): names for names in columns}
    named = dict(zip(paths, columns.values(), strict=False))
    if len(named) < len(columns):
        raise InputError(f"{source}: a key contains a point, so that two columns have one name; rename it")
    return JsonRows(held=held_as(source, named), path=source.path, names=paths, **form)


def first_object(text: str) -> dict[str, Any]:
    """Return the object on the first line; an empty one if there is none."""
    try:
        found = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def decoded(source: Source, data: bytes) -> str:
    """Decode the content, which JSON demands to be UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{source} is JSON, but not in UTF-8; save it as UTF-8") from None


def parsed(source: Source, text: str, line: int = 0) -> Any:
    """Parse JSON; name the line of an error. `line` is the number of a line that is parsed alone."""
    try:
        return json.loads(text, object_pairs_hook=without_repeats)
    except Repeated as e:
        where = f"{source}, line {line}" if line else str(source)
        raise InputError(f"{where}: an object names {e} twice, so one value would be lost; correct it") from None
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


JSON = Format("JSON lines (one object per line), or a JSON array of objects", _is_json, _decode_json)


AXES = ("longitude", "latitude", "altitude")
NOWHERE = (None, None)
DEGREES = re.compile(r"CRS84|4326")  # names of coordinate systems in degrees of WGS 84
IS_COLLECTION = re.compile(
    r'^\{[^[]*"type"\s*:\s*"FeatureCollection"|"features"\s*:\s*\[\s*\{\s*"type"\s*:\s*"Feature"'
)


def _feature(tree: Tree) -> Tree:
    """Return what is written of a feature, whose coordinates have names."""
    at = [tree["geometry"][name] for name in AXES if name in tree["geometry"]]
    at = at[:2] if at[2:] == ["null"] else at  # other points have an altitude
    geometry = f'{{"type": "Point", "coordinates": [{", ".join(at)}]}}' if set(at) != {"null"} else "null"
    others = {name: value for name, value in tree.items() if name not in ("geometry", "properties")}
    return {"type": '"Feature"', **others, "geometry": geometry, "properties": tree.get("properties", {})}


POINTS: Form = {
    **JSON_LINES, "unit": "feature",
    "kind": Kind("JSON", ".geojson", "GeoJSON: one point per line", "application/jsonlines"),
}  # fmt: skip
COLLECTION: Form = {
    "start": '{"type": "FeatureCollection", MEMBERS"features": [\n', "between": ",\n", "end": "\n]}\n",
    "root": "$.features[*]", "unit": "feature",
    "kind": Kind("JSON", ".geojson", "GeoJSON: a collection of points", "application/json"),
}  # fmt: skip


def _is_geojson(head: bytes) -> bool:
    text = head.decode("utf-8-sig", "replace").lstrip()
    found = first_object(text).get("type") in ("Feature", "FeatureCollection")
    return text.startswith("{") and (found or IS_COLLECTION.search(text[:4096]) is not None)


def _decode_geojson(source: Source, data: bytes) -> JsonRows:
    text = decoded(source, data)
    members, form = dict[str, Any](), COLLECTION
    if first_object(text).get("type") == "Feature":
        values, form = lines(source, text), POINTS
    else:
        members = parsed(source, text)
        values = members.pop("features", None)
        members.pop("type", None)
    if not isinstance(values, list) or not values:
        raise InputError(f"{source} is GeoJSON without features; give a file with at least one check-in")
    named = str(members.get("crs"))
    if "crs" in members and not DEGREES.search(named):
        raise InputError(f"{source} has another coordinate system than WGS 84 ({named[:80]}); convert it to degrees")
    place = f"{source}, feature {{}}"
    records = [_record(feature, place.format(n)) for n, feature in enumerate(objects(values, place), 1)]
    columns, paths = {}, {}
    for names, texts in flattened(records).items():
        name = ".".join(names).removeprefix("properties.")
        name = name if names[0] in ("properties", "geometry") else f"feature.{name}"
        if name in columns:
            raise InputError(f"{source}: two columns would be named {name!r}; rename one of them")
        columns[name], paths[name] = texts, names
    return JsonRows(held=held_as(source, columns), path=source.path, names=paths, members=members, **form)


def _record(feature: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a feature with named coordinates, null where it has no geometry; refuse what is no point."""
    geometry, properties = feature.get("geometry"), feature.get("properties")
    if geometry is None:
        geometry = {"type": "Point", "coordinates": []}
    point = geometry.get("coordinates") if isinstance(geometry, dict) and geometry.get("type") == "Point" else None
    if not isinstance(point, list) or len(point) not in (0, 2, 3):
        kind = geometry.get("type") if isinstance(geometry, dict) else None
        what = "is a point without a longitude and a latitude" if kind == "Point" else f"is a {kind}, not a point"
        raise InputError(f"{place}: its geometry {what if kind else 'has no type'}; give points")
    if properties is not None and not isinstance(properties, dict):
        raise InputError(f"{place}: its properties are not an object; correct them")
    others = {name: value for name, value in feature.items() if name not in ("type", "geometry", "properties")}
    return {"geometry": dict(zip(AXES, point or NOWHERE, strict=False)), **others, "properties": properties or {}}


GEOJSON = Format(
    "GeoJSON: a FeatureCollection of points, or one such feature per line",
    _is_geojson,
    _decode_geojson,
    {"lon": "geometry.longitude", "lat": "geometry.latitude"},
)


PAST = (1980, 1, 1, 0, 0, 0)  # the date of every part of a written workbook, so that the same rows give the same bytes
STAMP = re.compile(rb"(<dcterms:(created|modified)[^>]*>)[^<]*")


class ExcelRows(RecordRows):
    """One sheet. Its first row names the columns."""

    first = 2
    kind = Kind(
        "an Excel workbook", ".xlsx", "an Excel workbook with one sheet, whose first row names the columns",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    )  # fmt: skip

    def write(self, out: BinaryIO) -> None:
        openpyxl = _openpyxl("the workbook")
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("checkins")
        sheet.append(self.columns)
        for row in pl.DataFrame(self.held).iter_rows():
            sheet.append([_cell(sheet, text) for text in row])
        whole = io.BytesIO()
        book.save(whole)
        with zipfile.ZipFile(whole) as parts, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in parts.namelist():
                content = parts.read(name)
                content = STAMP.sub(rb"\g<1>1980-01-01T00:00:00Z", content) if name.startswith("docProps/") else content
                archive.writestr(zipfile.ZipInfo(name, PAST), content, zipfile.ZIP_DEFLATED)


def _decode_workbook(source: Source, data: bytes) -> ExcelRows:
    openpyxl = _openpyxl(str(source))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            source.check_size(sum(part.file_size for part in parts.infolist()), len(data))
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheets = {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets}
    except InputError:
        raise
    except Exception as e:  # openpyxl raises errors of many kinds on damaged files
        why = (str(e).splitlines() or ["it cannot be read"])[0]
        raise InputError(f"{source} is a damaged workbook ({why}); save it again") from None
    filled = {title: rows for title, rows in sheets.items() if any(v is not None for row in rows for v in row)}
    if len(filled) != 1:
        named = f" ({', '.join(map(repr, filled))})" if filled else ""
        raise InputError(
            f"{source} has {len(filled) or 'no'} sheets with data{named}; leave only the sheet of check-ins in it"
        )
    rows = next(iter(filled.values()))
    while all(value is None for value in rows[-1]):
        rows.pop()
    head = [str(name).strip() if name is not None else "" for name in rows[0]]
    width = max((at for row in rows for at, value in enumerate(row, 1) if value is not None), default=0)
    if not all(head[:width]) or len(head) < width:
        raise InputError(f"{source}, row 1: a column has no name; name all columns in the first row")
    full = [[*row, *[None] * (width - len(row))] for row in rows[1:]]
    columns = {
        name: [None if row[at] is None else _text(row[at]) for row in full]
        for at, name in enumerate(head[:width])
    }  # fmt: skip
    if len(columns) < width:
        raise InputError(f"{source}, row 1: two columns have the same name; rename one of them")
    return ExcelRows(held=held_as(source, columns), path=source.path)


def _openpyxl(what: str) -> Any:
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"{what} is an Excel workbook, which needs openpyxl; install it with {installing('excel')}, "
            "or export the sheet with the check-ins as CSV"
        ) from None
    return openpyxl


def _text(value: Any) -> str:
    """Return the text of a value as a workbook can hold it: numbers of 16 digits, whole ones without a point."""
    match value:
        case datetime.datetime() | datetime.time():
            return TIME + str(value)
        case datetime.date():
            return f"{TIME}{value} 00:00:00"
        case datetime.timedelta():
            value = str(value)
        case float():
            value = float(f"{value:.16g}")
            value = int(value) if value.is_integer() else value
    return json_text(value)


def _cell(sheet: Any, text: str | None) -> Any:
    """Return what to write; text that looks like a formula needs to be marked as text."""
    if text is None:
        return None
    if text.startswith(TIME):
        return (datetime.datetime if "-" in text else datetime.time).fromisoformat(text[1:])
    value = json.loads(text)
    if not (isinstance(value, str) and value.startswith("=")):
        return value
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value)
    cell.data_type = "s"
    return cell


EXCEL = Format(
    "Excel workbook (.xlsx) with one sheet, whose first row names the columns; needs ghostpoi[excel]",
    is_workbook,
    _decode_workbook,
)
