"""Decode values that are written as base64, hex, URLs, WKB or geohashes, into one text."""

import base64
import binascii
import contextlib
import re
import struct
import zlib
from urllib.parse import unquote_plus

DEPTH = 3  # how often a decoded text is decoded again
JOIN = "\x1f"  # between the readings of one value
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
HEX = re.compile(r"(?:0x|\\x)?((?:[0-9a-fA-F]{2}){4,})")
GEOHASH = re.compile(r"[0-9b-hjkmnp-z]{5,12}")
BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"
POINT = 1  # the type of a point in WKB
HAS_SRID = 0x20000000


def readings(value: str | bytes) -> str:
    """Return a value and all that can be decoded from it, as one text."""
    found, todo = [], [value]
    for _ in range(DEPTH):
        todo = [inner for one in todo for inner in (_bytes(one) if isinstance(one, bytes) else _text(one))]
        found += [one for one in todo if isinstance(one, str)]
    plain = [value] if isinstance(value, str) else []
    return JOIN.join(dict.fromkeys(plain + found))


def _text(value: str) -> list[str | bytes]:
    """Decode one step of a text and of its parts."""
    out: list[str | bytes] = []
    if "%" in value or "+" in value:
        out.append(unquote_plus(value))
    if r"\u" in value:
        out.append(re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), value))
    for part in dict.fromkeys([value.strip(), *re.split(r"[^A-Za-z0-9+/_=-]+", value)[:8]]):
        if match := HEX.fullmatch(part):
            out.append(bytes.fromhex(match[1]))
        if BASE64.fullmatch(part):
            try:
                out.append(base64.b64decode(part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4), altchars=b"-_"))
                out.append(base64.b64decode(part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4)))
            except (binascii.Error, ValueError):
                pass
        if GEOHASH.fullmatch(part) and any(c.isdigit() for c in part):
            out.append(_geohash(part))
    return out


def _bytes(value: bytes) -> list[str | bytes]:
    """Read bytes as a point, as compressed data, or as text."""
    out: list[str | bytes] = []
    if (point := _point(value)) is not None:
        out.append(point)
    if len(value) == 16:
        out += [_numbers(*struct.unpack(form, value)) for form in ("<dd", ">dd")]
    with contextlib.suppress(zlib.error):
        out.append(zlib.decompressobj(wbits=47).decompress(value, 10_000))
    try:
        if (text := value.decode()).isprintable():
            out.append(text)
    except UnicodeDecodeError:
        pass
    return out


def _point(value: bytes) -> str | None:
    """Read a point in WKB or PostGIS's EWKB, as "x y"."""
    if len(value) < 21 or value[0] > 1:
        return None
    order = "<" if value[0] else ">"
    (kind,) = struct.unpack_from(order + "I", value, 1)
    at = 9 if kind & HAS_SRID else 5
    if kind & 0xFF != POINT or len(value) < at + 16:
        return None
    return _numbers(*struct.unpack_from(order + "dd", value, at))


def _numbers(x: float, y: float) -> str:
    plausible = all(1e-3 < abs(v) <= 180 for v in (x, y))  # not NaN, and not bytes of something else
    return f"{x:.7f} {y:.7f}" if plausible else ""


def _geohash(code: str) -> str:
    """Return the centre of a geohash, as "latitude longitude"."""
    low, high = [-180.0, -90.0], [180.0, 90.0]
    axis = 0
    for letter in code:
        number = BASE32.index(letter)
        for bit in (16, 8, 4, 2, 1):
            middle = (low[axis] + high[axis]) / 2
            (low if number & bit else high)[axis] = middle
            axis = 1 - axis
    return f"{(low[1] + high[1]) / 2:.7f} {(low[0] + high[0]) / 2:.7f}"
