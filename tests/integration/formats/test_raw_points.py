"""Files of raw points without venue ids: --cluster-points."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from raw_points import HEAD, WORDS, raw, released
from small_city import called, protect, scratch, sentence

from ghostpoi import formats
from ghostpoi.data.checkins import Checkins
from ghostpoi.formats import Reading
from ghostpoi.formats.build import MIN_STAYS, venue_positions


def points(path: Path) -> list[tuple[str, str]]:
    return [(lat, lon) for _, _, lat, lon in (line.split(",") for line in path.read_text().splitlines()[1:])]


def test_without_the_flag_one_sentence_names_it() -> None:
    said = sentence(called("inspect", raw()))
    assert said.startswith(
        f"{raw()}, line 1: no column looks like the venue among uid, datetime, lat, lng; name it with"
    )
    assert ", make venues of raw points with --cluster-points 100m, or" in said


def test_no_raw_point_is_released() -> None:
    made = released()
    clean, out = points(raw()), points(made.data)
    numbers = [{tuple(map(float, point)) for point in one} for one in (clean, out)]
    assert numbers[0].isdisjoint(numbers[1])
    rows = made.manifest["rows"]
    assert f"warning: {rows['missing']['dropped']} rows that lack a value or lie in no cluster (" in made.done.stderr
    assert "rows lack a value or lie in no cluster (" in called("inspect", raw(), *WORDS).stdout
    assert len(out) == len(clean) - rows["missing"]["dropped"]
    assert made.data.read_text().startswith(HEAD)
    assert made.manifest["columns"]["changed_with_the_venue"] == ["lat", "lng"]
    assert made.manifest["data"]["reading"] == {"missing": "drop", "cluster_points": "150m"}
    file = formats.read(formats.Source(raw(), Reading(cluster_points="150m", missing="drop")))
    assert rows["missing"]["dropped"] == len(file.missing) < len(clean) / 3
    assert {f"{float(a):.4f} {float(b):.4f}" for a, b in out} <= set(file.table.venue_ids)
    assert made.manifest["plausibility"]["substitution_rate"] > 0.5


def test_the_release_can_be_verified_audited_reported_and_exported(tmp_path: Path) -> None:
    for name in ("raw-release", "raw-release.private"):
        shutil.copytree(scratch() / name if released() else tmp_path, tmp_path / name)
    folder = tmp_path / "raw-release"
    for words in ([], WORDS):
        done = called("verify", folder, "--against", raw(), *words)
        assert done.returncode == 0, done.stdout
    split = ["--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2", "--leak", "0.3"]
    quick = ["--victim", "markov", "--no-naturalness", "--seeds", "1", "--adversaries", "none"]
    done = called("audit", raw(), folder, *quick, *split)
    assert done.returncode == 0, done.stderr
    assert called("report", folder).returncode == 0
    assert called("export", folder, "--to", "skmob", "-o", tmp_path / "x").returncode == 0


def checkins_of(user: np.ndarray, lat: np.ndarray, lon: np.ndarray, time: np.ndarray) -> Checkins:
    nothing, names = np.zeros(len(user), np.int32), np.array(["", ""], object)
    users = user.astype(np.int32)
    return Checkins(users, nothing + 1, nothing, lat, lon, time, np.unique(user).astype(object), names, names[:1], "")


def test_stays_on_the_way_are_no_venues() -> None:
    """Five people stay at each of two places, an hour each; between them, a point every minute."""
    rows = []
    for user in range(MIN_STAYS):
        for place, start in ((40.0, 0), (40.02, 5000)):
            rows += [(user, place + 1e-5 * (user + 1), -74.0, start + 60 * k) for k in range(60)]
        rows += [(user, 40.001 + 0.001 * k, -74.0, 3600 + 60 * k) for k in range(18)]
    user, lat, lon, time = (np.array(column) for column in zip(*rows, strict=True))
    table = checkins_of(user=user, lat=lat, lon=lon, time=time)
    found, _ = venue_positions(table, 100)
    moving = (lat > 40.0005) & (lat < 40.0195)
    assert np.isnan(found[moving]).all()
    assert set(found[~moving]) == {40.0, 40.02}


def test_where_few_people_stay_is_no_venue() -> None:
    """Everybody stays at home seven times, and all stay at one place. Two share a home, three another."""
    home = [0, 0, 1, 1, 1, 2, 3]
    rows = [
        (user, 40 + 0.05 * home[user], -74.0, 86_400 * day + 3000 * k)
        for user in range(7)
        for day in range(7)
        for k in (0, 1)
    ]
    rows += [
        (user, 41.0, -74.0, 86_400 * day + 40_000 + 3000 * k) for user in range(7) for day in range(7) for k in (0, 1)
    ]
    user, lat, lon, time = (np.array(column) for column in zip(*rows, strict=True))
    found, _ = venue_positions(checkins_of(user=user, lat=lat, lon=lon, time=time), 100)
    known = ~np.isnan(found)
    assert set(np.round(lat[known], 2)) == {40.05, 41.0}
    assert known[(np.round(lat, 2) == 40.05) | (lat == 41.0)].all()


def test_a_wide_cluster_is_cut_into_squares() -> None:
    draw = np.random.default_rng(0)
    lat, lon = 40 + draw.random(4000) / 100, -74 + draw.random(4000) / 100  # about 1.1 km by 0.85 km, without a gap
    table = checkins_of(user=np.arange(4000), lat=lat, lon=lon, time=np.arange(4000))
    found = np.stack(venue_positions(table, 100), axis=1)
    assert 25 <= len(np.unique(found, axis=0)) <= 48
    apart = 111_000 * np.hypot(found[:, 0] - lat, (found[:, 1] - lon) * np.cos(np.radians(40)))
    assert apart.max() < 300
    taken = set(zip(lat.tolist(), lon.tolist(), strict=True))
    assert taken.isdisjoint(map(tuple, found.tolist()))


def test_a_venue_moves_aside_for_a_raw_point() -> None:
    table = checkins_of(
        user=np.arange(9), lat=np.full(9, 40.5), lon=np.full(9, -73.5), time=np.arange(9)
    )  # fmt: skip
    lat, lon = venue_positions(table, 100)
    assert (lat[0], lon[0]) != (40.5, -73.5)
    assert (abs(lat - 40.5) < 2e-4).all()
    assert (abs(lon + 73.5) < 2e-4).all()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--cluster-points", "100"], "--cluster-points 100: give a distance from 1m to 5km, e.g. 100m"),
        (["--cluster-points", "9km"], "--cluster-points 9km: give a distance from 1m to 5km, e.g. 100m"),
        (["--cluster-points", "100m", "--missing", "keep"], "--missing keep would release raw points, which"),
        (["--cluster-points", "100m", "--venues", "x"], "--cluster-points makes venues, and --venues lists them"),
        (["--cluster-points", "1m", "--missing", "drop"], "RAW: "),
    ],
)
def test_what_cannot_be(words: list[str], says: str, tmp_path: Path) -> None:
    said = sentence(called("protect", raw(), "-o", tmp_path / "r", *words))
    assert said.startswith(says.replace("RAW", str(raw())))
    assert not list(tmp_path.iterdir())


def test_points_outside_clusters_are_dropped_on_request_only() -> None:
    said = sentence(called("inspect", raw(), "--cluster-points", "150m"))
    assert said.startswith(f"{raw()}: ")
    assert " points lie where nobody stays: in no cluster of 5 stays of 3 people within 150m (lines " in said
    assert said.endswith("; widen --cluster-points, or leave them out with --missing drop")


def test_venue_ids_make_it_useless(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("uid,datetime,lat,lng,location_id\n1,2012-01-01 00:00:00,1,2,p\n")
    said = sentence(called("inspect", path, *WORDS))
    assert said == f"{path}, line 1: the column 'location_id' holds venue ids; leave --cluster-points out"


def test_other_columns_of_points_are_refused(tmp_path: Path) -> None:
    draw = random.Random(1)
    path = tmp_path / "x.csv"
    head, *lines = raw().read_text().splitlines()
    path.write_text("\n".join([f"{head},altitude", *(f"{line},{draw.random() * 99}" for line in lines)]) + "\n")
    said = sentence(called("protect", path, "-o", tmp_path / "r", *WORDS))
    assert "the column 'altitude'" in said


def test_other_formats_of_points(tmp_path: Path) -> None:
    lines = [line.split(",") for line in raw().read_text().splitlines()[1:]]
    geo = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [float(lon), float(lat)]},
         "properties": {"uid": u, "datetime": t}}
        for u, t, lat, lon in lines
    ]  # fmt: skip
    (tmp_path / "x.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": geo}))
    wkt = "".join(f"{u};{t};POINT ({lon} {lat})\n" for u, t, lat, lon in lines)
    (tmp_path / "x.csv").write_text("uid;datetime;where\n" + wkt)
    commas = "".join(f"{u};{t};{lat.replace('.', ',')};{lon.replace('.', ',')}\n" for u, t, lat, lon in lines)
    (tmp_path / "y.csv").write_text(HEAD.replace(",", ";") + commas)
    found = []
    for name, more in (("x.geojson", []), ("x.csv", ["--map", "point=where"]), ("y.csv", ["--decimal", ","])):
        made = protect(tmp_path / name, tmp_path / f"{name}.r", *WORDS, *more, "--seed", 1 << 70)
        done = called("verify", made.folder, "--against", tmp_path / name, *more)
        assert done.returncode == 0, done.stdout
        found.append(made.data.read_text())
    pairs = [
        (p["geometry"]["coordinates"][1], p["geometry"]["coordinates"][0]) for p in json.loads(found[0])["features"]
    ]
    assert [f"POINT ({lon} {lat})" for lat, lon in pairs] == [line.split(";")[2] for line in found[1].splitlines()[1:]]
    assert [f"{lat};{lon}".replace(".", ",") for lat, lon in pairs] == [
        line.split(";", 2)[2] for line in found[2].splitlines()[1:]
    ]


def test_without_scikit_learn_one_sentence_names_the_extra() -> None:
    code = "import sys; sys.modules['sklearn'] = None; sys.modules['sklearn.cluster'] = None; "
    code += "sys.argv = ['ghostpoi', *sys.argv[1:]]; from ghostpoi.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "inspect", str(raw()), *WORDS], capture_output=True, text=True
    )  # fmt: skip
    said = f"ghostpoi: --cluster-points needs scikit-learn; install it with pip install '{ROOT}[cluster]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
