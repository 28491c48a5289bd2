"""Files that are not tables of check-ins: say what a file is and what to do about it."""

import codecs
import re

PACKED = {  # first bytes of files that hold other files
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!": "a RAR archive",
}
BINARY = {  # first bytes of other binary files: what it is, what to do
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an old Excel or Word file", "export the sheet as CSV"),
    b"SQLite format 3\x00": ("an SQLite database", "export the table of check-ins as CSV"),
    b"\x89HDF\r\n\x1a\n": ("an HDF5 file", "store its table as Parquet or CSV"),
    b"ARROW1": ("an Arrow or Feather file", "store it as Parquet"),
    b"%PDF": ("a PDF document", "give the data file that it describes"),
    b"\x93NUMPY": ("a NumPy array", "store it as CSV or Parquet with named columns"),
}
HTML = re.compile(rb"<(!doctype html|html|head|body)[\s>]", re.IGNORECASE)
JSON = re.compile(rb'\{\s*("[^"\n]*"\s*:|\}\s*$)|\[\s*([\[{]|\]\s*$)')


def other_kind(head: bytes) -> str | None:
    """Say what a file is that is no table, or None; `head` holds its first bytes."""
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "is UTF-16 text; save it as UTF-8"
    if head.startswith(b"PK\x03\x04"):
        return "is a zip archive; unpack it and give the file of check-ins inside it"
    if head[257:262] == b"ustar":
        return "is a tar archive; unpack it and give the file of check-ins inside it"
    for start, name in PACKED.items():
        if head.startswith(start):
            return f"is {name}; unpack it and give the file of check-ins inside it"
    for start, (name, remedy) in BINARY.items():
        if head.startswith(start):
            return f"is {name}; {remedy}"
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if HTML.match(text):
        return "is a web page (HTML), not a table; download the data file itself"
    if text.startswith(b"<?xml"):
        return "is XML, not a table; convert it to CSV"
    if JSON.match(text):
        return "is JSON without rows of check-ins; give one object per line, an array of objects or GeoJSON points"
    return None
