"""What the bytes of a file are: decompression without ever holding more than the limit allows, and kinds of files."""

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import IO, BinaryIO, TextIO

import zstandard

from ghostpoi.errors import InputError
from ghostpoi.files import COMPRESSED
from ghostpoi.formats.rows import Kind
from ghostpoi.formats.source import URL, SizeLimit, Source

CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a\x1b\x1c\x1d\x1e\x1f"))  # not used in text files
STDIN = Path("-")
UNPACK = "unpack it and give the file of check-ins inside it"
PIECE = 1 << 24  # bytes read or decompressed at once
ZSTD_INPUT = 1 << 11  # bytes of a frame; each block of 4 bytes can expand to 128 KiB, so this many give at most 64 MiB
XZ_MEMORY = 1 << 29  # bytes; xz -9 needs 65 MiB


def load(source: Source) -> bytes:
    """Read a whole file, decompressed if its first bytes identify a compression format.

    The file is opened once, so that it may be a pipe.
    """
    if source.content is not None:
        return source.content
    with readable(source.path):
        if source.path == STDIN and sys.stdin is not None:
            data = _stdin(sys.stdin, source.limit)
        else:
            with source.path.open("rb") as file:
                data = _read(source, file)
    data = b"".join(_expanded(source, data))
    if not data[:4096].strip() and not data.strip():
        raise InputError(f"{source} is empty; give a file with at least one check-in")
    return data


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    try:
        yield
    except OSError as e:
        other = f"cannot be read: {e.strerror or e}; check the disk and the path"
        raise InputError(f"{path} {UNREADABLE.get(type(e), other)}") from None


UNREADABLE = {
    IsADirectoryError: "is a directory; give the file of check-ins inside it",
    FileNotFoundError: "does not exist; check the path",
    PermissionError: "cannot be read by this user; change its permissions or run as its owner",
}


def expanded_size(source: Source) -> int:
    """Return the bytes of a file, decompressed."""
    with readable(source.path), source.path.open("rb") as file:
        if not compression(file.read(len(XZ))):
            return os.fstat(file.fileno()).st_size
        file.seek(0)
        return sum(map(len, _expanded(source, _read(source, file))))


@cache
def _stdin(stream: TextIO, limit: SizeLimit | None) -> bytes:
    """Read standard input once, however often it is asked for."""
    return _read(Source(STDIN, limit=limit), stream.buffer)


def _read(source: Source, file: BinaryIO) -> bytes:
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode):
        source.check_size(status.st_size)
    out = io.BytesIO()
    for piece in _pieces(file):
        out.write(piece)
        source.check_size(out.tell())
    return out.getvalue()


def _expanded(source: Source, data: bytes) -> Iterator[bytes]:
    """Yield data or, if they are compressed, what they hold, as long as that keeps to the limit and is not damaged."""
    pieces = next((pieces for magic, (_, pieces) in PIECES.items() if data.startswith(magic)), None)
    if pieces is None or is_workbook(data):
        yield data
        return
    size = 0
    try:
        for piece in pieces(data):
            size += len(piece)
            source.check_size(size, len(data))
            yield piece
    except Unreadable as e:
        raise InputError(f"{source} is {e}") from None
    except DAMAGED as e:
        raise InputError(f"{source} is a damaged compressed file ({e}); download or compress it again") from None


class Unreadable(Exception):
    """What an archive is, and what to do: it does not hold one plain file."""


def _pieces(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    """Yield the content of a file in pieces."""
    return iter(partial(file.read, PIECE), b"")


def _streams(
    data: bytes, start: Callable[[], lzma.LZMADecompressor | bz2.BZ2Decompressor], padding: bytes = b""
) -> Iterator[bytes]:
    """Decompress all streams, one after the other, each in pieces. There may be padding between them."""
    while data:
        stream = start()
        piece = stream.decompress(data, PIECE)
        while not stream.eof:
            if stream.needs_input:
                raise EOFError("it is truncated")
            yield piece
            piece = stream.decompress(b"", PIECE)
        yield piece
        data = stream.unused_data.lstrip(padding) if padding else stream.unused_data


def _zstd(data: bytes) -> Iterator[bytes]:
    """Decompress all frames, one by one: the library does not notice a truncated file that has several."""
    at = 0
    while at < len(data):
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if at >= len(data):
                raise EOFError("it is truncated")
            yield frame.decompress(data[at : at + ZSTD_INPUT])
            at += ZSTD_INPUT
        at = min(at, len(data)) - len(frame.unused_data)


def _zip(data: bytes) -> Iterator[bytes]:
    """Decompress an archive of one file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
        if len(names) != 1:
            raise Unreadable(f"a zip archive of {len(names)} files; {UNPACK}")
        if archive.getinfo(names[0]).flag_bits & 1:
            raise Unreadable("an encrypted zip archive; decrypt it and give the file inside it")
        with archive.open(names[0]) as file:
            yield from _pieces(file)


def compression(head: bytes) -> str:
    """Return the suffix for the compression of a file that begins so, "" for none; a spreadsheet is a zip archive."""
    return next((suffix for magic, (suffix, _) in PIECES.items() if head.startswith(magic)), "")


def is_workbook(data: bytes) -> bool:
    """Return whether a zip archive is a spreadsheet."""
    return data.startswith(ZIP) and (b"[Content_Types].xml" in data[:65_536] or b"xl/" in data[:65_536])


ZIP, XZ = b"PK\x03\x04", b"\xfd7zXZ\x00"
_xz = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
PIECES: dict[bytes, tuple[str, Callable[[bytes], Iterator[bytes]]]] = {  # by the first bytes of a file
    b"\x1f\x8b": (".gz", lambda data: _pieces(gzip.GzipFile(fileobj=io.BytesIO(data)))),
    XZ: (".xz", partial(_streams, start=_xz, padding=b"\x00")),
    b"\x28\xb5\x2f\xfd": (".zst", _zstd),
    b"BZh": (".bz2", partial(_streams, start=bz2.BZ2Decompressor)),
    ZIP: (".zip", _zip),
}
DAMAGED = (
    OSError, EOFError, RuntimeError, NotImplementedError, lzma.LZMAError, zlib.error, zstandard.ZstdError,
    zipfile.BadZipFile,
)  # fmt: skip


def is_binary(head: bytes) -> bool:
    """Return whether bytes are not text: they have a zero byte, or more than 1% control characters."""
    return b"\x00" in head or len(head.translate(None, CONTROL)) < 0.99 * len(head)


PARQUET = b"PAR1"  # the first bytes of such a file
SUFFIXES = {  # what a name promises
    "text": (".csv", ".tsv", ".txt", ".tab", ".dyna", ".inter"),
    "JSON": (".json", ".jsonl", ".ndjson", ".geojson", ".geojsonl"),
    "Parquet": (".parquet", ".pq"),
    "an Excel workbook": (".xlsx", ".xls"),
    "a GeoPackage": (".gpkg",),
}


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


NO_TABLE = {  # by the first bytes of a file: what it is, what to do
    codecs.BOM_UTF16_LE: "UTF-16 text; save it as UTF-8",
    codecs.BOM_UTF16_BE: "UTF-16 text; save it as UTF-8",
    b"PK\x03\x04": f"a zip archive; {UNPACK}",
    b"7z\xbc\xaf\x27\x1c": f"a 7z archive; {UNPACK}",
    b"Rar!": f"a RAR archive; {UNPACK}",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Excel or Word file; export the sheet as CSV",
    b"SQLite format 3\x00": "an SQLite database; give the path of the database itself",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file; store its table as Parquet or CSV",
    b"ARROW1": "an Arrow or Feather file; store it as Parquet",
    b"%PDF": "a PDF document; give the data file that it describes",
    b"\x93NUMPY": "a NumPy array; store it as CSV or Parquet with named columns",
}
HTML = re.compile(rb"<(!doctype html|html|head|body)[\s>]", re.IGNORECASE)
JSON_TEXT = re.compile(rb'\{\s*("[^"\n]*"\s*:|\}\s*$)|\[\s*([\[{]|\]\s*$)')


def other_kind(head: bytes) -> str | None:
    """Say what a file is that is no table, or None; `head` holds its first bytes."""
    if head[257:262] == b"ustar":
        return f"is a tar archive; {UNPACK}"
    if found := next((found for start, found in NO_TABLE.items() if head.startswith(start)), None):
        return f"is {found}"
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if HTML.match(text):
        return "is a web page (HTML), not a table; download the data file itself"
    if text.startswith(b"<?xml"):
        return "is XML, not a table; convert it to CSV"
    if JSON_TEXT.match(text):
        return "is JSON without rows of check-ins; give one object per line, an array of objects or GeoJSON points"
    return None


HEAD = 72  # bytes that tell databases apart
SQLITE, DUCKDB = b"SQLite format 3\x00", b"DUCK"  # the first bytes of such a file; those of DuckDB's from the ninth on


def database_of(place: str) -> str:
    """Return the kind of the database at a place, a key of ENGINES; "" if it is none."""
    if URL.match(place):
        return "postgresql"
    if not os.path.isfile(place):  # to look into a pipe would take what it gives
        return ""
    with suppress(OSError), open(place, "rb") as file:
        head = file.read(HEAD)
        if head.startswith(SQLITE):
            return "" if is_geopackage(head) else "sqlite"
        return "duckdb" if head[8:].startswith(DUCKDB) else ""
    return ""


def is_geopackage(head: bytes) -> bool:
    """Return whether an SQLite database is a GeoPackage, by its first bytes."""
    return head.startswith(SQLITE) and head[68:72] in (b"GPKG", b"GP10", b"GP11")
