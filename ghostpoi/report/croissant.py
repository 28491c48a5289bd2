"""Croissant metadata: what a release holds, for machines that look for data.

Plain JSON by hand, of version 1.0, which every reader of Croissant knows. Everything in it comes from the manifest and
from the released file, so the same release always gives the same bytes.
"""

import csv
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from ghostpoi.data import formats
from ghostpoi.data.formats.rows import ParquetRows, Rows, TextRows
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.publish.manifest import MANIFEST, hash_complaint, read_manifest

CROISSANT = "croissant.json"
FILE, RECORDS = "data-file", "checkins"  # ids inside the metadata
PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+")

LICENSE = "unknown"  # the publisher's to decide; the hub knows this word, and it claims nothing
KEYWORDS = ("check-ins", "trajectories", "points of interest", "next-POI", "privacy", "unlearnable examples")
CITATION = (
    "@misc{ghost, title={GHOST: Plausible Yet Unlearnable Trajectories via On-Manifold Substitution for Next-POI "
    "Privacy}, author={Yu, Zhenyu and Idris, Mohd Yamani Idna and Guan, Jihong and Zhou, Shuigeng}}"
)
LIMITS = (
    "The rule is public: whoever reads the code of ghostpoi knows which venues may stand for which. An adversary who "
    "pools one user's visits can undo much of what independent draws hide.",
    "Leaked pairs of clean and released visits help every adversary, and leaked sessions themselves teach a model.",
    "Times, users and categories are untouched, and as identifying as they were. This is no anonymisation.",
    "Rows that were kept are genuine, and which rows those are follows from the rule.",
    "A second release of the same rows can give an adversary more evidence, never less.",
)
ROLES = {
    "user": "Who checked in, as an id",
    "poi": "The venue, as an id",
    "category": "The venue's category, by which substitutes are chosen",
    "lat": "The venue's latitude in degrees",
    "lon": "The venue's longitude in degrees",
    "time": "When the check-in was made",
}
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}  # the standard one, without which readers complain


@dataclass(frozen=True)
class Column:
    """One column of the released file."""

    name: str
    title: str  # the name as it stands in the file, spaces around it included
    kind: str  # of Croissant's data types
    description: str


@dataclass(frozen=True)
class Described:
    """What the pages beside the data say of it."""

    manifest: dict[str, Any]
    data: Path
    rows: int
    columns: tuple[Column, ...]
    delimiter: str | None  # None: Parquet
    encoding: str
    has_header: bool

    @property
    def layout(self) -> str:
        """The file's form in words."""
        if self.delimiter is None:
            return "Apache Parquet"
        coding = "UTF-8" if self.encoding == "utf-8" else "Latin-1"
        header = "a header line" if self.has_header else "no header line and no quotes"
        return f"text in {coding}, columns separated by {SEPARATORS[self.delimiter]}, {header}"

    @property
    def encoding_format(self) -> str:
        """The file's form as a MIME type."""
        if self.delimiter is None:
            return "application/x-parquet"
        if not self.has_header:
            return "text/plain"
        return "text/tab-separated-values" if self.delimiter == "\t" else "text/csv"


def write_croissant(release: Path) -> Path:
    """Write RELEASE/croissant.json."""
    with from_manifest(release):
        text = json.dumps(_metadata(describe(release)), indent=2, ensure_ascii=False) + "\n"
    return write_page(release / CROISSANT, text)


@contextmanager
def from_manifest(release: Path) -> Iterator[None]:
    """What is made here needs parts of the manifest that verify does not look at."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise InputError(
            f"{release / MANIFEST} lacks what a page needs ({type(e).__name__}: {e}); make the release again with "
            "protect"
        ) from e


def write_page(path: Path, text: str) -> Path:
    """A page of a release, under its name only when complete."""
    try:
        with replacing(path) as out:
            out.write(text.encode("utf-8", "replace"))
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise InputError(f"{path} cannot be written ({reason}); make room or change the folder's permissions") from None
    return path


def describe(release: Path) -> Described:
    """Open a complete release whose data are those of its manifest."""
    manifest = read_manifest(release)
    if complaint := hash_complaint(release, manifest):
        raise InputError(f"{release} is damaged ({complaint}); make the release again with protect")
    columns = manifest["columns"]
    table, source = formats.read(release / manifest["data"]["file"], columns["fields"], manifest["data"]["format"])
    rows = formats.read_rows(source)
    role = {column: field for field, column in source.mapping.items()}
    moving = columns["changed_with_the_venue"]
    titles = _titles(rows)
    described = tuple(
        Column(name, titles[at], _kind(rows, at, role.get(name)), _description(role.get(name), name in moving))
        for at, name in enumerate(rows.columns)
    )
    dialect = rows.dialect if isinstance(rows, TextRows) else None
    return Described(
        manifest, source.path, len(table), described, dialect.delimiter if dialect else None,
        dialect.encoding if dialect else "", source.format != "tsmc2014",
    )  # fmt: skip


def _metadata(found: Described) -> dict[str, Any]:
    digest = found.manifest["data"]["sha256"]
    tool = f"{found.manifest['tool']['name']} {found.manifest['tool']['version']}"
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": f"protected-checkins-{digest[:12]}",
        "description": (
            f"{found.rows:,} check-ins, protected with {tool}, method {found.manifest['method']}: venues are replaced "
            "by others of their category nearby, so that next-POI models learn less from them. Rows, users, times and "
            "categories are genuine. card.md and manifest.json beside this file say how, and what was measured."
        ),
        "license": LICENSE,
        "version": f"1.0.0+{digest[:12]}",
        "citeAs": CITATION,
        "keywords": list(KEYWORDS),
        "rai:dataLimitations": list(LIMITS),
        "rai:personalSensitiveInformation": ["Visits of persons: pseudonymous users, times and kinds of places."],
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": FILE,
                "name": found.data.name,
                "description": f"The released check-ins: {found.layout}.",
                "contentUrl": found.data.name,
                "contentSize": f"{found.data.stat().st_size} B",
                "encodingFormat": found.encoding_format,
                "sha256": digest,
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": RECORDS,
                "name": RECORDS,
                "description": "One record per check-in, in the order of the publisher's file.",
                "field": [_field(found, at) for at in range(len(found.columns))],
            }
        ],
    }


def _field(found: Described, at: int) -> dict[str, Any]:
    column = found.columns[at]
    name = column.name if PLAIN_ID.fullmatch(column.name) else f"column.{at + 1}"  # the dot: no plain name has one
    field = {
        "@type": "cr:Field",
        "@id": f"{RECORDS}/{name}",
        "name": column.name or name,
        "description": column.description,
        "dataType": column.kind,
    }
    if not found.has_header:
        # Croissant cannot say that a table has no header, but it can cut lines.
        extract: dict[str, Any] = {"extract": {"fileProperty": "lines"}}
        extract["transform"] = {"regex": rf"(?:[^\t]*\t){{{at}}}([^\t\r]*)"}
    elif column.title:
        extract = {"extract": {"column": column.title}}
    else:
        return field  # a column without a name cannot be asked for
    return field | {"source": {"fileObject": {"@id": FILE}} | extract}


def _titles(rows: Rows) -> list[str]:
    if not isinstance(rows, TextRows) or not (header := rows.dialect.start.lstrip(b"\xef\xbb\xbf\r\n")):
        return rows.columns
    line = header.decode(rows.dialect.encoding).rstrip("\r\n")
    return next(csv.reader([line], delimiter=rows.dialect.delimiter))


def _description(role: str | None, moves: bool) -> str:
    if role == "category":
        return f"{ROLES[role]}; a substitute has the same."
    how = "changes together with the venue" if moves else "as in the publisher's file"
    return f"{ROLES.get(role or '', 'A further column')}; {how}."


NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
KINDS = (  # of text columns, the first that every value has
    ("sc:Boolean", "(?i:true|false)"),
    ("sc:Integer", r"-?(?:0|[1-9]\d{0,17})"),  # no zeros in front: such are labels
    ("sc:Float", NUMBER),
)


def _kind(rows: Rows, at: int, role: str | None) -> str:
    """The data type of a column."""
    if isinstance(rows, ParquetRows):
        return _arrow_kind(rows.table.schema.field(at).type)
    values = rows.column(rows.columns[at]).unique().drop_nulls().str.strip_chars(' \t\r\x1d"')
    values = values.filter(values != "")
    for kind, pattern in KINDS if role != "lat" and role != "lon" else KINDS[2:]:
        if values.len() and values.str.contains(f"^(?:{pattern})$").all():
            return "sc:Text" if kind == "sc:Float" and _has_labels(values) else kind
    return "sc:DateTime" if role == "time" else "sc:Text"


def _has_labels(values: pl.Series) -> bool:
    """Whether there are whole numbers with zeros in front."""
    return bool(values.str.contains(r"^-?0\d+$").any())


def _arrow_kind(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _arrow_kind(kind.value_type)
    for known, name in (
        (pa.types.is_boolean, "sc:Boolean"),
        (pa.types.is_integer, "sc:Integer"),
        (pa.types.is_floating, "sc:Float"),
        (pa.types.is_decimal, "sc:Float"),
        (pa.types.is_timestamp, "sc:DateTime"),
        (pa.types.is_date, "sc:Date"),
        (pa.types.is_time, "sc:Time"),
    ):
        if known(kind):
            return name
    return "sc:Text"
