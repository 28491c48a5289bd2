"""Venue ids that hold the time of creation name the clean venue of a check-in made at once."""

import csv
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from small_city import SEED, called, city, protect

from ghostpoi.data.places import is_hidden
from ghostpoi.settings import HideSettings

ROOT = Path(__file__).parents[3]
TIME = "%a %b %d %H:%M:%S %z %Y"
WARNING = "warning: venue ids contain the time at which each venue was created"


def lines(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="latin-1") as file:
        return list(csv.reader(file, delimiter="\t"))


def dated(folder: Path, prefix: str = "") -> tuple[Path, set[str], int]:
    """Write the city with new venue ids; return also those created in its period, and the rows that this names.

    Every fourth venue was created ten seconds before its first visit, the others in 2009.
    """
    rows = lines(city())
    first, homes = dict[str, int](), {row[1] for row in rows if is_hidden(row[2:4], HideSettings())}
    for row in rows:
        time = int(datetime.strptime(row[-1], TIME).timestamp())
        first[row[1]] = min(time, first.get(row[1], time))
    made = {one: at - 10 if n % 4 == 0 else 1_240_000_000 + n for n, (one, at) in enumerate(sorted(first.items()))}
    ids = {one: f"{prefix}{at:08x}f964a520{n:08x}" for n, (one, at) in enumerate(made.items())}
    named = 0
    for row in rows:
        after = datetime.strptime(row[-1], TIME).timestamp() - made[row[1]]
        named += after <= 60 and row[1] not in homes
        row[1] = ids[row[1]]
    path = folder / "city.txt"
    path.write_text("".join("\t".join(row) + "\n" for row in rows), "latin-1")
    return path, {ids[one] for one, at in made.items() if at > 1_300_000_000}, named


def venues(path: Path) -> set[str]:
    return {row[1] for row in lines(path)}


@pytest.mark.parametrize(
    ("more", "warns"), [((), True), (("--times", "minute"), True), (("--times", "hour"), False)]
)  # fmt: skip
def test_protect_counts_the_rows(more: tuple[str, ...], warns: bool, tmp_path: Path) -> None:
    file, _, named = dated(tmp_path)
    made = protect(file, tmp_path / "release", "--method", "crowd", "--seed", SEED, *more)
    assert named > 20
    assert (WARNING in made.done.stderr) == warns
    if warns:
        assert f"and {named:,} rows were made within 60 seconds of it" in made.done.stderr
        assert "--set hide.new=true" in made.done.stderr
        assert "--times hour or --for public" in made.done.stderr
    assert str(named) not in json.dumps(made.manifest["settings"])  # a clean figure, for the publisher alone
    assert "creat" not in json.dumps(made.manifest)


def test_other_ids_give_no_warning(tmp_path: Path) -> None:
    file, _, _ = dated(tmp_path, prefix="venue-")
    assert WARNING not in protect(file, tmp_path / "release", "--method", "crowd", "--seed", SEED).done.stderr


def test_new_venues_can_be_hidden(tmp_path: Path) -> None:
    file, new, _ = dated(tmp_path)
    shown = protect(file, tmp_path / "shown", "--method", "crowd", "--seed", SEED)
    assert new & venues(shown.data)
    made = protect(file, tmp_path / "release", "--method", "crowd", "--seed", SEED, "--set", "hide.new=true")
    assert WARNING not in made.done.stderr
    assert "so they reveal which venues were new" in shown.done.stderr
    assert "gives substitutes away; hide them with --set hide.new=true" in shown.done.stderr
    assert "so they reveal which venues were new" not in made.done.stderr
    assert not new & venues(made.data)
    for words in ((), ("--against", file)):
        assert called("verify", made.folder, *words).returncode == 0


def test_a_table_of_venues_lists_no_new_venue(tmp_path: Path) -> None:
    """Visited or not: a gap would show which of them somebody visited."""
    file, new, _ = dated(tmp_path)
    rows = lines(file)
    unvisited = {"4f7b0000f964a520000fffff": ["9", "Bar", "40.7", "-74.0"]}
    listed = {row[1]: row[2:6] for row in rows} | unvisited
    tables = {
        "venues": [
            ["venue_id", "category_id", "category_name", "lat", "lon"],
            *([one, *listed[one]] for one in listed),
        ],
        "visits": [["user", "venue_id", "time"], *([row[0], row[1], row[-1]] for row in rows)],
    }
    for name, table in tables.items():
        with (tmp_path / f"{name}.csv").open("w", newline="") as out:
            csv.writer(out).writerows(table)
    words = ("--venues", tmp_path / "venues.csv", "--method", "crowd", "--seed", SEED, "--set", "hide.new=true")
    made = protect(tmp_path / "visits.csv", tmp_path / "release", *words)
    shown = {line.split(",")[0] for line in (made.folder / "venues.csv").read_text("utf-8").splitlines()}
    assert shown & listed.keys()
    assert not shown & {*new, *unvisited}
    assert called("verify", made.folder, "--against", tmp_path / "visits.csv").returncode == 0


def test_a_dataset_in_regions_warns_once(tmp_path: Path) -> None:
    file, new, named = dated(tmp_path)
    words = ("--method", "crowd", "--seed", SEED, "--engine", "local", "--set", "regions.most_venues=60")
    made = protect(file, tmp_path / "release", *words)
    assert made.manifest["regions"]["count"] > 1
    assert made.done.stderr.count(WARNING) == 1
    assert f"and at least {named:,} rows were made" in made.done.stderr
    made = protect(file, tmp_path / "hidden", *words, "--set", "hide.new=true")
    assert WARNING not in made.done.stderr
    assert not new & venues(made.data)
    assert called("verify", made.folder, "--against", file).returncode == 0


def test_the_attack_of_the_docs(tmp_path: Path) -> None:
    """docs/rerun_stranger.py names rows with the ids of new venues, and none once these are hidden."""
    file, _, _ = dated(tmp_path)
    folders = []
    for number, more in ((1, ()), (2, ()), (3, ("--set", "hide.new=true"))):
        seed = ("--seed", str(number), "--allow-short-seed")
        folders.append(protect(file, tmp_path / f"r{number}", "--method", "crowd", *seed, *more).folder)

    def attacked(*words: object) -> str:
        script = [sys.executable, ROOT / "docs" / "rerun_stranger.py", file, *words]
        done = subprocess.run([*map(str, script)], capture_output=True, text=True, check=True, cwd=ROOT)
        return done.stdout

    open_release, closed = attacked(*folders[:2]), attacked(folders[2])
    assert "crowds from two releases" in open_release
    assert "15 s, 3 km: 0 rows" not in open_release
    assert "15 s, 3 km: 0 rows" in closed
    assert "crowds from clean rows" in closed
    assert "crowds from two releases" not in closed
