"""Finding columns and parsing times."""

import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_city import called, sentence

from ghostpoi.data.checkins import FIELDS
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.formats.fields import find_columns
from ghostpoi.formats.times import TIMEZONE, parse_times

MASSIVE_STEPS = (
    "trail_id,user_id,venue_id,latitude,longitude,name,address,venue_category,venue_category_id,venue_category_id_code,"
    "venue_city,venue_city_latitude,venue_city_longitude,venue_country,timestamp"
)
GETNEXT = (
    "user_id,POI_id,POI_catid,POI_catid_code,POI_catname,latitude,longitude,timezone,UTC_time,local_time,day_of_week,"
    "norm_in_day_time,trajectory_id,norm_day_shift,norm_relative_time"
)
RECBOLE = "user_id:token,venue_id:token,venue_category_id:token,venue_category:token,timezone_offset:float"


def columns(text: str, **given: str) -> list[str]:
    """The column found for each field, in the order of FIELDS."""
    found = find_columns(Source(Path("x.csv, line 1")), text.split(","), given)
    assert set(found) - {TIMEZONE} == set(FIELDS)
    return [found[field] for field in FIELDS]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("uid,datetime,lat,lng,location_id,category", "uid location_id category lat lng datetime"),
        (MASSIVE_STEPS, "user_id venue_id venue_category_id latitude longitude timestamp"),
        (GETNEXT, "user_id POI_id POI_catid latitude longitude UTC_time"),
        (
            RECBOLE + ",latitude:float,longitude:float,timestamp:float",
            "user_id:token venue_id:token venue_category_id:token latitude:float longitude:float timestamp:float",
        ),
        (
            "userId,venueId,venueCategoryId,venueCategory,latitude,longitude,timezoneOffset,utcTimestamp",
            "userId venueId venueCategoryId latitude longitude utcTimestamp",
        ),
        ("user,poi,category,lat,lon,t", "user poi category lat lon t"),
        ("user,place,cat,lat,long,ts", "user place cat lat long ts"),
        (
            "User ID,Location,Category Name,Latitude,Longitude,Time",
            "User ID|Location|Category Name|Latitude|Longitude|Time",
        ),
        ("user_id,business_id,category,lat,lon,timestamp,stars", "user_id business_id category lat lon timestamp"),
        ("user,venue,category_id,category,lat,lon,time_zone,time", "user venue category_id lat lon time"),
        ("user,venue,category_name,category_id,lat,lon,tz,datetime", "user venue category_id lat lon datetime"),
        (",user,venue,category,lat,lon,local_time,utc_time", "user venue category lat lon utc_time"),
        ("user,user_id,poi,poi_id,category,lat,lon,time", "user_id poi_id category lat lon time"),
    ],
)
def test_columns_are_found_by_the_names_people_use(header: str, expected: str) -> None:
    assert columns(header) == expected.split("|" if "|" in expected else " ")


@pytest.mark.parametrize("zone", ["timezone", "time_zone", "tz", "timezone_offset", "Timezone Offset", "utc_offset"])
def test_a_time_zone_is_never_taken_for_the_time(zone: str) -> None:
    with pytest.raises(InputError, match="no column looks like the time"):
        columns(f"user,poi,category,lat,lon,{zone}")


@pytest.mark.parametrize(
    ("header", "field", "both"),
    [
        ("user,poi_id,venue_id,category,lat,lon,time", "poi", "'poi_id' and 'venue_id'"),
        ("user,poi,category,lat,lon,timestamp,datetime", "time", "'timestamp' and 'datetime'"),
        ("uid,user_id,poi,category,lat,lon,time", "user", "'uid' and 'user_id'"),
        ("user,poi,category,lat,latitude,lon,time", "lat", "'lat' and 'latitude'"),
    ],
)
def test_where_two_columns_could_serve_the_message_names_both_and_the_flag(header: str, field: str, both: str) -> None:
    with pytest.raises(InputError) as error:
        columns(header)
    first, called = both.split("'")[1], {"poi": "venue", "lat": "latitude"}.get(field, field)
    assert str(error.value) == (
        f"x.csv, line 1: columns {both} could both be the {called}; choose one with --map {field}={first}"
    )
    chosen = both.split("'")[3]
    assert chosen in columns(header, **{field: chosen})


def test_a_mapped_column_serves_no_other_field() -> None:
    assert columns("user,poi,venue,category,lat,lon,time", poi="poi") == [
        "user",
        "poi",
        "category",
        "lat",
        "lon",
        "time",
    ]
    with pytest.raises(InputError, match="no column looks like the latitude") as error:
        columns("user,poi,category,lat,lon,time", poi="lat")
    assert str(error.value).endswith(
        "; name it with --map lat=COLUMN, name a column of WKT or WKB points with --map point=COLUMN, or give a table "
        "of venues with --venues"
    )


def test_a_file_may_have_no_category() -> None:
    assert "category" not in find_columns(Source(Path("x")), ["user", "poi", "mood", "lat", "lon", "time"], {})


@pytest.mark.parametrize(
    ("given_map", "message"),
    [
        (
            {"venue": "poi"},
            "--map venue=poi: there is no field 'venue'; fields are user, poi, category, lat, lon, time",
        ),
        ({"poi": "pio"}, "--map poi=pio: x.csv, line 1 has no column 'pio'; did you mean 'poi'?"),
        ({"poi": "zzz"}, "has no column 'zzz'; its columns are user, poi, category, lat, lon, time"),
    ],
)
def test_a_wrong_map_says_what_there_is(given_map: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as error:
        columns("user,poi,category,lat,lon,time", **given_map)
    assert message in str(error.value)


def test_a_long_header_does_not_flood_the_message() -> None:
    with pytest.raises(InputError) as error:
        columns(",".join(f"{'x' * 500}{i}" for i in range(1000)))
    assert len(str(error.value)) < 1200
    assert "and 980 more" in str(error.value)


def seconds(*values: Any, dtype: Any = None) -> list[int | None]:
    return parse_times(pl.Series(values, dtype=dtype)).to_list()


AT = 1_333_476_009  # 2012-04-03 18:00:09 UTC


@pytest.mark.parametrize(
    "text",
    [
        "Tue Apr 03 18:00:09 +0000 2012",
        "Tue Apr 03 14:00:09 -0400 2012",
        "2012-04-03T18:00:09Z",
        "2012-04-03t18:00:09z",
        "2012-04-03 18:00:09",
        "2012-04-03T18:00:09.999",
        "2012-04-03T20:00:09+02:00",
        "2012-04-03 20:00:09+0200",
        "2012-04-03 20:00:09+02",
        "2012-04-03 20:00:09 +0200",
        "2012-04-03 18:00:09 UTC",
        "2012-04-03T12:30:09.5-05:30",
        "  2012-04-03 18:00:09 ",
        "1333476009",
        "1333476009.7",
        "1333476009000",
        " 1333476009 ",
    ],
)
def test_every_form_of_one_moment(text: str) -> None:
    assert seconds(text) == [AT]


def test_minutes_and_days() -> None:
    assert seconds("2012-04-03T18:00", "2012-04-03 18:00Z", "2012-04-03 20:00+02:00", "2012-04-03") == [
        AT - 9, AT - 9, AT - 9, AT - 9 - 18 * 3600
    ]  # fmt: skip


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.Float64, pl.String])
def test_unix_times_of_any_unit_and_type(unit: int, dtype: Any) -> None:
    values = [AT * unit, (AT + 86_400) * unit]
    column = pl.Series([str(v) for v in values] if dtype == pl.String else values, dtype=dtype)
    assert parse_times(column).to_list() == [AT, AT + 86_400]


def test_unix_times_before_1970_round_down() -> None:
    assert seconds(-1.5, -1.0, 0.0, 0.9) == [-2, -1, 0, 0]
    assert seconds(-1_000_000_000_500) == [-1_000_000_001]
    assert seconds("1969-12-31T23:59:58.5Z") == [-2]


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2012-02-30 10:00:00", "2012-13-01", "18:00:09", "2012-04-03 25:00:00", "nan", "inf", "1e400",
     "Wed Apr 03 18:00:09 +0000 2012", "03/04/2012 18:00", "2012-04-03 18:00:09 +02:00x", "2012-04-03 18:00:09 CEST"],
)  # fmt: skip
def test_what_cannot_be_read_is_null_and_only_that(text: str) -> None:
    assert seconds(text) == [None]
    assert seconds("2012-04-03 18:00:09", text, "2012-04-03 18:00:10") == [AT, None, AT + 1]


def test_pieces_side_by_side_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = ["Tue Apr 03 18:00:{:02d} +0000 2012", "2012-04-03T18:00:{:02d}Z", "2012-04-03 20:00:{:02d}+02:00"]
    texts = [forms[0 if i < 20 else i % 3].format(i) for i in range(60)]
    column = pl.Series("time", [*texts, None, "never"])
    began = 1_333_476_000  # 2012-04-03 18:00:00 UTC
    monkeypatch.setattr("ghostpoi.formats.times.MIN_PIECE", 7)
    monkeypatch.setattr(pl, "thread_pool_size", lambda: 5)
    assert parse_times(column).to_list() == [*range(began, began + 60), None, None]
    assert parse_times(column.head(0)).to_list() == []


def test_numbers_that_no_calendar_holds_are_null() -> None:
    assert seconds(AT, AT, 10**15) == [AT, AT, None]
    assert seconds(float(AT), float("nan"), float("inf"), None) == [AT, None, None, None]
    assert seconds(AT, AT, 2**64 - 1, dtype=pl.UInt64) == [AT, AT, None]


offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1902, 1, 1), datetime(2100, 1, 1), timezones=st.one_of(st.just(UTC), offsets))


def written(moment: datetime, form: int) -> str:
    offset = moment.strftime("%z")
    return [
        moment.strftime("%a %b %d %H:%M:%S %z %Y"),
        moment.isoformat(),
        moment.isoformat(" "),
        moment.replace(microsecond=0).isoformat(),
        moment.strftime("%Y-%m-%dT%H:%M:%S") + offset,
        moment.strftime("%Y-%m-%d %H:%M:%S.%f") + f"{offset[:3]}:{offset[3:]}",
        moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"),
        moment.astimezone(UTC).replace(tzinfo=None).isoformat(),
    ][form]


@given(st.lists(st.tuples(moments, st.integers(0, 8)), min_size=1, max_size=8))
def test_times_agree_with_python_in_any_mix_of_forms_and_offsets(cases: list[tuple[datetime, int]]) -> None:
    expected = [math.floor(moment.replace(microsecond=0).timestamp()) for moment, _ in cases]
    assert seconds(*(written(moment, form) for moment, form in cases)) == expected


@given(
    st.lists(moments, min_size=1, max_size=5),
    st.sampled_from(["ms", "us", "ns"]),
    st.sampled_from([None, "UTC", "Asia/Tokyo"]),
)
def test_timestamps_of_any_unit_and_zone(cases: list[datetime], unit: Any, zone: str | None) -> None:
    column = pl.Series([m.astimezone(UTC).replace(tzinfo=None) for m in cases], dtype=pl.Datetime(unit))
    if zone:
        column = column.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    assert parse_times(column).to_list() == [math.floor(m.replace(microsecond=0).timestamp()) for m in cases]


def test_what_else_may_help_a_file_without_a_field(tmp_path: Path) -> None:
    text, lines = tmp_path / "x.csv", tmp_path / "x.jsonl"
    text.write_text("user,lat,lon,time\n1,2,3,4\n")
    lines.write_text('{"user": 1, "lat": 2, "lon": 3, "time": 4}\n')
    common = (
        "no column looks like the venue among user, lat, lon, time; name it with --map poi=COLUMN, {}make venues of "
        "raw points with --cluster-points 100m"
    )
    assert sentence(called("inspect", lines)) == f"{lines}: {common.format('or ')}"
    assert sentence(called("inspect", text)) == (
        f"{text}, line 1: {common.format('')}, or if the file has no header line, name all columns with --columns"
    )
