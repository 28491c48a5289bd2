"""What readers and machines learn about a release: its dataset card, and Croissant metadata for data loaders."""

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from ghostpoi.formats import Rows
from ghostpoi.formats.rows import Dialect
from ghostpoi.reports.release_view import NOTHING_SAID, About, ReleaseView
from ghostpoi.reports.texts import TEXTS, template

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
TEXT_TYPES = (  # the first one that every value of a column matches
    ("sc:Boolean", "(?i:true|false)"),
    ("sc:Integer", r"-?(?:0|[1-9]\d{0,17})"),  # values with leading zeros are labels
    ("sc:Float", r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"),
)
ARROW_TYPES = (  # by functions of pyarrow.types
    ("is_boolean", "sc:Boolean"), ("is_integer", "sc:Integer"), ("is_floating", "sc:Float"),
    ("is_decimal", "sc:Float"), ("is_timestamp", "sc:DateTime"), ("is_date", "sc:Date"), ("is_time", "sc:Time"),
)  # fmt: skip


class Column(NamedTuple):
    """One column of the released file."""

    name: str
    title: str  # the name as it stands in the file, surrounding spaces included
    type: str  # one of Croissant's data types
    description: str


@dataclass(frozen=True, kw_only=True)
class DataFile:
    path: Path
    rows: int
    columns: tuple[Column, ...]
    dialect: Dialect | None  # of delimited text
    records: Rows | None  # of a format that stores values; None: delimited text or Parquet
    parts: int  # in a folder; 0: it is one file

    @property
    def has_header(self) -> bool:
        """Whether columns have names in the file."""
        return self.dialect is None or self.dialect.has_header

    @property
    def layout(self) -> str:
        return f"a folder of {self.parts:,} parts, {self.kind}" if self.parts else self.kind

    @property
    def kind(self) -> str:
        """The format of the file, or of every part, as a phrase."""
        if self.records is not None:
            return self.records.kind.layout
        if self.dialect is None:
            return "Apache Parquet"
        encoding = "UTF-8" if self.dialect.encoding == "utf-8" else "Latin-1"
        header = "a header line" if self.has_header else "no header line and no quotes"
        return f"{encoding} text, columns separated by {SEPARATORS[self.dialect.delimiter]}, {header}"

    @property
    def mime_type(self) -> str:
        if self.records is not None:
            return self.records.kind.mime_type
        if self.dialect is None:
            return "application/x-parquet"
        if not self.has_header:
            return "text/plain"
        return "text/tab-separated-values" if self.dialect.delimiter == "\t" else "text/csv"


def describe(release: ReleaseView) -> DataFile:
    """Describe the data file of a release."""
    source, rows = release.file, release.file.rows.whole
    role = {column: field for field, column in source.mapping.items()}
    changed, same = release.manifest["columns"]["changed_with_the_venue"], release.same_category
    named = [(name, title, role.get(name)) for name, title in zip(rows.columns, _titles(rows), strict=True)]
    columns = tuple(
        Column(name, title, _type(rows, name, field), _description(field, name in changed, release, same))
        for name, title, field in named
    )
    return DataFile(
        path=source.path, rows=len(release.table) + len(source.kept), columns=columns, dialect=rows.dialect,
        records=rows if rows.kind.layout else None, parts=len(source.rows.parts),
    )  # fmt: skip


def _titles(rows: Rows) -> list[str]:
    """Return the names of columns in the file; "" of one whose values Croissant cannot hold, such as geometry."""
    if rows.schema is not None:
        from pyarrow import types  # slow to import

        plain = (not (types.is_nested(field.type) or types.is_binary(field.type)) for field in rows.schema)
        return [name if fits else "" for name, fits in zip(rows.columns, plain, strict=True)]
    if not rows.dialect or not (header := rows.dialect.start.lstrip(b"\xef\xbb\xbf\r\n")):
        return rows.columns
    line = header.decode(rows.dialect.encoding).rstrip("\r\n")
    return next(csv.reader([line], delimiter=rows.dialect.delimiter))


def _description(role: str | None, changes: bool, release: ReleaseView, same_category: bool) -> str:
    how = "changes with the venue" if changes else "as in the publisher's file"
    if role == "user" and release.pseudonyms:
        how = release.pseudonyms["column"]
    if role == "time" and not release.keeps_times:
        how = release.times.rstrip(".").replace("Times are ", "")
    text = TEXTS["roles"].get(role, "Additional column")
    return f"{text}; {'the same for every substitute' if role == 'category' and same_category else how}."


def _type(rows: Rows, name: str, role: str | None) -> str:
    if rows.schema is not None:
        from pyarrow import types  # slow to import

        kind = rows.schema.field(rows.columns.index(name)).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return next((name for is_type, name in ARROW_TYPES if getattr(types, is_type)(kind)), "sc:Text")
    if not rows.dialect:
        return "sc:Text"
    values = rows.get_column(name).unique().drop_nulls().str.strip_chars(' \t\r"')
    values = values.filter(values != "")
    for kind, pattern in TEXT_TYPES if role not in ("lat", "lon") else TEXT_TYPES[2:]:
        if values.len() and values.str.contains(f"^(?:{pattern})$").all():
            is_label = kind == "sc:Float" and values.str.contains(r"^-?0\d+$").any()
            return "sc:Text" if is_label else kind
    return "sc:DateTime" if role == "time" else "sc:Text"


PLAIN = re.compile(r"\w(?:[\w .,/()+-]*[\w)])?")
SPECIAL = re.compile(r"[\\`*_{}\[\]<>|&#~$^!@]")


def card(release: ReleaseView, about: About = NOTHING_SAID) -> str:
    """Return the card of a release as Markdown."""
    file, audit = describe(release), release.audit
    config = {"data_files": f"{file.path.name}/**" if file.parts else file.path.name}  # how the hub loads the file
    if (dialect := file.dialect) and file.path.suffix.lower() in (".csv", ".tsv"):  # the hub reads these as tables
        config |= {"sep": dialect.delimiter} if dialect.delimiter != "," else {}
        config |= {"encoding": dialect.encoding} if dialect.encoding != "utf-8" else {}
    escaping = {"named": named, "quoted": quoted}
    # `finalize` escapes for Markdown; autoescape would escape for HTML.
    made = template("card.md", escaping, autoescape=False, finalize=prose, keep_trailing_newline=True)
    return made.render(
        texts=TEXTS, about=about, m=release.manifest, file=file, release=release, audit=audit, config=config,
        utility=[u for u in release.utility_measures if audit and u.key in audit.utility.get(u.group, {})],
        size=next(name for name, limit in TEXTS["sizes"].items() if file.rows < limit),
    )  # fmt: skip


def named(value: object) -> Markup:
    """A name from the data: as code where that is safe, else with every sign spelled as an entity."""
    text = _printable(value)
    if PLAIN.fullmatch(text):
        return Markup(f"`{text}`")
    spelled = "".join(c if c.isalnum() or c == " " or not c.isascii() else f"&#{ord(c)};" for c in text)
    return Markup(spelled or "(no name)")


def prose(value: object) -> Markup:
    """Text with the signs that mean something to Markdown spelled as entities."""
    if isinstance(value, Markup):
        return value
    return Markup(SPECIAL.sub(lambda sign: f"&#{ord(sign.group())};", _printable(value)))


def quoted(value: object) -> Markup:
    """A YAML string: JSON's, with nothing in it that ends a line or turns the writing direction."""
    text = json.dumps(str(value), ensure_ascii=False)
    return Markup("".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text))


def _printable(value: object) -> str:
    return "".join(c if c.isprintable() else " " for c in str(value)).strip()


PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+")


def croissant(release: ReleaseView, about: About = NOTHING_SAID) -> str:
    """Return the metadata of a release as JSON."""
    file = describe(release)
    fields = [_field(file, at) for at in range(len(file.columns))]
    made = template("croissant.json", finalize=json.dumps)  # every value that it prints is written as JSON
    text = made.render(texts=TEXTS, about=about, m=release.manifest, file=file, fields=fields, release=release)
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def _field(file: DataFile, at: int) -> dict[str, Any]:
    column = file.columns[at]
    # The dot keeps a made-up id apart from every plain name.
    name = column.name if PLAIN_ID.fullmatch(column.name) else f"column.{at + 1}"
    field = {
        "@type": "cr:Field", "@id": f"checkins/{name}", "name": column.name or name,
        "description": column.description, "dataType": column.type,
    }  # fmt: skip
    if file.records is not None:
        path = file.records.json_path(column.name)
        by_line = file.mime_type == "application/jsonlines"
        if not path or (by_line and path != f"$[{json.dumps(column.name, ensure_ascii=False)}]"):
            return field  # Croissant cannot refer to cells of workbooks, nor to what is inside a value of a line
        extract: dict[str, Any] = {"extract": {"column": column.name} if by_line else {"jsonPath": path}}
    elif not file.has_header:
        # Croissant cannot declare a table without a header, but it can cut lines.
        extract = {"extract": {"fileProperty": "lines"}}
        extract["transform"] = {"regex": rf"(?:[^\t]*\t){{{at}}}([^\t\r]*)"}
    elif column.title:
        extract = {"extract": {"column": column.title}}
    else:
        return field  # no source can refer to a column without a name
    return field | {"source": {"fileSet" if file.parts else "fileObject": {"@id": "data-file"}} | extract}
