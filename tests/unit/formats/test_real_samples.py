"""A few rows in the form in which each kind of file is really published: read, and read right."""

import bz2
import io
import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from small_city import called

LOOSE = [
    word for name in ("min_poi_checkins", "min_user_checkins", "min_session_length")
    for word in ("--set", f"filters.{name}=1")
]  # fmt: skip
GOWALLA = """0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847
0\t2010-10-18T22:17:43Z\t30.2691029532\t-97.7493953705\t420315
0\t2010-10-17T23:42:03Z\t30.2557309927\t-97.7633857727\t316637
"""
BRIGHTKITE = """0\t2010-10-17T01:48:53Z\t39.747652\t-104.99251\t88c46bf20db295831bd2d1718ad7e6f5
0\t2010-10-16T06:02:04Z\t39.891383\t-105.070814\t7a0f88982aa015062b95e3b4843f9ca2
0\t2010-10-16T03:48:54Z\t39.891077\t-105.068532\tdd7cd3d264c2d063832db506fba8bf79
"""
DYNA = """dyna_id,type,time,entity_id,location
0,trajectory,2012-04-03T18:00:06Z,0,0
1,trajectory,2012-04-03T19:11:42Z,0,1
2,trajectory,2012-04-04T02:10:00Z,1,0
"""
GEO = """geo_id,type,coordinates,venue_category_id,venue_category_name
0,Point,"[-74.003166,40.719810]",4bf58dd8d48988d127951735,Arts & Crafts Store
1,Point,"[-74.042515,40.606800]",4bf58dd8d48988d1df941735,Bridge
"""
INTER = """user_id:token\titem_id:token\ttimestamp:float
470\t49bbd6c0f964a520f4531fe3\t1333476009.0
979\t4a43c0aef964a520c6a61fe3\t1333476025.0
470\t4a43c0aef964a520c6a61fe3\t1333486025.0
"""
ITEM = """item_id:token\tlatitude:float\tlongitude:float\tvenue_category_name:token_seq
49bbd6c0f964a520f4531fe3\t40.719810\t-74.002581\tArts & Crafts Store
4a43c0aef964a520c6a61fe3\t40.606800\t-74.044170\tBridge
"""
TIST = """50756\t4f5e3a72e4b053fd6a4313f6\tTue Apr 03 18:00:06 +0000 2012\t240
190571\t4b4b87b5f964a5204a9f26e3\tTue Apr 03 18:00:07 +0000 2012\t180
50756\t4b4b87b5f964a5204a9f26e3\tTue Apr 03 20:00:07 +0000 2012\t180
"""
TIST_POIS = """4f5e3a72e4b053fd6a4313f6\t55.696132\t37.557842\tTrain Station\tRU
4b4b87b5f964a5204a9f26e3\t41.029717\t28.974420\tCafé\tTR
"""
SKMOB = "lat,lng,datetime,uid\n" + "".join(
    f"39.984094,116.319236,2008-10-{day} 05:53:05,{who}\n39.984198,116.319322,2008-10-{day} 05:53:06,{who}\n"
    f"39.984224,116.319402,2008-10-{day} 05:53:11,{who}\n"
    for day, who in zip(range(21, 26), (1, 1, 2, 3, 3), strict=True)
)
TABLE = [
    ["user_id", "venue_id", "category", "latitude", "longitude", "time"],
    ["470", "49bbd6c0f964a520f4531fe3", "Shop", "40.71981", "-74.002581", "2012-04-03 18:00:09"],
    ["979", "4a43c0aef964a520c6a61fe3", "Bridge", "40.6068", "-74.04417", "2012-04-03 18:00:25"],
    ["470", "4a43c0aef964a520c6a61fe3", "Bridge", "40.6068", "-74.04417", "2012-04-03 20:00:25"],
]
CSV = "".join(",".join(row) + "\n" for row in TABLE)
US = (
    CSV.replace("2012-04-03 18", "04/03/2012 06").replace("2012-04-03 20", "04/03/2012 08").replace(":09\n", ":09 PM\n")
)
US = US.replace(":25\n", ":25 PM\n")
RECORDS = [dict(zip(TABLE[0], row, strict=True)) for row in TABLE[1:]]
FEATURES = [
    {"type": "Feature", "geometry": {"type": "Point", "coordinates": [float(r["longitude"]), float(r["latitude"])]},
     "properties": {name: r[name] for name in ("user_id", "venue_id", "category", "time")}}
    for r in RECORDS
]  # fmt: skip


def xlsx() -> bytes:
    book, out = openpyxl.Workbook(), io.BytesIO()
    assert book.active is not None
    for row in TABLE:
        book.active.append(row)
    book.save(out)
    return out.getvalue()


def zipped(content: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("checkins.csv", content)
    return out.getvalue()


@dataclass(frozen=True)
class Sample:
    name: str
    content: str | bytes
    words: tuple[str, ...] = ()
    counts: tuple[int, int, int] = (3, 2, 2)  # check-ins, users, venues
    first: str = "2012-04-03T18:00:09Z"
    format: str = "table"
    beside: dict[str, str] = field(default_factory=dict)


SAMPLES = {
    "SNAP Gowalla": Sample("g.txt", GOWALLA, (), (3, 1, 3), "2010-10-17T23:42:03Z", "snap"),
    "SNAP Brightkite": Sample("b.txt", BRIGHTKITE, (), (3, 1, 3), "2010-10-16T03:48:54Z", "snap"),
    "LibCity": Sample(
        "c.dyna", DYNA, ("--venues", "c.geo"), first="2012-04-03T18:00:06Z",
        beside={"c.geo": GEO, "c.usr": "usr_id\n0\n1\n"},
    ),
    "RecBole": Sample("c.inter", INTER, ("--venues", "c.item"), beside={"c.item": ITEM}),
    "Foursquare TIST2015": Sample(
        "dataset_TIST2015_Checkins.txt", TIST,
        ("--venues", "dataset_TIST2015_POIs.txt", "--columns", "user,poi,time,timezone"),
        first="2012-04-03T18:00:06Z", beside={"dataset_TIST2015_POIs.txt": TIST_POIS},
    ),
    "scikit-mobility without ids": Sample(
        "geolife.csv", SKMOB, ("--cluster-points", "200m"), (15, 3, 1), "2008-10-21T05:53:05Z"
    ),
    "no category": Sample("x.csv", CSV.replace(",category", ",note")),
    "decimal commas": Sample(
        "x.csv", CSV.replace(",", ";").replace("40.", "40,").replace("-74.", "-74,"), ("--decimal", ",")
    ),
    "day/month dates": Sample(
        "x.csv", CSV.replace("2012-04-03", "03/04/2012"), ("--time-format", "%d/%m/%Y %H:%M:%S")
    ),
    "US dates": Sample("x.csv", US, ("--time-format", "%m/%d/%Y %I:%M:%S %p")),
    "date and time columns": Sample(
        "x.csv", CSV.replace("time\n", "day,time\n").replace("2012-04-03 ", "2012-04-03,"), ("--map", "date=day")
    ),
    "zone names": Sample("x.csv", CSV, ("--timezone", "America/New_York"), first="2012-04-03T22:00:09Z"),
    "JSON lines": Sample("x.jsonl", "".join(json.dumps(r) + "\n" for r in RECORDS), format="json"),
    "GeoJSON": Sample(
        "x.geojson", json.dumps({"type": "FeatureCollection", "features": FEATURES}), format="geojson"
    ),
    "WKT points": Sample(
        "x.csv",
        "user_id;venue_id;wkt;time\n" + "".join(f"{r[0]};{r[1]};POINT ({r[4]} {r[3]});{r[5]}\n" for r in TABLE[1:]),
        ("--map", "point=wkt"),
    ),
    "zip": Sample("x.zip", zipped(CSV)),
    "bz2": Sample("x.csv.bz2", bz2.compress(CSV.encode())),
    "xlsx": Sample("x.xlsx", xlsx(), format="excel"),
    "a missing value": Sample(
        "x.csv", CSV + "470,,Bridge,40.6,-74.0,2012-04-03 21:00:25\n", ("--missing", "drop")
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_sample_is_read(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = SAMPLES[kind]
    monkeypatch.chdir(tmp_path)
    for name, content in {sample.name: sample.content, **sample.beside}.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    done = called("inspect", sample.name, *sample.words, *LOOSE, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["checkins"], found["users"], found["pois"]) == sample.counts
    assert (found["format"], found["time"]["first"]) == (sample.format, sample.first)


def test_a_pipe_on_standard_input() -> None:
    words = [sys.executable, "-m", "ghostpoi", "inspect", "-", *LOOSE, "--json"]
    done = subprocess.run(words, input=CSV, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["checkins"] == 3
