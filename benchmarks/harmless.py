"""Harmless columns of usual exports, made for a city: they follow from the time, the user, or nothing at all."""

import hashlib
from typing import Any

import numpy as np
import polars as pl

from benchmarks.city import DAY, City, Make
from ghostpoi.data.checkins import Longs


def _weather(c: City) -> Any:
    return c.of(c.day - c.day.min(), ["sun", "rain", "cloud", "snow"])


def _battery(c: City, least: int = 0) -> Longs:
    """Full in the morning, lower in the evening, with much noise."""
    return np.clip(np.round(c.normal(100.0 - 3.5 * c.hour, 18)), least, 100).astype(np.int64)


def _upgrade(c: City, versions: int) -> Longs:
    """A version that each user has from some day on."""
    share = (c.table.time - c.table.time.min()) / np.ptp(c.table.time)
    late = c.draw.random(int(c.user.max()) + 1)[c.user] * 0.3
    return np.floor(np.clip(share - late, 0, 0.999) * versions).astype(np.int64)


HARMLESS: dict[str, Make] = {
    # what follows from the time
    "hh_mm": lambda c: c.stamps("%H:%M"),
    "hh_mm_ss": lambda c: c.stamps("%H:%M:%S"),
    "am_pm": lambda c: c.stamps("%p"),
    "clock": lambda c: c.stamps("%I:%M %p"),
    "decimal_hour": lambda c: np.round(c.local % DAY / 3600, 2),
    "hour": lambda c: c.hour,
    "hour_of_week": lambda c: (c.local // 3600) % 168,
    "part_of_day": lambda c: np.array(["night", "morning", "afternoon", "evening"])[c.hour // 6],
    "weekend": lambda c: np.where((c.day + 3) % 7 >= 5, "weekend", "weekday"),
    "weekday": lambda c: c.stamps("%A"),
    "wochentag": lambda c: np.array(["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"])[(c.day + 3) % 7],
    "iso_week": lambda c: c.stamps("%G-W%V"),
    "week": lambda c: [int(week) for week in c.stamps("%V")],
    "iso_date": lambda c: c.stamps("%Y-%m-%d"),
    "date_eu": lambda c: c.stamps("%d/%m/%Y"),
    "date_us": lambda c: c.stamps("%m/%d/%Y"),
    "datetime_eu": lambda c: c.stamps("%d.%m.%Y %H:%M"),
    "long_date": lambda c: c.stamps("%A, %d %B %Y"),
    "month": lambda c: c.stamps("%B"),
    "quarter": lambda c: [f"Q{(int(m) + 2) // 3}" for m in c.stamps("%m")],
    "season": lambda c: [["winter", "spring", "summer", "autumn"][int(m) % 12 // 3] for m in c.stamps("%m")],
    "year": lambda c: [int(year) for year in c.stamps("%Y")],
    "day_of_year": lambda c: [int(day) for day in c.stamps("%j")],
    "days_since_start": lambda c: c.day - c.day.min(),
    "elapsed_days": lambda c: np.round((c.table.time - c.table.time.min()) / DAY, 3),
    "date32": lambda c: pl.Series(c.local * 1_000_000).cast(pl.Datetime("us")).dt.date(),
    "time32": lambda c: pl.Series(c.local * 1_000_000).cast(pl.Datetime("us")).dt.time(),
    "epoch_ms": lambda c: c.table.time * 1000,
    "local_iso": lambda c: c.stamps("%Y-%m-%dT%H:%M:%S-05:00"),
    "business_hours": lambda c: (c.hour >= 9) & (c.hour < 17) & ((c.day + 3) % 7 < 5),
    "rush_hour": lambda c: np.isin(c.hour, [7, 8, 9, 16, 17, 18]).astype(int),
    "time_slot": lambda c: c.local % DAY // 900,
    "minute": lambda c: c.local % 3600 // 60,
    "school_holiday": lambda c: np.isin((c.day - c.day.min()) // 7 % 12, [3, 4]).astype(int),
    "moon_age": lambda c: np.round(c.day % 29.53, 1),
    "weather": _weather,
    "temperature": lambda c: np.round(10 + c.numbers(c.day - c.day.min(), 20) + 5 * np.sin(c.hour / 4)).astype(int),
    "humidity": lambda c: 30 + c.numbers(c.local // 3600 - c.local.min() // 3600, 70),
    "traffic_index": lambda c: np.round(c.normal(50 + 20 * np.sin(c.hour / 3), 5)).astype(int),
    "tariff": lambda c: np.where((c.hour >= 8) & (c.hour < 20), "peak", "off-peak"),
    "shift_team": lambda c: np.array(["A", "B", "C", "D"])[(c.local // 28_800) % 4],
    "fiscal_period": lambda c: (c.day - c.day.min()) // 28,
    "week_parity": lambda c: (c.day + 3) // 7 % 2,
    # what belongs to the user
    "gender": lambda c: c.of(c.user, ["f", "m", "x"]),
    "age_group": lambda c: c.of(c.user, ["18-24", "25-34", "35-44", "45-54", "55+"]),
    "birth_year": lambda c: 1950 + c.numbers(c.user, 55),
    "language": lambda c: c.of(c.user, ["en", "en", "en", "es", "zh"]),
    "phone_os": lambda c: c.of(c.user, ["ios", "android"]),
    "plan": lambda c: c.of(c.user, ["free", "free", "plus", "pro"]),
    "user_name": lambda c: c.texts("user_{:06x}", c.numbers(c.user, 1 << 24)),
    "email": lambda c: c.texts("{:08x}@example.org", c.numbers(c.user, 1 << 32)),
    "account_uuid": lambda c: [hashlib.md5(f"{c.seed}{u}".encode()).hexdigest() for u in c.user.tolist()],
    "signup_date": lambda c: c.stamps("%Y-%m-%d", (14_000 + c.numbers(c.user, 1000)) * DAY),
    "referral": lambda c: c.of(c.user, ["friend", "ad", "store", "press"]),
    "cohort": lambda c: c.numbers(c.user, 12),
    "user_checkins": lambda c: np.bincount(c.user)[c.user],
    "height_cm": lambda c: 150 + c.numbers(c.user, 50),
    "customer_number": lambda c: 10_000_000 + c.user * 37,
    "first_seen": lambda c: c.per_user(lambda rows: c.stamps("%Y-%m-%d", c.local[rows[:1]])[0]),
    "device_model": lambda c: c.texts("SM-{}", c.numbers(c.user, 40)),
    "marketing": lambda c: c.numbers(c.user, 2).astype(bool),
    "ab_group": lambda c: c.of(c.user, ["control", "variant"]),
    "screen_size": lambda c: c.of(c.user, [4.7, 5.1, 5.5, 6.1]),
    "credit_score": lambda c: 300 + c.numbers(c.user, 550),
    # what belongs to the user's own sequence
    "row_id": lambda c: np.arange(len(c)),
    "entry": lambda c: 100_000 + 10 * np.arange(len(c)),
    "checkin_count": lambda c: c.place(c.venue * 0),
    "session_number": lambda c: c.session(24),
    "session_6h": lambda c: c.texts("{}-{}", c.user, c.session(6)),
    "session_8h": lambda c: c.session(8),
    "session_key": lambda c: [hashlib.md5(f"{u}s{s}".encode()).hexdigest()[:12]
                              for u, s in zip(c.user.tolist(), c.session(12).tolist(), strict=True)],
    "position_in_session": lambda c: c.place(c.session(24)),
    "position_in_day": lambda c: c.place(c.day),
    "session_start": lambda c: (c.place(c.session(24)) == 1).astype(int),
    "seconds_since_last": lambda c: np.nan_to_num(c.gap, nan=-1).astype(int),
    "minutes_since_last": lambda c: [None if g != g else round(g / 60) for g in c.gap.tolist()],
    "hours_since_last": lambda c: [None if g != g else round(g / 3600, 2) for g in c.gap.tolist()],
    "wait": lambda c: ["" if g != g else f"{int(g // 3600)}h {int(g % 3600 // 60)}m" for g in c.gap.tolist()],
    "user_day": lambda c: c.texts("{}_{}", c.user, c.day),
    # what nobody's visits decide
    "battery": lambda c: _battery(c),
    "battery_1": lambda c: _battery(c, 1),
    "signal_bars": lambda c: c.some(5),
    "network": lambda c: np.where(c.draw.random(len(c)) < 0.2 + 0.02 * c.hour, "wifi", "4g"),
    "app_version": lambda c: c.texts("5.{}", _upgrade(c, 12)),
    "os_version": lambda c: 8 + _upgrade(c, 4),
    "gps_accuracy": lambda c: 5 + c.some(46),
    "experiment": lambda c: c.some(["a", "b", "c"]),
    "upload_batch": lambda c: np.argsort(np.argsort(c.table.time, kind="stable"), kind="stable") // 500,
    "shard": lambda c: c.some(32),
    "sync_delay_s": lambda c: np.minimum(99, np.round(np.exp(c.normal(1.5, 0.8)))).astype(int),
    "has_photo": lambda c: c.draw.random(len(c)) < 0.15,
    "survey": lambda c: c.missing(c.some([1, 2, 3, 4, 5]), 0.9),
    "orientation": lambda c: c.some(["portrait", "landscape"], [0.9, 0.1]),
    "charging": lambda c: (c.draw.random(len(c)) < np.where(c.hour < 7, 0.7, 0.15)).astype(int),
    "dark_mode": lambda c: (c.hour >= 19) ^ (c.draw.random(len(c)) < 0.1),
    "volume": lambda c: c.some(16),
    "steps_today": lambda c: np.round(c.numbers(c.user * 7 % 997 + c.day - c.day.min(), 200) * 100.0).astype(int),
    "uuid": lambda c: c.hexes(16),
    "free_text": lambda c: c.sentences(),
    "amount": lambda c: np.round(np.exp(c.normal(2.5, 0.8)), 2),
}  # fmt: skip
BY_POLICY = ("uuid", "free_text", "amount")  # refused, because nothing shows that they are harmless
