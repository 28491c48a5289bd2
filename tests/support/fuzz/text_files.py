"""Mutated text files: layouts, quotes, encodings, line ends, compression, damage."""

import gzip
import lzma
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

import zstandard

from fuzz.city import NAMES, Row, make_rows

HEADERS = (
    ("user", "poi", "category", "lat", "lon", "time"),
    ("user_id", "venue_id", "category_id", "latitude", "longitude", "timestamp"),
    ("userId", "venueId", "venueCategoryId", "lat", "lng", "utcTimestamp"),
)
TOKENS = (
    b'"', b'""', b"'", b"\r", b"\n", b"\r\n", b"\x00", b"\x1d", b"\x1e", b"\x1f", b"\x1b[2J", b",", b"\t", b";", b"|",
    b"\xef\xbb\xbf", b"\xff", b"\xc3\x28", b"\xe2\x80\xae", b"nan", b"inf", b"-0", b"1e400", b"9" * 400, b" ", b"",
    b"\xed\xa0\x80", b"1" * 25, b"-999999999999999999999", b"2012-04-03T18:00:09Z", b"0x10", b"1_0", b"\xa0", b"\x85",
)  # fmt: skip
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, 1, mtime=0),
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".zst": lambda data: zstandard.ZstdCompressor(level=1).compress(data),
}
BOMBS = {suffix: compress(b"u,p\n" * (25 << 20)) for suffix, compress in COMPRESS.items()}  # 100 MB each


def text_file(draw: Random) -> tuple[str, bytes]:
    """Return the name and the content of a text file."""
    rows = make_rows(draw)
    if draw.random() < 0.25:
        name, data = "x.txt", _tsmc(draw, rows)
    else:
        name, data = _table(draw, rows)
    for _ in range(draw.choice((0, 0, 1, 1, 2, 4))):
        data = mutated(draw, data)
    if draw.random() < 0.25:
        suffix = draw.choice(tuple(COMPRESS))
        if draw.random() < 0.03:
            return name + suffix, BOMBS[suffix]
        parts = [data] if draw.random() < 0.7 else [data[: len(data) // 2], data[len(data) // 2 :]]
        data = b"".join(map(COMPRESS[suffix], parts))
        if draw.random() < 0.4:
            data = mutated(draw, data)
        name += suffix
    return name, data


def mutated(draw: Random, data: bytes) -> bytes:
    """Damage bytes at a random place."""
    at, length = draw.randrange(len(data) + 1), draw.choice((1, 1, 2, 8, 100))
    kind = draw.randrange(7)
    if kind == 0:
        return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
    if kind == 1:
        return data[:at] + data[at + length :]
    if kind == 2:
        return data[:at] + data[at : at + length] + data[at:]
    if kind == 3:
        return data[:at]
    if kind == 4:
        lines = data.split(b"\n")
        lines.insert(draw.randrange(len(lines) + 1), draw.choice((b"", b" ", draw.choice(lines), b",,,,,", b"#")))
        return b"\n".join(lines)
    if kind == 5:
        return bytes(draw.choice((b"\xef\xbb\xbf", b"\n", b"x", b"sep=,\n", b"PAR1"))) + data
    return data[:at] + draw.choice(TOKENS) + data[at:]


def _table(draw: Random, rows: list[Row]) -> tuple[str, bytes]:
    header, time = list(draw.choice(HEADERS)), draw.choice(TIMES)
    columns = [[f"u{r.user}", f"v{r.venue}", r.category, f"{r.lat}", f"{r.lon}", time(r.time)] for r in rows]
    if draw.random() < 0.5:  # what a venue decides
        few = (*(f"Place {i}" for i in range(5)), *draw.sample(NAMES, draw.randint(0, 3)))
        names = [draw.choice(few) for _ in range(99)]
        header.append("name")
        columns = [[*fields, names[r.venue]] for fields, r in zip(columns, rows, strict=True)]
    if draw.random() < 0.3:  # what a user decides
        header.insert(0, draw.choice(("gender", "k\x1b[7m", "\u202ek", "ü")))
        columns = [[f"g{r.user % 2}", *fields] for fields, r in zip(columns, rows, strict=True)]
    if draw.random() < 0.2:
        header.append("kept")  # named by --keep
        few = draw.sample(NAMES, 3)
        columns = [[*fields, draw.choice(few)] for fields in columns]
    delimiter, end, style = (
        draw.choice(",,,\t;|"),
        draw.choice(("\n", "\n", "\r\n")),
        draw.choice(("all", "need", "no")),
    )
    lines = (delimiter.join(_quoted(field, style, delimiter) for field in fields) for fields in (header, *columns))
    text = end.join(lines) + draw.choice((end, end, "", end * 2))
    name = f"x{draw.choice(('.csv', '.tsv', '.dat', ''))}"
    encoding = draw.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "latin-1", "utf-16", "shift-jis"))
    return name, text.encode(encoding, "replace")


def _quoted(field: str, style: str, delimiter: str) -> str:
    if style == "all" or (style == "need" and any(c in field for c in (delimiter, '"', "\n"))):
        return '"' + field.replace('"', '""') + '"'
    return field


def _tsmc(draw: Random, rows: list[Row]) -> bytes:
    end = draw.choice(("\n", "\n", "\r\n"))
    name = draw.choice(("Café", "Bar", 'Pizza 12"', "Food & Drink"))
    lines = (f"{r.user}\tv{r.venue}\tc{r.category}\t{name}\t{r.lat}\t{r.lon}\t-240\t{_tsmc_time(r.time)}" for r in rows)
    return (end.join(lines) + draw.choice((end, ""))).encode(draw.choice(("latin-1", "utf-8")))


def _tsmc_time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%a %b %d %H:%M:%S +0000 %Y")


TIMES: tuple[Callable[[int], str], ...] = (
    str,
    lambda s: f"{s}000",
    lambda s: f"{s}.5",
    _tsmc_time,
    lambda s: datetime.fromtimestamp(s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    lambda s: datetime.fromtimestamp(s, UTC).strftime("%Y-%m-%d %H:%M:%S+05:30"),
    lambda s: datetime.fromtimestamp(s, UTC).strftime("%Y-%m-%d %H:%M"),
)
