"""Recognise hashes of a venue's id, alone or joined with the user, the time or the position."""

import base64
import hashlib
import re
import uuid
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import permutations

import polars as pl

from ghostpoi.data.checkins import Longs
from ghostpoi.publish.columns.related_venues import RelatedVenues

ROWS = 24
LEAST = 2  # rows whose hash must match
SHORTEST = 8  # characters of a hash that are compared
SEPARATORS = ("", "|", ":", ",", "-", "_", " ", "/", ";", "\t")
ALGORITHMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s")
NAMESPACES = (uuid.NAMESPACE_DNS, uuid.NAMESPACE_URL, uuid.NAMESPACE_OID, uuid.NAMESPACE_X500)
DIGEST = re.compile(r"[0-9a-fA-F]{8,128}|[A-Za-z0-9+/_-]{11,88}|\d{8,}")


def hashed_share(values: pl.Series, rows: Longs, related: RelatedVenues, raw_time: pl.Series) -> float:
    """Return the share of some rows whose value is a hash of an obvious combination of the row's fields."""
    if values.dtype.is_nested() or values.dtype in (pl.Object, pl.Boolean) or values.dtype.is_float():
        return 0.0
    given = [value.hex() if isinstance(value, bytes) else str(value or "") for value in values.to_list()]
    plain = [re.sub(r"[^A-Za-z0-9+/_]", "", text) for text in given]
    chosen = [i for i, text in enumerate(plain) if DIGEST.fullmatch(text)][:ROWS]
    if len(chosen) < LEAST:
        return 0.0
    found = [_is_hash(plain[i], _texts(int(rows[i]), related, raw_time)) for i in chosen]
    return sum(found) / len(found) if sum(found) >= LEAST else 0.0


def _texts(row: int, related: RelatedVenues, raw_time: pl.Series) -> Iterator[str]:
    """Yield the texts that could have been hashed to make a key of a check-in or of a venue."""
    table = related.table
    user, time = table.user_ids[table.user[row]], int(table.time[row])
    moment = datetime.fromtimestamp(time, UTC)
    times = dict.fromkeys([str(raw_time[row]).strip(), str(time), moment.isoformat(), f"{moment:%Y-%m-%d %H:%M:%S}"])
    venues = {table.venue_ids[venue[row]] for venue in related.venue.values()} - {""}
    place = f"{table.lat[row]}", f"{table.lon[row]}"
    parts: list[tuple[str, ...]] = [*((venue,) for venue in venues), place]
    parts += [(user, table.venue_ids[table.venue[row]], t) for t in times]
    parts += [(user, *place), (user, table.venue_ids[table.venue[row]])]
    parts += [(table.venue_ids[table.venue[row]], t) for t in times]
    for part in dict.fromkeys(parts):
        for ordered in permutations(part):
            for separator in SEPARATORS if len(part) > 1 else ("",):
                yield separator.join(ordered)


def _is_hash(value: str, texts: Iterator[str]) -> bool:
    folded = value.lower()
    return any(
        folded == digest or (len(folded) >= SHORTEST and digest.startswith(folded))
        for text in texts
        for digest in _digests(text, value)
    )


def _digests(text: str, value: str) -> Iterator[str]:
    """Yield the digests of a text in the forms that could equal the value, in lower case."""
    data = text.encode("utf-8", "replace")
    yield f"{zlib.crc32(data):08x}"
    yield f"{zlib.crc32(data)}"
    for name in ALGORITHMS:
        digest = hashlib.new(name, data, usedforsecurity=False).digest()
        yield digest.hex()
        if not _is_hex(value):
            yield base64.b64encode(digest).decode().rstrip("=").lower()
            yield base64.urlsafe_b64encode(digest).decode().rstrip("=").replace("-", "").lower()
        if value.isdigit():
            yield str(int.from_bytes(digest, "big"))
            yield str(int.from_bytes(digest[:8], "big"))
    if len(value) == 32:
        for namespace in NAMESPACES:
            yield uuid.uuid5(namespace, text).hex
            yield uuid.uuid3(namespace, text).hex


def _is_hex(value: str) -> bool:
    return bool(re.fullmatch(r"[0-9a-fA-F]+", value))
