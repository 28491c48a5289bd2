"""The tools that exports and releases are for load them."""

import shutil
from pathlib import Path

import pytest
import raw_points
import venue_pairs
import written_as
from city_exports import PARTS, exported, release, rows, steps, visits
from real_tools import load

from ghostpoi import formats

RECBOLE = """
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
config = Config("GRU4Rec", "city", ["city/city.yaml"], {"data_path": ".", "use_gpu": False})
dataset = create_dataset(config)
training, validation, test = data_preparation(config, dataset)
print(dataset.user_num - 1, dataset.item_num - 1, len(training.dataset), len(test.dataset))
"""


@pytest.mark.parametrize("private", [False, True])
def test_recbole_loads_an_export(private: bool) -> None:
    folder = exported(release(), private)
    users, items, training, test = map(int, load("recbole", RECBOLE, folder=folder.parent)[-4:])
    if private:
        assert (training, test) == (len(steps(folder, "train")), len(steps(folder, "test")))
        assert items == len({venue for part in PARTS[:3] for s in steps(folder, part) for venue in (*s[1], s[2])})
    else:
        assert users == len({row[0] for row in rows(folder / "city.inter")})
        assert items == len({row[1] for row in rows(folder / "city.inter")})


RECBOLE_FILES = """
from recbole.config import Config
from recbole.data import create_dataset
settings = {"data_path": "..", "use_gpu": False, "USER_ID_FIELD": "user_id", "ITEM_ID_FIELD": "item_id",
    "TIME_FIELD": "timestamp", "load_col": {"inter": ["user_id", "item_id", "timestamp"],
    "item": ["item_id", "latitude", "longitude"]}, "train_neg_sample_args": None}
dataset = create_dataset(Config("GRU4Rec", "city", [], settings))
print(dataset.user_num - 1, dataset.inter_num, len(dataset.item_feat) - 1)
"""


def test_recbole_loads_a_release(tmp_path: Path) -> None:
    folder, clean = shutil.copytree(venue_pairs.released("recbole").folder, tmp_path / "city"), written_as.visits()
    users, found, items = map(int, load("recbole", RECBOLE_FILES, folder=folder)[-3:])
    assert (users, found, items) == (len({v.user for v in clean}), len(clean), len(venue_pairs.venues()))


SKMOB = """
import pandas, skmob
from skmob.measures.individual import jump_lengths
ids = {"uid": str, "location_id": str, "category": str}
rows = pandas.read_csv("city/city.csv", dtype=ids, keep_default_na=False)
trajectories = skmob.TrajDataFrame(rows)
assert str(trajectories["datetime"].dtype).startswith("datetime64")
print(len(trajectories), trajectories["uid"].nunique(), trajectories["location_id"].nunique())
print(len(jump_lengths(trajectories, show_progress=False)))
"""


def test_scikit_mobility_loads_an_export() -> None:
    folder = exported(release(), private=False, to="skmob")
    t = formats.read(release().data).table
    found = load("skmob", SKMOB, folder=folder.parent)
    assert [*map(int, found)] == [len(t), len(t.user_ids), len(t.venue_ids) - 1, len(t.user_ids)]


SKMOB_FILES = """
import sys, pandas, skmob
rows = pandas.read_csv(sys.argv[1], parse_dates=["datetime"])
found = skmob.TrajDataFrame(rows, latitude="lat", longitude="lng", datetime="datetime", user_id="uid")
print(len(found), found["uid"].nunique())
"""


def test_scikit_mobility_loads_a_release() -> None:
    made = raw_points.released()
    found = load("skmob", SKMOB_FILES, made.data.name, folder=made.folder)
    users = [line.split(",")[0] for line in made.data.read_text().splitlines()[1:]]
    assert found[-2:] == [str(len(users)), str(len(set(users)))]


DATASETS = """
import tempfile
from datasets import get_dataset_config_names, load_dataset
with tempfile.TemporaryDirectory() as cache:
    for name in get_dataset_config_names("./city"):
        for split, rows in load_dataset("./city", name, cache_dir=cache).items():
            print(name, split, len(rows), sum(row["time"].timestamp() for row in rows))
"""


@pytest.mark.parametrize("private", [False, True])
def test_datasets_loads_an_export(private: bool) -> None:
    folder = exported(release(), private, to="hf")
    files = {
        ("default", "train"): "train" if private else "released",
        **({("clean", "train"): "clean", ("released", "train"): "released"} if private else {}),
        **{(c, s): f for c in ("default", "clean") * private for s, f in (("validation", "valid"), ("test", "test"))},
    }
    words = load("datasets", DATASETS, folder=folder.parent)
    found = {(words[k], words[k + 1]): (int(words[k + 2]), float(words[k + 3])) for k in range(0, len(words), 4)}
    of_file = {key: visits("hf", folder, f"{file}.parquet") for key, file in files.items()}
    assert found == {key: (len(r), float(sum(time for *_, time in r))) for key, r in of_file.items()}
