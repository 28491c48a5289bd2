"""Columns that change with the venue, columns that are kept, and columns that would reveal it."""

import random
import struct
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha1
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ghostpoi.columns import RelatedVenues, VenueColumns, classify
from ghostpoi.columns.dependence import agreement
from ghostpoi.columns.users import likeness
from ghostpoi.data.checkins import Checkins
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.formats.fields import find_columns, to_checkins


@dataclass(frozen=True)
class Row:
    """One check-in, from which tests derive an extra column."""

    user: int
    venue: int
    lat: float
    lon: float
    time: int
    draw: random.Random


def make(rows: int = 600, users: int = 12, venues: int = 30, noise: float = 0.0) -> tuple[pl.DataFrame, list[Row]]:
    draw = random.Random(1)
    place = [(40.7 + draw.uniform(-0.05, 0.05), -74 + draw.uniform(-0.05, 0.05)) for _ in range(venues)]
    made = []
    for i in range(rows):
        v = min(int(draw.expovariate(0.15)), venues - 1)
        lat, lon = (round(x + draw.gauss(0, noise), 6) for x in place[v])
        made.append(Row(draw.randrange(users), v, lat, lon, 1_600_000_000 + 3600 * i, draw))
    frame = pl.DataFrame(
        {
            "user": [f"u{r.user}" for r in made],
            "poi": [venue_id(r) for r in made],
            "category": [f"c{r.venue % 3}" for r in made],
            "lat": [r.lat for r in made],
            "lon": [r.lon for r in made],
            "time": [r.time for r in made],
        }
    )
    return frame, made


def venue_id(row: Row) -> str:
    return f"{row.venue * 7919 % 100_000:05x}f{row.venue:04d}"


def sort(frame: pl.DataFrame, *keep: str, drop: tuple[str, ...] = ()) -> VenueColumns:
    mapping = find_columns(source := Source(Path("x")), frame.columns, {})
    fields = frame.select(pl.col(c).alias(f) for f, c in mapping.items())
    return classify(to_checkins(source, fields, "category", str), frame, mapping, "x", keep, drop)


def ewkb(row: Row) -> bytes:
    """A point as PostGIS stores it, with 20 m of noise."""
    x, y = row.lon + row.draw.gauss(0, 2e-4), row.lat + row.draw.gauss(0, 2e-4)
    return b"\x01" + struct.pack("<IIdd", 0x20000001, 4326, x, y)


def base32(row: Row, length: int = 9) -> str:
    """A geohash."""
    low, high, out, bits, even = [-90.0, -180.0], [90.0, 180.0], "", 0, True
    point = (row.lat + row.draw.gauss(0, 3e-4), row.lon + row.draw.gauss(0, 3e-4))
    for i in range(5 * length):
        axis = 1 if even else 0
        middle = (low[axis] + high[axis]) / 2
        bits = bits << 1 | (point[axis] > middle)
        (low if point[axis] > middle else high)[axis] = middle
        even = not even
        if i % 5 == 4:
            out, bits = out + "0123456789bcdefghjkmnpqrstuvwxyz"[bits], 0
    return out


Make = Callable[[Row], Any]
WORDS = ["we", "had", "a", "very", "nice", "time", "here", "today", "with", "all", "of", "our", "friends", "again"]
CHANGE: dict[str, Make] = {
    "name": lambda r: f"Café {r.venue}",
    "address": lambda r: f"{r.venue} Main St",
    "rating": lambda r: r.venue / 7,
    "category name": lambda r: f"Kind {r.venue % 3}",
    "name, often missing": lambda r: f"Bar {r.venue}" if r.venue % 2 else None,
    "well-known binary": lambda r: b"\xff\x01" + bytes([r.venue]),
    "tags": lambda r: ["tag", f"t{r.venue}"],
    "point": lambda r: {"x": r.lat, "y": r.lon},
}
KEEP: dict[str, Make] = {
    "constant": lambda r: "web",
    "empty": lambda r: None,
    "gender": lambda r: "mf"[r.user % 2],
    "age": lambda r: 20 + r.user,
    "user name": lambda r: f"name-{r.user * 7919:x}",
    "count": lambda r: r.time - 1_600_000_000,
    "row number": lambda r: (r.time - 1_600_000_000) // 3600 + 17,
    "id of a database": lambda r: r.time // 3600 * 5 + r.draw.randrange(5),
    "mood": lambda r: r.draw.choice(["good", "bad"]),
    "temperature": lambda r: round(r.draw.gauss(15, 3)),
    "temperature, at times": lambda r: r.draw.choice([round(r.draw.gauss(15, 1)), None]),
    "time zone": lambda r: -240 if r.time < 1_601_000_000 else -300,
    "day": lambda r: np.datetime64(r.time, "s").astype("datetime64[ms]").item(),
    "local time": lambda r: f"{np.datetime64(r.time, 's')}Z",
    "local time, TSMC": lambda r: np.datetime64(r.time, "s").item().strftime("%a %b %d %H:%M:%S +0000 %Y"),
    "local time, another zone": lambda r: str(np.datetime64(r.time - 5 * 3600, "s")),
    "milliseconds": lambda r: r.time * 1000,
    "date": lambda r: str(np.datetime64(r.time, "s").astype("datetime64[D]")),
    "hour": lambda r: (r.time - 5 * 3600) // 3600 % 24,
    "weekday": lambda r: np.datetime64(r.time, "s").item().strftime("%A"),
    "day of a user": lambda r: f"u{r.user}-{r.time // 86400}",
    "weekend": lambda r: int((r.time // 86400 + 3) % 7 >= 5),
    "half hours as a share of the day": lambda r: (r.time - 4 * 3600) % 86400 // 1800 / 48,
    "seconds as a rounded share of the day": lambda r: round(r.time % 86400 / 86400, 6),
}  # fmt: skip
REFUSE: dict[str, tuple[Make, str]] = {
    "noisy latitude": (lambda r: r.lat + r.draw.gauss(0, 1e-3), "holds a coordinate of the clean venue"),
    "noisy text": (lambda r: f"{r.lat + r.draw.gauss(0, 1e-3):.5f}", "holds a coordinate of the clean venue"),
    "noisy, coarse": (lambda r: round(r.lat + r.draw.gauss(0, 5e-3), 2), "predicts|coordinate"),
    "noisy point": (lambda r: f"POINT({r.lon + r.draw.gauss(0, 1e-3):.6f} {r.lat:.6f})", "holds a coordinate"),
    "noisy pair": (lambda r: f"{r.lat + r.draw.gauss(0, 1e-3):.6f},{r.lon:.6f}", "holds a coordinate"),
    "noisy geohash": (base32, "holds a coordinate"),
    "PostGIS hex": (lambda r: ewkb(r).hex().upper(), "holds a coordinate"),
    "WKB": (ewkb, "holds a coordinate"),
    "noisy list": (lambda r: [r.lat + r.draw.gauss(0, 1e-3)], "holds a coordinate"),
    "noisy struct": (lambda r: {"lat": r.lat + r.draw.gauss(0, 1e-3)}, "holds a coordinate"),
    "name with typos": (lambda r: f"Bar {r.venue}{r.draw.choice(['', '', '', '', '', ' '])}", "predicts"),
    "price, at times another": (lambda r: r.venue if r.draw.random() < 0.9 else 99, "predicts the clean venue"),
    "six terminals": (lambda r: f"T{r.venue * 6 + r.draw.randrange(6)}", "predicts the clean venue"),
    "key": (lambda r: f"{r.draw.getrandbits(64):x}-{venue_id(r)}", "contains the id of the clean venue"),
    "key in front": (lambda r: f"{venue_id(r)}/{r.draw.getrandbits(64):x}", "contains the id of the clean venue"),
    "key in a fifth": (
        lambda r: venue_id(r) if r.draw.random() < 0.19 else f"{r.draw.getrandbits(40):x}",
        "contains the id of the clean venue",
    ),
    "base64": (lambda r: b64encode(f"{r.user}:{venue_id(r)}:{r.time}".encode()).decode(), "id of the clean venue"),
    "URL": (lambda r: f"https://x.org/?q=%7B{venue_id(r)}%7D&n={r.draw.random()}", "id of the clean venue"),
    "JSON": (lambda r: f'{{"v": "{venue_id(r)}", "n": {r.draw.random()}}}', "id of the clean venue"),
    "sha1": (lambda r: sha1(f"u{r.user}|{venue_id(r)}|{r.time}".encode()).hexdigest(), "is a hash of the venue"),
    "milliseconds that hold the venue": (lambda r: r.time * 1000 + r.venue, "predicts|not known"),
    "share of the day that holds the venue": (
        lambda r: r.time % 86400 // 1800 / 48 + r.venue * 1e-7,
        "predicts|not known",
    ),
    "comment": (lambda r: " ".join(r.draw.sample(WORDS, 7)), "is not known to be harmless"),
    "rare comment": (lambda r: " ".join(r.draw.sample(WORDS, 7)) if r.draw.random() < 0.05 else None, "not known"),
    "Japanese comment": (lambda r: "".join(r.draw.sample("今日は渋谷で友達と楽しかった", 10)), "not known"),
    "noisy binary": (lambda r: b"\xff" + r.draw.randbytes(4), "not known"),
    "check-in id": (lambda r: f"{r.draw.getrandbits(96):024x}", "not known"),
    "precise temperature": (lambda r: r.draw.gauss(15, 8), "not known"),
}


def with_column(make_value: Make, **size: Any) -> pl.DataFrame:
    frame, rows = make(**size)
    return frame.with_columns(pl.Series("extra", [make_value(r) for r in rows], strict=False))


@pytest.mark.parametrize("case", CHANGE)
def test_what_a_venue_decides_changes_with_it(case: str) -> None:
    got = sort(with_column(CHANGE[case]))
    assert got == VenueColumns(["poi", "category", "lat", "lon", "extra"], [])


@pytest.mark.parametrize("case", KEEP)
def test_what_has_nothing_to_do_with_the_venue_is_kept(case: str) -> None:
    assert sort(with_column(KEEP[case])) == VenueColumns(["poi", "category", "lat", "lon"], ["extra"])


@pytest.mark.parametrize("case", REFUSE)
def test_a_trace_of_the_venue_is_refused_and_can_be_kept(case: str) -> None:
    value, says = REFUSE[case]
    frame = with_column(value)
    remedy = "leave it out with --drop extra, or keep it at your own risk with --keep extra"
    with pytest.raises(InputError, match=rf"^x: the column 'extra' .*({says}).*, so .*; {remedy}$"):
        sort(frame)
    assert sort(frame, "extra").keep == ["extra"]


def irregular(make_value: Make) -> pl.DataFrame:
    """Check-ins with irregular gaps, by time, and a column."""
    frame, rows = make(2400)
    draw = random.Random(2)
    gaps = accumulate(draw.randrange(60, 7000) for _ in rows)
    rows = [replace(row, time=rows[0].time + gap) for row, gap in zip(rows, gaps, strict=True)]
    extra = pl.Series("extra", [make_value(r) for r in rows], strict=False)
    return frame.with_columns(pl.Series("time", [r.time for r in rows]), extra)


@pytest.mark.parametrize(
    "case",
    {
        "an id that ends with a number of the venue": lambda r: r.time * 1000 + (r.venue * 37 + 11) % 1000,
        "the same as text, of many digits": lambda r: f"{r.time}{(r.venue * 37 + 11) % 1000:08d}",
        "bits of the venue": lambda r: r.time << 8 | r.venue,
        "the same as a float": lambda r: float(r.time * 1000 + (r.venue * 37 + 11) % 1000),
        "a weekday and a zone": lambda r: f"{np.datetime64(r.time, 's').item():%a} Z{r.venue}",
    }.items(),
    ids=lambda case: case[0],
)
def test_a_venue_behind_a_time_is_noticed(case: tuple[str, Make]) -> None:
    with pytest.raises(InputError, match="the column 'extra' "):
        sort(irregular(case[1]))


def test_a_venue_that_few_rows_name_is_noticed() -> None:
    """They are less than 1% of all rows, and one value that recurs."""
    named = iter(range(22))
    frame = irregular(lambda r: venue_id(r) if r.venue == 2 and next(named, None) is not None else None)
    assert frame["extra"].drop_nulls().len() == 22
    with pytest.raises(InputError, match="the column 'extra' contains"):
        sort(frame)


@pytest.mark.parametrize(
    "make_value", [lambda r: r.time * 1000 + r.draw.randrange(1000), lambda r: r.time << 8 | r.draw.randrange(256)]
)
def test_an_id_with_random_digits_behind_a_time_is_kept(make_value: Make) -> None:
    assert sort(irregular(make_value)).keep == ["extra"]


def test_a_categorical_column_is_like_its_text() -> None:
    names = with_column(CHANGE["name"]).with_columns(pl.col("extra").cast(pl.Categorical))
    assert "extra" in sort(names).change
    typos = with_column(REFUSE["name with typos"][0]).with_columns(pl.col("extra").cast(pl.Categorical))
    with pytest.raises(InputError, match="predicts the"):
        sort(typos)


def test_where_every_row_has_its_own_position_only_what_the_venue_decides_changes() -> None:
    for case, make_value in (KEEP | CHANGE).items():
        if case == "point":
            continue  # each row has its own: refused
        got = sort(with_column(make_value, noise=1e-4))
        assert ("extra" in got.change) == (case in CHANGE), case


def test_what_goes_with_a_spelling_of_the_venue_changes_with_it() -> None:
    frame, rows = make()
    twice = [r.time // 3600 % 2 for r in rows]
    frame = frame.with_columns(
        lat=pl.col("lat") + pl.Series(twice) * 1e-4,
        extra=pl.Series([f"Bar {r.venue}{' & Grill' * t}" for r, t in zip(rows, twice, strict=True)]),
    )
    assert "extra" in sort(frame).change


def test_where_each_user_has_one_venue_its_name_still_changes() -> None:
    frame, rows = make(users=5, venues=5)
    frame = frame.with_columns(
        user=pl.Series([f"u{r.venue}" for r in rows]), name=pl.Series([f"B{r.venue}" for r in rows])
    )
    assert sort(frame).change[-1] == "name"


def test_columns_to_keep_must_exist_and_may_not_be_the_venue() -> None:
    frame, _ = make()
    with pytest.raises(InputError, match="--keep nope: x has no column 'nope'; its columns are user, poi, "):
        sort(frame, "nope")
    with pytest.raises(InputError, match="--keep lat: this column describes the venue"):
        sort(frame, "lat")


def test_fractions_of_the_times_themselves_are_tested() -> None:
    frame, rows = make()
    with pytest.raises(InputError, match="padding\\) of the values in the column 'time' predicts"):
        sort(frame.with_columns(time=pl.Series([1000 * r.time + r.venue for r in rows])))
    iso = [f"{datetime.fromtimestamp(r.time, UTC):%Y-%m-%dT%H:%M:%S}.{r.venue:03d}Z" for r in rows]
    with pytest.raises(InputError, match="padding\\) of the values in the column 'time' predicts"):
        sort(frame.with_columns(time=pl.Series(iso)))
    assert sort(frame.with_columns(time=pl.Series([1000 * r.time + r.draw.randrange(3) for r in rows]))).change


def test_values_that_are_alike_for_users_of_the_same_venues_are_found_without_categories() -> None:
    """Users of one category only, or with one value only, are all equally similar, which says nothing."""
    user = np.repeat(np.arange(60, dtype=np.int32), 10)
    side = user % 2
    venue = (1 + side * 10 + np.arange(600) % 10).astype(np.int32)
    zero = np.zeros(600)
    table = Checkins(
        user, venue, zero.astype(np.int32), zero + 40, zero - 74, np.arange(600) * 977, np.arange(60).astype(object),
        np.arange(21).astype(str).astype(object), np.array([""], object),
    )  # fmt: skip
    related = RelatedVenues(table)
    found = likeness(pl.Series([f"side {n % 2}" for n in range(60)]), related)
    assert found is not None
    assert found.reason == "is similar for users who visit the same venues"
    assert likeness(pl.Series(["side 0"] * 60), related) is None


def test_a_zone_that_the_venue_decides_is_refused_where_few_rows_teach_little() -> None:
    frame, rows = make(rows=400, venues=100)

    def zoned(hours: list[int]) -> pl.DataFrame:
        local = (datetime.fromtimestamp(r.time + 3600 * h, UTC) for r, h in zip(rows, hours, strict=True))
        return frame.with_columns(
            time=pl.Series([f"{at:%Y-%m-%dT%H:%M:%S}+0{h}:00" for at, h in zip(local, hours, strict=True)])
        )

    with pytest.raises(InputError, match=r"'time' predicts the clean venue \(\d\d\.\d% more pairs of a venue's"):
        sort(zoned([r.venue * 7919 % 11 % 2 for r in rows]))
    assert sort(zoned([r.user % 2 for r in rows])).change  # a user's home
    assert sort(zoned([int(r.time > rows[200].time) for r in rows])).change  # summer time


def test_agreement_counts_pairs_beyond_those_of_shuffled_rows() -> None:
    rows = np.arange(200)
    group = rows // 2
    assert agreement(group % 2, group, [np.roll(rows, 1)]) == 1.0
    assert agreement(group % 2, group, [np.roll(rows, 1), rows]) == 0.0
    assert agreement(rows % 2, rows, [rows]) == 0.0  # no pairs
