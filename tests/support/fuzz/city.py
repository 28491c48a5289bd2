"""A tiny city as plain rows, without any help of ghostpoi."""

from dataclasses import dataclass
from random import Random

START = 1_333_476_000
CATEGORIES = ("cafe", "bar", "office")
NAMES = (
    "Joe's", "Café Ñandú", 'Pizza 12"', '"Roxy', "a, b", "a;b", "a|b", "x\ty", " padded ", "=1+1", "日本",
    "\x1b[31mred", "-", "0", "NULL", "nan", "two\nlines", "\u202egnp", "end\\", '""', "'", "Ω" * 300,
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One check-in."""

    user: int
    venue: int
    category: str
    lat: float
    lon: float
    time: int


def make_rows(draw: Random) -> list[Row]:
    """Return check-ins in time order. Most venues have neighbours of their category."""
    users, venues = draw.randint(2, 9), draw.randint(4, 24)
    places = [
        (draw.choice(CATEGORIES), round(40.7 + draw.gauss(0, 0.01), 6), round(-74 + draw.gauss(0, 0.01), 6))
        for _ in range(venues)
    ]
    rows, clock = [], START
    for _ in range(draw.choice((1, 2, 5, 40, 80, 150))):
        clock += draw.randint(1, 4000)
        venue = draw.randrange(venues)
        rows.append(Row(draw.randrange(users), venue, *places[venue], clock))
    return rows
