"""The small city with extra columns that give clean venues away, as people's files have them."""

import base64
import hashlib
import random
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from small_city import rich_frame, scratch

from ghostpoi.data.geo import haversine_km


@cache
def telling_csv() -> Path:
    path = scratch() / "telling.csv"
    city().write_csv(path)
    return path


def city() -> pl.DataFrame:
    """The small city in time order per user, with the columns that people really have."""
    draw = random.Random(3)
    frame = rich_frame().drop("checkin", "mood").with_columns(
        time=pl.col("timestamp").str.to_datetime("%a %b %d %H:%M:%S %z %Y").dt.epoch("s")
    )  # fmt: skip
    shift = [pl.col(c).shift(1).over("Who", order_by="time").alias(f"prev_{c}") for c in ("spot", "lat", "lng")]
    home = pl.col("spot").mode().sort().first().over("Who").alias("home_venue")
    frame = frame.with_columns(*shift, home)
    lat = dict(zip(frame["spot"], frame["lat"], strict=True))
    km = haversine_km(*(frame[c].fill_null(0).to_numpy() for c in ("lat", "lng", "prev_lat", "prev_lng")))
    row = list(zip(frame["Who"], frame["spot"], frame["time"], frame["title"], strict=True))
    number = {spot: i for i, spot in enumerate(frame["spot"].unique().sort())}
    return frame.select(
        *rich_frame().drop("checkin", "mood").columns,
        prev_venue=pl.col("prev_spot").fill_null(""),
        home_venue="home_venue",
        home_lat=pl.Series([lat[v] for v in frame["home_venue"]]),
        dist_prev_km=pl.Series(np.where(frame["prev_lat"].is_null(), 0, km).round(3)),
        token=pl.Series([base64.b64encode(f"{u}:{v}:{t}".encode()).decode() for u, v, t, _ in row]),
        digest=pl.Series([hashlib.sha1(f"{u}|{v}|{t}".encode()).hexdigest() for u, v, t, _ in row]),
        terminal=pl.Series([f"T{number[v] * 6 + draw.randrange(6):05d}" for _, v, _, _ in row]),
        note=pl.Series([f"at {name}" if draw.random() < 0.7 else "lunch" for *_, name in row]),
        phone=pl.Series([draw.choice(["ios", "android"]) for _ in row]),
    )


TELLING = {
    "prev_venue": "contains the id of the user's previous venue",
    "home_venue": "contains the id of the user's most visited venue",
    "home_lat": "holds a coordinate of the user's most visited venue",
    "dist_prev_km": "holds the distance to the user's previous venue",
    "token": "contains the id of the clean venue",
    "digest": "is a hash of the venue",
    "terminal": "predicts the clean venue",
    "note": "contains the name or address of the clean venue",
}


def drops(*keep: str) -> list[str]:
    """The options that leave out all telling columns but these."""
    return [word for name in TELLING if name not in keep for word in ("--drop", name)]
