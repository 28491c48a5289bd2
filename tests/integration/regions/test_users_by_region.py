"""Pseudonyms and other times of a dataset that is protected region by region."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_city import called, sentence
from small_world import manifest, parts, rows

from ghostpoi.data.synthetic_files import write_city
from ghostpoi.regions import protect
from ghostpoi.release.identity import MAP

LOCAL, SHIFT = ("--engine", "local"), ("--times", "shift", "--pseudonyms", "session")
WORDS = ("--seed", 3**60, "--drop", "timezone_offset")
AUDIT = ("--victim", "markov", "--no-naturalness", "--adversaries", "none", "--seeds", 1, "--no-store", "--json",
         "--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2")  # fmt: skip


def protected(data: Path, folder: Path, *words: object) -> Path:
    done = called("protect", data, "-o", folder, *WORDS, *words)
    assert done.returncode == 0, done.stderr
    return folder


def failed(folder: Path, *words: object) -> dict[str, str]:
    done = called("verify", folder, *words, "--json")
    assert done.stdout, done.stderr
    return {one["check"]: one["detail"] for one in json.loads(done.stdout)["checks"] if not one["passed"]}


def table(folder: Path) -> pl.DataFrame:
    """All rows of a release, in order, with times as Unix seconds."""
    files = [path for path in sorted((folder / "checkins").rglob("*")) if path.is_file()]
    frame = pl.concat([pl.read_parquet(f) if f.suffix == ".parquet" else pl.read_csv(f) for f in files])
    if frame["utc_time"].dtype == pl.String:
        frame = frame.with_columns(pl.col("utc_time").str.to_datetime("%Y-%m-%dT%H:%M:%SZ"))
    return frame.with_columns(pl.col("utc_time").dt.epoch("s"), pl.col("user").cast(pl.String))


def known(folder: Path) -> dict[str, np.ndarray]:
    with np.load(f"{folder}.private/{MAP}") as found:
        return dict(found)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    folder = tmp_path_factory.mktemp("plain")
    return table(protected(parts(folder / "data", 7), folder / "release", *LOCAL))


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("words", [SHIFT, ("--times", "part-of-day"), ("--pseudonyms", "week")], ids=lambda w: w[1])
def test_rows_of_all_regions_stand_in_one_order(
    words: tuple[str, ...], ending: str, plain: pl.DataFrame, tmp_path: Path
) -> None:
    data = parts(tmp_path / "data", 7, ending=ending)
    made = protected(data, tmp_path / "release", *LOCAL, *words)
    shown, private = table(made), known(made)
    names = [path.name for path in sorted((made / "checkins").iterdir())]
    assert names == [f"part-{number:05}{ending}" for number in range(7)]
    key = list(zip(shown["utc_time"], shown["user"], strict=True))
    assert key == sorted(key)
    # Draws go by the clean user and time: the venues are those of a release that keeps both.
    venue = [name for name in ("venue_id", "category_id", "city") if name in shown.columns]
    assert shown.select(venue).equals(plain[private["shown"]].select(venue))
    clean = rows()["user"].cast(pl.String).gather(private["shown"])
    if "--pseudonyms" in words:
        behind = dict(zip(private["pseudonym"], private["user"], strict=True))
        assert [behind[one] for one in shown["user"]] == clean.to_list()
        assert not set(shown["user"]) & set(rows()["user"].cast(pl.String))
        assert manifest(made)["identity"]["ids"] == shown["user"].n_unique()
    else:
        assert shown["user"].equals(clean)
    assert manifest(made)["regions"]["count"] == 3
    assert failed(made) == failed(made, "--against", data, *LOCAL) == failed(made, "--against", data) == {}
    for more in (LOCAL, ()):
        done = called("audit", data, made, *AUDIT, *more)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["pseudonyms"] == (words[-1] if "--pseudonyms" in words else "keep")


def test_a_preset_that_leaves_rows_out(tmp_path: Path) -> None:
    data = parts(tmp_path / "data", 3)
    made = protected(data, tmp_path / "release", *LOCAL, "--for", "public", "--set", "hide.min_visitors=40")
    assert len(table(made)) == rows().height - manifest(made)["rows"]["withheld"]
    assert failed(made, "--against", data, *LOCAL) == {}
    done = called("audit", data, made, *AUDIT, *LOCAL)
    assert done.returncode == 0, done.stderr


def test_one_city_is_as_without_an_engine(tmp_path: Path) -> None:
    write_city(tmp_path / "city.csv", 40, 120, 60, 1)
    one = protected(tmp_path / "city.csv", tmp_path / "whole", *SHIFT)
    for name, more in (("memory", LOCAL), ("pieces", (*LOCAL, "--set", "regions.most_rows=1000"))):
        two = protected(tmp_path / "city.csv", tmp_path / name, *SHIFT, *more)
        if name == "memory":
            assert (one / "checkins.csv").read_bytes() == (two / "checkins.csv").read_bytes()
            assert manifest(one) == manifest(two)
        else:  # cut into regions, the same rows have the same ids and times
            first, second = (pl.read_csv(made / "checkins.csv") for made in (one, two))
            assert first.select("user", "utc_time").equals(second.select("user", "utc_time"))
        assert failed(two, "--against", tmp_path / "city.csv") == {}


def test_a_changed_order_a_changed_id_and_a_lost_map_are_found(tmp_path: Path) -> None:
    data = parts(tmp_path / "data", 3, ending=".csv")
    made = protected(data, tmp_path / "release", *LOCAL, *SHIFT)
    Path(f"{made}.private", MAP).rename(tmp_path / MAP)
    said = sentence(called("verify", made, "--against", data))
    assert "and " + f"{made}.private does not hold the private map that undoes them" in said
    shutil.copy(tmp_path / MAP, Path(f"{made}.private", MAP))
    changed = dict(known(made))
    changed["shown"][[0, -1]] = changed["shown"][[-1, 0]]
    np.savez(Path(f"{made}.private", MAP), **changed)
    assert set(failed(made, "--against", data)) == {"pseudonyms"}


def test_the_memory_that_ids_and_times_need_is_counted(tmp_path: Path) -> None:
    data = parts(tmp_path / "data", 3)
    words = ("protect", data, "-o", tmp_path / "r", *WORDS, *LOCAL, *SHIFT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protect, "MEMORY", 10**7)
        said = sentence(called(*words, "--memory", "2GB"))
    assert "other user ids and times are drawn over all rows, which needs" in said
    assert not (tmp_path / "r").exists()


def test_a_run_that_ends_while_rows_move_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = parts(tmp_path / "data", 3, ending=".csv")
    whole = protected(data, tmp_path / "whole", *LOCAL, *SHIFT)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(protect, "pack_by", full)
        said = sentence(called("protect", data, "-o", tmp_path / "r", *WORDS, *LOCAL, *SHIFT))
    assert said.endswith("free some space or choose other folders, then continue with --resume")
    assert not (tmp_path / "r").exists()
    assert table(protected(data, tmp_path / "r", *LOCAL, *SHIFT, "--resume")).equals(table(whole))
    assert {path.name for path in Path(f"{tmp_path / 'r'}.private").iterdir()} == {
        path.name for path in Path(f"{whole}.private").iterdir()
    }
