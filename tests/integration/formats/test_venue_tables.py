"""--venues: position and category by venue id, and a release that holds both files."""

import csv
import gzip
import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pandas
import pytest
from small_city import called, protect, sentence
from venue_pairs import PAIRS, Pair, libcity, number, recbole, released, venues
from written_as import visits

from ghostpoi import formats
from ghostpoi.formats import Reading

AUDIT = ["--victim", "markov", "--no-naturalness", "--seeds", "1", "--leak", "0.3", "--adversaries", "none"]
SPLIT = ["--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2"]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix in (".inter", ".item") else ","))


def copied(pair: Pair, folder: Path) -> Pair:
    folder.mkdir()
    return Pair(*(Path(shutil.copy(path, folder)) for path in (pair.data, pair.venues)))


@pytest.mark.parametrize("kind", PAIRS)
def test_positions_and_categories_come_from_the_table(kind: str) -> None:
    pair = PAIRS[kind]()
    table = formats.read(formats.Source(pair.data, Reading(venues=str(pair.venues)))).table
    assert table.lat.tolist() == [v.lat for v in visits()]
    assert table.lon.tolist() == [v.lon for v in visits()]
    assert table.category_ids[table.category].tolist() == [v.category for v in visits()]


@pytest.mark.parametrize("kind", PAIRS)
def test_the_release_holds_both_files_under_their_names(kind: str) -> None:
    pair, made = PAIRS[kind](), released(kind)
    beside = {pair.venues.name} | ({"city.usr"} if kind == "libcity" else set())
    expected = {pair.data.name, "manifest.json", "manifest.sig"} | beside
    assert {path.name for path in made.folder.iterdir()} >= expected
    assert set(made.manifest["data"]["beside"]) == beside
    assert made.manifest["data"]["reading"] == {"venues": pair.venues.name}
    assert str(pair.venues.parent) not in (made.folder / "manifest.json").read_text()
    clean, out = rows(pair.data), rows(made.data)
    changed = made.manifest["columns"]["changed_with_the_venue"]
    assert [[v for k, v in row.items() if k not in changed] for row in out] == [
        [v for k, v in row.items() if k not in changed] for row in clean
    ]
    assert sum(a != b for a, b in zip(clean, out, strict=True)) > len(clean) / 2
    for words in ([], ["--against", pair.data, *pair.words], ["--against", pair.data]):
        done = called("verify", made.folder, *words)
        assert done.returncode == 0, done.stdout
    assert "pass  venue table      as the clean table gives it" in done.stdout


@pytest.mark.parametrize("kind", PAIRS)
def test_the_table_of_the_release_does_not_depend_on_the_rows(kind: str, tmp_path: Path) -> None:
    """All venues, in the order of their ids, whatever the order of the table and whoever visits them."""
    pair = PAIRS[kind]()
    clean, out = rows(pair.venues), rows(released(kind).folder / pair.venues.name)
    key = next(iter(clean[0]))
    ids = [row[key] for row in out]
    assert ids == sorted((row[key] for row in clean), key=int if kind == "libcity" else str)
    by_id = {row[key]: row for row in clean}
    same = [name for name in clean[0] if name != "checkin_cnt"]
    assert [[row[name] for name in same] for row in out] == [[by_id[i][name] for name in same] for i in ids]
    if kind == "getnext":  # nothing else in the table may tell the clean counts, and half of the rows give the same
        return
    other = copied(pair, tmp_path / "other")
    lines = other.venues.read_text().splitlines(keepends=True)
    body = lines[1:]
    random.Random(9).shuffle(body)
    other.venues.write_text(lines[0] + "".join(body))
    data = other.data.read_text().splitlines(keepends=True)
    other.data.write_text("".join(data[: len(data) * 2 // 3]))
    made = protect(other.data, tmp_path / "r", *other.words)
    assert (made.folder / pair.venues.name).read_bytes() == (released(kind).folder / pair.venues.name).read_bytes()


def test_check_ins_are_counted_again() -> None:
    made = released("getnext")
    out = {row["node_name/poi_id"]: int(row["checkin_cnt"]) for row in rows(made.folder / "graph_X.csv")}
    count = Counter(row["POI_id"] for row in rows(made.data))
    assert out == {poi: count[poi] for poi in venues()}
    assert out != Counter(v.poi for v in visits())


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("people", lambda of: len({v.user for v in of}), "counts the visitors of each venue"),
        ("since", lambda of: f"{min(v.time for v in of):%Y-%m-%dT%H:%M:%SZ}", "holds the time of each venue's first"),
        ("until", lambda of: int(max(v.time for v in of).timestamp()), "holds the time of each venue's last check-in"),
        ("mayor", lambda of: Counter(v.user for v in of).most_common(1)[0][0], "names visitors of each venue"),
        ("guests", lambda of: "|".join(sorted({str(v.user) for v in of})[:3]), "names visitors of each venue"),
        (
            "peak",
            lambda of: (Counter(v.time.hour for v in of).most_common(1)[0][0] + 19) % 24,
            "holds the busiest hour of each venue",
        ),
        ("weight", lambda of: len(of) * 3.5, "follows the number of check-ins of each venue"),
    ],
)
def test_columns_that_follow_from_the_rows_are_refused(column: str, value, what: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pair = copied(recbole(), tmp_path / "in")
    by_venue = {poi: [v for v in visits() if v.poi == poi] for poi in venues()}
    head, *lines = pair.venues.read_text().splitlines()
    lines = [f"{line}\t{value(by_venue[line.split(chr(9))[0]])}" for line in lines]
    pair.venues.write_text("\n".join([f"{head}\t{column}", *lines]) + "\n")
    for dry in ([], ["--dry-run"]):
        said = sentence(called("protect", pair.data, "-o", tmp_path / "r", *pair.words, *dry))
        assert said.startswith(f"{pair.venues}: the column {column!r} {what}")
        assert ", so it follows from the clean rows; leave it out with " in said
        assert said.endswith(f"--drop {column}, or keep it at your own risk with --keep {column}")
        assert not (tmp_path / "r").exists()
    made = protect(pair.data, tmp_path / "r", *pair.words, "--drop", column)
    assert (made.folder / "city.item").read_text().splitlines()[0] == head
    assert made.manifest["columns"]["dropped"] == [column]
    assert called("verify", made.folder, "--against", pair.data).returncode == 0
    kept = protect(pair.data, tmp_path / "k", *pair.words, "--keep", column)
    assert column in (kept.folder / "city.item").read_text()
    assert called("verify", kept.folder, "--against", pair.data).returncode == 0


def test_a_changed_table_is_found(tmp_path: Path) -> None:
    folder = shutil.copytree(released("recbole").folder, tmp_path / "r")
    item = folder / "city.item"
    item.write_text(item.read_text().replace("\t40.", "\t41.", 1))
    done = called("verify", folder)
    assert done.returncode == 1
    assert "FAIL  data file        the SHA-256 of city.item differs from the manifest" in done.stdout
    shutil.rmtree(folder)
    shutil.copytree(released("recbole").folder, folder)
    other = copied(recbole(), tmp_path / "in")
    other.venues.write_text(other.venues.read_text() + "new\t40.7\t-74.0\tx\n")
    done = called("verify", folder, "--against", other.data)
    assert done.returncode == 1
    assert "FAIL  venue table      city.item is not the table that the clean one gives" in done.stdout


def test_pseudonyms_reach_the_list_of_users(tmp_path: Path) -> None:
    pair = libcity()
    made = protect(pair.data, tmp_path / "r", *pair.words, "--pseudonyms", "week", "--drop", "dyna_id")
    users = {row["entity_id"] for row in rows(made.data)}
    assert [row["usr_id"] for row in rows(made.folder / "city.usr")] == sorted(users, key=int)
    assert users.isdisjoint(v.user for v in visits())
    done = called("verify", made.folder, "--against", pair.data)
    assert done.returncode == 0, done.stdout


def test_audit_report_and_export_read_both_files(tmp_path: Path) -> None:
    pair, folder = libcity(), tmp_path / "r"
    shutil.copytree(released("libcity").folder, folder)
    shutil.copytree(released("libcity").private, tmp_path / "r.private")
    done = called("audit", pair.data, folder, *pair.words, *AUDIT, *SPLIT)
    assert done.returncode == 0, done.stderr
    assert called("report", folder).returncode == 0
    assert "`city.geo`" in (folder / "card.md").read_text()
    names = [one["name"] for one in json.loads((folder / "croissant.json").read_text())["distribution"]]
    assert names == ["city.dyna", "city.geo", "city.usr"]
    assert called("verify", folder).returncode == 0
    assert called("export", folder, "--to", "libcity", "-o", tmp_path / "x").returncode == 0


def test_inspect_says_where_the_fields_come_from() -> None:
    text = called("inspect", libcity().data, *libcity().words).stdout
    assert "user      entity_id          its name" in text
    assert "point     coordinates        its name in city.geo" in text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.replace("geo_id", "geo"), "--venues {}: no column looks like the id of a venue among geo, type"),
        (
            lambda t: t.replace("coordinates", "xy"),
            "--venues {}: no column looks like the latitude of a venue among geo_id",
        ),
        (lambda t: t + t.splitlines()[1] + "\n", "{}, line LAST: the venue '"),
        (lambda t: t.replace("\n", "\n,", 1), "{}, line 2 has 6 columns, not 5; correct or remove that line"),
        (lambda t: "\x00" + t, "--venues {} is a binary file; give a table of venues as text"),
        (lambda t: "", "{} is empty"),
    ],
)
def test_a_table_that_does_not_fit(change, says: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pair = copied(libcity(), tmp_path / "in")
    text = change(pair.venues.read_text())
    pair.venues.write_text(text)
    said = sentence(called("inspect", pair.data, *pair.words))
    assert said.startswith(says.split("LAST")[0].format(pair.venues))
    assert says.split("T:")[-1].split("{}")[-1].strip() in said


@pytest.mark.parametrize(
    ("point", "says"),
    [
        ("[x]", "the point '[x]' is not of the form POINT (longitude latitude) or [longitude, latitude]; correct it"),
        ("[1, 95]", "the latitude 95.0 is outside the range -90 to 90; correct it or remove the row"),
        ("", "the point is missing; fill it in, or use --missing drop or --missing keep"),
    ],
)
def test_a_bad_position_is_named_by_its_place_in_the_table(point: str, says: str, tmp_path: Path) -> None:
    pair = copied(libcity(), tmp_path / "in")
    with pair.venues.open(newline="") as file:
        lines = list(csv.reader(file))
    visited = number()[visits()[4].poi]
    at = next(n for n, line in enumerate(lines) if line[0] == str(visited))
    lines[at][lines[0].index("coordinates")] = point
    with pair.venues.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
    assert sentence(called("inspect", pair.data, *pair.words)) == f"{pair.venues}, line {at + 1}: {says}"


@pytest.mark.parametrize("kind", ["libcity", "recbole"])
def test_the_option_is_named_where_it_is_needed(kind: str, tmp_path: Path) -> None:
    pair = copied(PAIRS[kind](), tmp_path / "in")
    assert sentence(called("inspect", tmp_path / "in")) == (
        f"{tmp_path / 'in'} holds check-ins and a table of venues; give {pair.data} --venues {pair.venues} instead"
    )
    pair.venues.unlink()
    assert sentence(called("verify", released(kind).folder, "--against", pair.data)) == (
        f"the release of {pair.data} was made with a table of venues, and {pair.venues} does not exist; name the table "
        "with --venues FILE"
    )


def test_a_venue_that_the_table_lacks(tmp_path: Path) -> None:
    pair = copied(libcity(), tmp_path / "in")
    gone = visits()[4].poi
    kept = [line for line in pair.venues.read_text().splitlines() if not line.startswith(f"{number()[gone]},")]
    pair.venues.write_text("\n".join(kept) + "\n")
    lines = [n + 2 for n, v in enumerate(visits()) if v.poi == gone]
    said = sentence(called("inspect", pair.data, *pair.words))
    assert said.startswith(f"{pair.data}, line {lines[0]}: the venue of this row is not in {pair.venues} (")
    assert said.endswith("; add it there, or use --missing drop or --missing keep")
    made = protect(pair.data, tmp_path / "r", *pair.words, "--missing", "drop")
    assert made.manifest["rows"]["missing"] == {"dropped": len(lines)}


def test_names_and_options_that_cannot_be(tmp_path: Path) -> None:
    pair = copied(recbole(), tmp_path / "in")
    same = tmp_path / "city.inter"
    shutil.copy(pair.venues, same)
    words = ["protect", pair.data, "-o", tmp_path / "r"]
    said = sentence(called(*words, "--venues", same))
    assert said == f"{pair.data} and --venues {same} have the same name; rename one of them"
    said = sentence(called(*words, *pair.words, "--drop", "latitude:float"))
    assert said == f"--drop latitude:float: a release needs this column of {pair.venues}; remove the option"


def test_another_table_is_another_input(tmp_path: Path) -> None:
    """A run is resumed only with the same input."""
    pair = copied(recbole(), tmp_path / "in")
    one = formats.read(formats.Source(pair.data, Reading(venues=str(pair.venues))))
    pair.venues.write_text(pair.venues.read_text().replace("\t40.", "\t41.", 1))
    two = formats.read(formats.Source(pair.data, Reading(venues=str(pair.venues))))
    assert one.sha256 != two.sha256


def test_packed_files_withheld_rows_and_kept_gaps(tmp_path: Path) -> None:
    """The release of packed files is unpacked; rows without a venue in the table stay, if asked, and count."""
    pair = copied(libcity(), tmp_path / "in")
    head, *lines = pair.data.read_text().splitlines(keepends=True)
    lines[7] = ",".join([*lines[7].split(",")[:4], "12345\n"])
    data, table = tmp_path / "in" / "city.dyna.gz", tmp_path / "in" / "city.geo.gz"
    data.write_bytes(gzip.compress("".join([head, *lines]).encode()))
    table.write_bytes(gzip.compress(pair.venues.read_bytes()))
    more = ["--missing", "keep", "--no-candidate", "withhold", "--set", "method.reach_km=0.3"]
    made = protect(data, tmp_path / "r", "--venues", table, *more)
    assert made.manifest["rows"]["missing"] == {"kept": 1}
    assert made.manifest["rows"]["withheld"] > 0
    assert made.data.name == "city.dyna"
    assert {row["location"] for row in rows(made.data)} >= {"12345"}
    done = called("verify", made.folder, "--against", data, "--venues", table)
    assert done.returncode == 0, done.stdout


def test_what_libcity_expects_of_its_files() -> None:
    """LibCity cannot be installed with the tests: numbers that refer to each other, and positions as JSON."""
    folder = released("libcity").folder
    geo, dyna, usr = (pandas.read_csv(folder / f"city.{kind}") for kind in ("geo", "dyna", "usr"))
    assert list(dyna.columns) == ["dyna_id", "type", "time", "entity_id", "location"]
    assert list(geo.columns[:3]) == ["geo_id", "type", "coordinates"]
    assert set(dyna["location"]) <= set(geo["geo_id"])
    assert set(dyna["entity_id"]) == set(usr["usr_id"])
    assert {len(json.loads(point)) for point in geo["coordinates"]} == {2}
    assert set(dyna["type"]) == {"trajectory"}


def test_what_getnext_expects_of_its_files() -> None:
    """GETNext is a repository without a package: it takes features and positions of nodes by these names."""
    folder = released("getnext").folder
    rows, nodes = (pandas.read_csv(folder / name) for name in ("NYC_train.csv", "graph_X.csv"))
    assert set(rows["POI_id"]) <= set(nodes["node_name/poi_id"])
    by_id = nodes.set_index("node_name/poi_id")
    for column, node in (("POI_catid", "poi_catid"), ("latitude", "latitude"), ("POI_catname", "poi_catname")):
        assert (by_id.loc[rows["POI_id"], node].to_numpy() == rows[column].to_numpy()).all()
    assert nodes["checkin_cnt"].sum() == len(rows)
