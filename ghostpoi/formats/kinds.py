"""What a file holds, whatever its name says."""

from dataclasses import dataclass

from ghostpoi.files import COMPRESSED
from ghostpoi.formats.compression import STDIN, compression
from ghostpoi.formats.source import Source

PARQUET = b"PAR1"  # the first bytes of such a file
SUFFIXES = {  # what a name promises
    "text": (".csv", ".tsv", ".txt", ".tab", ".dyna", ".inter"),
    "JSON": (".json", ".jsonl", ".ndjson", ".geojson", ".geojsonl"),
    "Parquet": (".parquet", ".pq"),
    "an Excel workbook": (".xlsx", ".xls"),
}


@dataclass(frozen=True)
class Kind:
    """The kind of a file: a key of SUFFIXES, and the suffix that fits best."""

    words: str
    suffix: str


def kind_of(format: str, data: bytes) -> Kind:
    """Return the kind of a file by its format and its first bytes."""
    if format == "excel":
        return Kind("an Excel workbook", ".xlsx")
    if data.startswith(PARQUET):
        return Kind("Parquet", ".parquet")
    start = data[:1000].lstrip(b"\xef\xbb\xbf \t\r\n")
    if format == "geojson":
        return Kind("JSON", ".geojson")
    if format == "json":
        return Kind("JSON", ".json" if start.startswith(b"[") else ".jsonl")
    line = start.split(b"\n", 1)[0]
    tabs = line.count(b"\t") > max(line.count(sign) for sign in (b",", b";", b"|"))
    return Kind("text", ".txt" if format != "table" else ".tsv" if tabs else ".csv")


def ending(source: Source, kind: Kind) -> str:
    """Return the extension for a release of a file: its own, or that of its kind where the name could have none."""
    path = source.path
    nameless = not source.in_memory and (path == STDIN or path.suffix.lower() in COMPRESSED)
    return source.extension or (kind.suffix if nameless else "")


def misnamed(source: Source, kind: Kind) -> str:
    """Say in which way a file, of this kind, is not what its name says; "" if it is."""
    path = source.path
    if source.in_memory or not path.is_file():
        return ""
    with path.open("rb") as file:
        found = compression(file.read(16))
    packed = path.suffix.lower() if path.suffix.lower() in COMPRESSED else ""
    if kind.words == "an Excel workbook":
        found = ""  # it is a zip archive
    remarks = []
    if found != packed:
        says = f", not {packed}" if packed else ", which its name does not say"
        remarks.append(f"is compressed as {found}{says}" if found else "is not compressed, although its name says so")
    promised = next((words for words, suffixes in SUFFIXES.items() if source.extension.lower() in suffixes), kind.words)
    if promised != kind.words:
        remarks.append(f"holds {kind.words}, not {promised} as its name says, and so will the release")
    return f"{path.name} {' and '.join(remarks)}" if remarks else ""
