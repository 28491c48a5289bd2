"""Read files and decompress them by content."""

import codecs
import gzip
import lzma
import zlib
from pathlib import Path

import zstandard

from ghostpoi.errors import InputError

COMPRESSED = (".gz", ".xz", ".zst")
CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a\x1b\x1c\x1d\x1e\x1f"))  # not used in text files


def load(path: Path) -> bytes:
    """Read a whole file, decompressed if its first bytes identify a compression format."""
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise InputError(f"{path} is a directory; give the file of check-ins inside it") from None
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path") from None
    except PermissionError:
        raise InputError(f"{path} cannot be read by this user; change its permissions or run as its owner") from None
    except OSError as e:
        raise InputError(f"{path} cannot be read: {e.strerror or e}; check the disk and the path") from None
    try:
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        elif data[:6] == b"\xfd7zXZ\x00":
            data = lzma.decompress(data)
        elif data[:4] == b"\x28\xb5\x2f\xfd":
            data = _unzstd(data)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError) as e:
        raise InputError(f"{path} is a damaged compressed file ({e}); download or compress it again") from None
    if not data[:4096].strip() and not data.strip():
        raise InputError(f"{path} is empty; give a file with at least one check-in")
    return data


def _unzstd(data: bytes) -> bytes:
    """Decompress all frames, one by one: the library does not notice a truncated file that has several."""
    parts = []
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        parts.append(frame.decompress(data))
        if not frame.eof:
            raise EOFError("it is truncated")
        data = frame.unused_data
    return b"".join(parts)


def is_binary(head: bytes) -> bool:
    """Tell whether bytes are not text: they have a zero byte, or more than 1% control characters."""
    return b"\x00" in head or len(head.translate(None, CONTROL)) < 0.99 * len(head)


def binary_kind(head: bytes) -> str:
    """Say what a binary file is and what to do about it."""
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "is UTF-16 text; save it as UTF-8"
    if head[:4] == b"PK\x03\x04":
        return "is a zip archive or a spreadsheet; unpack it, or export it as CSV"
    return "is a binary file; give a text table (CSV, TSV, TSMC2014) or Parquet"


def extension(path: Path) -> str:
    """Return the extension without that of the compression: .txt for data.txt.xz."""
    return Path(path.stem).suffix if path.suffix.lower() in COMPRESSED else path.suffix
