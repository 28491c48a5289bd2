"""Checks of ids, times, order and pages, each with the one change that it must notice."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import checkins

from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.data.pseudonyms import DAY_S, WEEK_S
from ghostpoi.draw.noise import ByContent
from ghostpoi.draw.publication import Publication, publication
from ghostpoi.files import file_hashes, joint_hash
from ghostpoi.randomness import Seed
from ghostpoi.release import identity, verify
from ghostpoi.release import manifest as manifests
from ghostpoi.release.identity import PrivateMap
from ghostpoi.release.verify import Check
from ghostpoi.settings import override

MONDAY, HOUR = 4 * DAY_S, 3600
WHO = [("ann", 9.2), ("ann", 9.9), ("bob", 9.5), ("bob", 33.5), ("ann", 9 + 7 * 24), ("cid", 60.0)]  # hours from Monday
GREENWICH = 0.0


def of(rows: Sequence[tuple[str, float]], lon: float = GREENWICH) -> Checkins:
    return checkins([(who, "v", MONDAY + round(hours * HOUR), "c", 0.0, lon) for who, hours in rows])


def settings(pseudonyms: str, times: str = "keep") -> Publication:
    return override(publication("random"), [f"identity.pseudonyms={pseudonyms}", f"identity.times={times}"])


def released(known: PrivateMap, clean: Checkins, chosen: Publication) -> Checkins:
    """The rows of a release with this map."""
    number, time = identity.numbers(clean, chosen), identity.coarse(clean, chosen)
    return checkins([(known.pseudonym[number[i]], "v", int(time[i])) for i in known.row.tolist()])


def map_of(clean: Checkins, chosen: Publication) -> PrivateMap:
    number = identity.numbers(clean, chosen)
    ids = [f"p{9 - one}" for one in range(number.max() + 1)]
    order = np.lexsort((clean.time, np.array(ids)[number], identity.coarse(clean, chosen)))
    return PrivateMap(order, np.array(ids), np.array(["?"] * len(ids)))


CLEAN = of(WHO)
SHOWN = np.arange(len(WHO))


def check(chosen: Publication, known: PrivateMap, written: Checkins, shown: Longs = SHOWN) -> Check:
    return verify.map_check(known, CLEAN, shown, written, chosen)


@pytest.mark.parametrize(
    ("pseudonyms", "says"),
    [("file", "3 new user ids, one per user"), ("session", "5 new user ids, one per session"),
     ("week", "4 new user ids, one per week of a user")],
)  # fmt: skip
@pytest.mark.parametrize("times", ["keep", "hour"])
def test_the_right_map_passes(pseudonyms: str, says: str, times: str) -> None:
    chosen = settings(pseudonyms, times)
    known = map_of(CLEAN, chosen)
    assert check(chosen, known, released(known, CLEAN, chosen)) == Check("pseudonyms", True, says)


def failed(chosen: Publication, known: PrivateMap, written: Checkins, shown: Longs = SHOWN) -> str:
    found = check(chosen, known, written, shown)
    assert (found.name, found.passed) == ("pseudonyms" if chosen.hides_users else "times", False)
    return found.detail


def test_a_map_of_another_release_fails() -> None:
    chosen = settings("session", "hour")
    known = map_of(CLEAN, chosen)
    written, other = released(known, CLEAN, chosen), "the private map is of another file or release"
    assert failed(chosen, known, written, SHOWN[1:]) == other
    assert failed(chosen, replace(known, row=known.row * 0), written) == other
    for ids in (known.pseudonym[:-1], np.append(known.pseudonym, "p99"), np.append(known.pseudonym, ["x", "y"])):
        assert failed(chosen, replace(known, pseudonym=ids), written) == other
    assert failed(chosen, replace(known, pseudonym=known.pseudonym[:-2]), written) == other


def test_wrong_times_and_ids_are_named() -> None:
    chosen = settings("session", "hour")
    known = map_of(CLEAN, chosen)
    written = released(known, CLEAN, chosen)
    for row in (0, 2, 5):
        late = written.time + HOUR * (np.arange(6) == row)
        says = f"row {row + 1} has another time than its clean row gives it"
        assert failed(chosen, known, replace(written, time=late)) == says
    twice = replace(written, time=written.time + HOUR * (np.arange(6) % 2))
    assert failed(chosen, known, twice) == "row 2 has another time than its clean row gives it"
    assert failed(
        chosen, known, replace(written, user_ids=np.array(["ann", "bob", *written.user_ids[2:]], object))
    ) == ("2 user ids occur in the clean file, for example 'ann'")
    swapped = written.user_ids.copy()
    swapped[:2] = swapped[1::-1]
    wrong = int(np.isin(written.user, [0, 1]).sum())
    assert failed(chosen, known, replace(written, user_ids=swapped)) == (
        f"{wrong} rows have another pseudonym than the private map gives them"
    )
    same = replace(known, pseudonym=np.array(["p9", *["p7"] * 2, *known.pseudonym[3:]]))
    assert failed(chosen, same, released(same, CLEAN, chosen)) == "two pseudonyms have the same id"


def test_rows_of_one_session_stay_in_order() -> None:
    chosen = settings("session", "hour")
    known = map_of(CLEAN, chosen)
    assert known.row.tolist().index(0) + 1 == known.row.tolist().index(1)  # ann at 9.2 and 9.9
    row = known.row.copy()
    at = row.tolist().index(0)
    row[[at, at + 1]] = row[[at + 1, at]]
    turned = replace(known, row=row)
    assert failed(chosen, turned, released(turned, CLEAN, chosen)) == (
        f"row {at + 2} is before an earlier check-in of its session"
    )
    hours = settings("keep", "hour")
    order = PrivateMap(row, CLEAN.user_ids.astype(str), CLEAN.user_ids.astype(str))
    written = replace(released(order, CLEAN, hours))
    assert failed(hours, order, written) == f"row {at + 2} is before an earlier check-in of its session"
    right = replace(order, row=known.row)
    assert check(hours, right, released(right, CLEAN, hours)) == Check(
        "times", True, "every row has the time that its clean row gives it"
    )


def test_two_rows_that_moved_are_named_by_the_first() -> None:
    many = of([("ann", 9 + i / 10) for i in range(8)])
    chosen, row = settings("file", "hour"), np.array([0, 2, 1, 3, 5, 4, 6, 7])
    known = PrivateMap(row, np.array(["p"]), np.array(["ann"]))
    found = verify.map_check(known, many, np.arange(8), released(known, many, chosen), chosen)
    assert found.detail == "row 3 is before an earlier check-in of its session"


@pytest.mark.parametrize(("days", "fine"), [(0, False), (1, True)])
def test_check_ins_of_two_days_may_change_places(days: int, fine: bool) -> None:
    """One time may stand for two weeks: only within a clean day the order is that of the clean times."""
    clean = of([("ann", 9.1), ("ann", 9.2 + 24 * 7 * days), ("bob", 40.0)])
    written = checkins([("p", "v", MONDAY + 9 * HOUR)] * 2)
    assert (verify._moved(clean, np.array([1, 0]), written) is None) == fine
    assert verify._moved(clean, np.array([0, 1]), written) is None


def manifest_of(chosen: Publication, **identity: Any) -> dict[str, Any]:
    public = chosen.public()
    return {"method": "random", "settings": {"identity": public["identity"]}, "identity": identity}


def test_anybody_can_check_the_order_the_times_and_the_number_of_ids() -> None:
    hour = settings("session", "hour")
    written = checkins([("b", "v", 0), ("a", "v", HOUR), ("b", "v", HOUR), ("a", "v", 3 * HOUR)])
    assert verify.order_check(written, manifest_of(settings("keep"))) == []
    ids = Check("user ids", True, "2 user ids, as in the manifest; as coarse as 3,600 s; rows are ordered by time")
    times = Check("times", True, "as coarse as 3,600 s; rows are ordered by time")
    assert verify.order_check(written, manifest_of(hour, ids=2)) == [times, ids]
    assert verify.order_check(written, manifest_of(settings("keep", "hour"))) == [times]
    kept = Check("user ids", True, "2 user ids, as in the manifest; rows are ordered by time")
    assert verify.order_check(written, manifest_of(settings("file"), ids=2)) == [kept]
    wrong = verify.order_check(written, manifest_of(settings("file"), ids=3))
    assert wrong == [Check("user ids", False, "2 user ids, not 3 as in the manifest; rows are ordered by time")]
    for first, second, row in ((0, 1, 1), (1, 2, 2), (2, 3, 3)):
        order = np.arange(4)
        order[[first, second]] = second, first
        turned = replace(written, user=written.user[order], time=written.time[order])
        said = f"row {row} is not in the order of time and user id"
        assert verify.order_check(turned, manifest_of(hour, ids=2)) == [Check("row order", False, said)]
    finer = replace(written, time=written.time + np.array([0, 0, 1, 60]))
    assert verify.order_check(finer, manifest_of(hour, ids=2))[0] == Check(
        "times", False, "2 times are finer than the setting"
    )


def test_rows_of_hidden_venues_are_counted() -> None:
    fine, some = verify.hidden_check(0), verify.hidden_check(1234)
    assert fine == Check("hidden venues", True, "no row shows a venue that is to be hidden")
    assert some == Check("hidden venues", False, "1,234 rows show a venue that is to be hidden")


def test_figures_that_differ_are_named_by_their_path() -> None:
    found = {"a": {"x": 1, "y": {"z": [2]}, "only": 0}, "b": 3}
    assert verify.differences({"k": found}, {"k": found}, "k") == []
    stated = {"a": {"x": 1, "y": {"z": [3]}, "more": 5}, "b": 4}
    assert verify.differences({"k": found}, {"k": stated}, "k") == [
        "k.a.more is None, 5 in the manifest", "k.a.only is 0, None in the manifest",
        "k.a.y.z is [2], [3] in the manifest", "k.b is 3, 4 in the manifest",
    ]  # fmt: skip
    assert verify.differences({"k": {"x": 1}}, {"k": 1}, "k") == ["k is {'x': 1}, 1 in the manifest"]


PAGES: list[tuple[str, str, list[str]]] = [
    ("report.html", "<body class='wide ghostpoi-private'>", ["clean data"]),
    ("report.html", "<body><p class='ghostpoi-private'>seed: 1</p>", []),
    ("report.html", "<body class>", []),
    ("report.html", "<body id='ghostpoi-private'>", []),
    ("report.html", "<body class='ghostpoi-private'></body><body class='x'>", ["clean data"]),
    ("dpia.html", "<body class='ghostpoi-privates'>", []),
    ("card.md", "<!-- ghostpoi-private -->\n", ["clean data"]),
    ("card.md", "text <!-- ghostpoi-private -->\n", []),
    ("card.md", "Seeds: 3\nthe seed: 4", []),
    ("card.md", "- **Seed**: 3\npairs = 4\n", ["pairs", "seed"]),
    ("card.md", "<body class='ghostpoi-private'>", []),
    ("croissant.json", '{"a": [{"private": 1}], "b": {"seed": 2, "seeds": 3}}', ["private", "seed"]),
    ("croissant.json", '["seed", 1, null]', []),
    ("croissant.json", "{", ["content that cannot be read"]),
]


@pytest.mark.parametrize(("name", "text", "found"), PAGES)
def test_what_a_public_page_must_not_hold(name: str, text: str, found: list[str], tmp_path: Path) -> None:
    page = tmp_path / name
    assert verify._private_content(page) == []
    page.write_text(text)
    assert verify._private_content(page) == found
    page.unlink()
    page.symlink_to(tmp_path / "elsewhere")
    assert verify._private_content(page) == ["no content of its own"]
    page.unlink()
    page.mkdir()
    assert verify._private_content(page) == ["no content of its own"]


def test_only_known_files_lie_in_a_release(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    (folder / "data" / "sub").mkdir(parents=True)
    manifest = {"data": {"file": "data", "parts": {"sub/one.csv": "0"}, "beside": {"venues.csv": "1"}}}
    for name in ("data/sub/one.csv", "venues.csv", "manifest.json", "manifest.sig", "card.md"):
        (folder / name).touch()
    assert verify.nothing_private(folder, manifest).passed
    (folder / "data" / "sub" / "two.csv").touch()
    (folder / "notes").touch()
    (folder / "croissant.json").write_text(json.dumps({"seed": 1}))
    made = manifest | {"more": {"deep": [{"checkpoint": 1}]}}
    assert verify.nothing_private(folder, made).detail == (
        "found data/sub/two.csv, notes, more, checkpoint, croissant.json with seed; remove it before you publish the "
        "release"
    )
    (tmp_path / "latest").symlink_to(folder)
    assert "found data/sub/two.csv, notes, a link in place of the folder" in (
        verify.nothing_private(tmp_path / "latest", manifest).detail
    )


@pytest.mark.parametrize(
    ("kind", "hours"), [("minute", [9.25, 33.5, 3.95]), ("hour", [9, 33, 3]), ("part-of-day", [4, 28, -2])]
)
def test_times_are_the_beginning_of_their_hour_or_part_of_the_day(kind: str, hours: list[float]) -> None:
    table = of([("a", 9.26), ("a", 33.5), ("b", 3.96)])
    assert ((identity.coarse(table, settings("keep", kind)) - MONDAY) / HOUR).tolist() == hours
    west = replace(of([("a", 9.26), ("a", 33.5), ("b", 3.96)], -75.0))  # 5 hours behind: parts begin at 9, 15, 21, 3
    parts = {"part-of-day": [9.0, 33.0, 3.0]}.get(kind, hours)
    assert ((identity.coarse(west, settings("keep", kind)) - MONDAY) / HOUR).tolist() == parts
    assert identity.coarse(table, settings("keep")) is table.time


def test_weeks_begin_on_monday_at_four() -> None:
    table = of([("a", 3.9), ("a", 4.1), ("b", 7 * 24 + 3.9), ("b", 7 * 24 + 4.1), ("b", 3 * 7 * 24 + 5)])
    number, week = identity.sessions_and_weeks(table, settings("keep", "shift"))
    assert week.tolist() == [0, 1, 1, 2, 4]
    assert number.tolist() == [0, 1, 2, 3, 4]


def drawn(rows: int = 400) -> Checkins:
    draw = np.random.default_rng(1)
    return of([(f"u{draw.integers(0, 9)}", float(draw.integers(0, 6 * 7 * 24 * 60)) / 60) for _ in range(rows)])


def test_a_session_moves_to_a_week_that_its_user_and_time_decide() -> None:
    table, chosen, seed = drawn(), settings("keep", "shift"), Seed(5)
    time, rank = identity.drawn_times(table, chosen, seed)
    number, week = identity.sessions_and_weeks(table, chosen)
    sessions = range(number.max() + 1)
    first = np.array([min(np.flatnonzero(number == one), key=lambda i: table.time[i]) for one in sessions])
    uniform = ByContent.of(table, seed).take(first).several(2, "times")
    weeks = int(week.max()) + 1
    target = [int(one * weeks) for one in uniform[0].tolist()]
    coarse = table.time // HOUR * HOUR
    assert time.tolist() == [int(coarse[i] + (target[number[i]] - week[i]) * WEEK_S) for i in range(len(table))]
    places = {int(one): place for place, one in enumerate(sorted(sessions, key=lambda one: uniform[1][one]))}
    assert rank.tolist() == [places[one] for one in number.tolist()]
    assert set(target) == set(range(weeks))
    row = np.random.default_rng(2).permutation(len(table))
    assert identity.times_agree(table, row, time[row], chosen).all()
    kept, none = identity.drawn_times(table, settings("keep", "hour"), seed)
    assert kept.tolist() == coarse.tolist()
    assert not none.any()
    assert identity.times_agree(table, row, kept[row], settings("keep", "hour")).all()
    assert (
        identity.times_agree(table, row, kept[row] + (row == 7), settings("keep", "hour")).tolist()
        == (row != 7).tolist()
    )


def test_a_session_moves_as_a_whole_by_weeks_of_the_file() -> None:
    table, chosen = of([("a", 9), ("a", 9.5), ("b", 10), ("b", 30 + 7 * 24)]), settings("keep", "shift")
    time, rows = identity.coarse(table, chosen), np.arange(4)
    for moved, agree in (
        ([0, 0, 0, 0], [True] * 4), ([1, 1, 0, -1], [True] * 4), ([0, 0, -1, 0], [True, True, False, True]),
        ([0, 0, 0, 1], [True, True, True, False]), ([2, 2, 1, 0], [False, False, True, True]),
        ([1, 0, 0, 0], [False, True, True, True]),
    ):  # fmt: skip
        assert identity.times_agree(table, rows, time + np.array(moved) * WEEK_S, chosen).tolist() == agree, moved
    assert identity.times_agree(table, rows, time + np.array([1, 1, 0, 0]), chosen).tolist() == [
        False,
        False,
        True,
        True,
    ]


def test_rows_are_in_the_order_of_time_and_id_and_then_of_the_session() -> None:
    time, ids = np.array([5, 3, 5, 5, 3]), np.array(["b", "9", "a", "a", "10"], object)
    assert identity.released_order(time, ids).tolist() == [4, 1, 2, 3, 0]
    assert identity.released_order(time, ids, (np.array([0, 0, 2, 1, 0]),)).tolist() == [4, 1, 3, 2, 0]
    within = (np.array([0, 0, 1, 2, 0]), np.array([0, 0, 1, 0, 0]))  # the last key first
    assert identity.released_order(time, ids, within).tolist() == [4, 1, 3, 2, 0]


@pytest.mark.parametrize("pseudonyms", ["keep", "file", "session", "week"])
@pytest.mark.parametrize("times", ["keep", "shift"])
def test_a_map_leads_back(pseudonyms: str, times: str) -> None:
    table, chosen = drawn(), settings(pseudonyms, times)
    shown = np.flatnonzero(np.arange(len(table)) % 5)
    made = identity.draw(table, shown, chosen, Seed(3))
    number = identity.numbers(table, chosen)
    assert sorted(made.row.tolist()) == shown.tolist()
    assert made.hidden == (pseudonyms != "keep")
    assert made.time.tolist() == identity.drawn_times(table, chosen, Seed(3))[0][made.row].tolist()
    assert made.released_ids.tolist() == made.ids[number[made.row]].tolist()
    time, rank = identity.drawn_times(table, chosen, Seed(3))
    place = [(time[i], str(made.ids[number[i]]), rank[i], table.time[i], i) for i in range(len(table))]
    assert made.row.tolist() == sorted(shown.tolist(), key=place.__getitem__)
    ties = sum(one[:2] == two[:2] for one, two in pairwise(sorted(place)))
    assert ties > 0 or times == "keep" or pseudonyms in ("session", "week")
    said = {"ids": len(set(number[shown].tolist()))} if pseudonyms != "keep" else {}
    assert made.public == {**said, "row_order": "time, then user id"}
    back = identity.map_arrays(table, made)
    user = dict(zip(back["pseudonym"].tolist(), back["user"].tolist(), strict=True))
    assert [user[i] for i in made.released_ids.tolist()] == table.user_ids[table.user[made.row]].tolist()
    if pseudonyms == "keep":
        assert made.ids.tolist() == table.user_ids.tolist()
        return
    assert len(set(made.ids.tolist())) == len(made.ids) == number.max() + 1
    again = identity.draw(table, shown, chosen, Seed(3), kept={2: "old"}, used=["old", str(made.ids[0])])
    assert again.ids[2] == "old"
    assert str(made.ids[0]) not in again.ids.tolist()
    assert len(set(again.ids.tolist())) == len(made.ids)


def test_a_hidden_number_is_none_where_ids_are_kept() -> None:
    assert identity.hidden(CLEAN, settings("keep", "hour")) is None
    found = identity.hidden(CLEAN, settings("file"))
    assert found is not None
    assert found.tolist() == CLEAN.user.tolist()


def test_the_user_behind_an_unknown_pseudonym_is_nobody() -> None:
    known = PrivateMap(np.arange(2), np.array(["p", "q"]), np.array(["ann", "bob"]))
    assert known.behind(checkins([("q", "v", 1), ("z", "v", 2), ("p", "v", 3)])).tolist() == ["bob", "", "ann"]


@pytest.mark.parametrize(("visits", "sampled", "rows"), [
    (1, False, "1 row was made"), (2, False, "2 rows were made"), (1234, True, "at least 1,234 rows were made"),
    (1, True, "at least 1 row was made"),
])  # fmt: skip
def test_rows_near_the_creation_of_their_venue_give_a_warning(visits: int, sampled: bool, rows: str) -> None:
    assert identity.creation_warnings(0, sampled) == []
    (said,) = identity.creation_warnings(visits, sampled)
    assert f"each venue was created, and {rows} within" in said


def sealed(folder: Path, content: bytes = b"user,poi\n1,2\n") -> tuple[Path, dict[str, Any], str]:
    """A signed release of one file, its manifest and the fingerprint of its key."""
    release, private = folder / "r", folder / "p"
    for one in (release, private):
        one.mkdir()
    (release / "checkins.csv").write_bytes(content)
    manifests.create_key(private)
    data = {"file": "checkins.csv", "format": "csv", "sha256": joint_hash(file_hashes(release / "checkins.csv"))}
    manifest = {"data": data, "settings": {}, "method": "random", "protocol": "strong"}
    manifests.store_manifest(release, manifest, private)
    return release, manifest, manifests.fingerprint(private)


def details(release: Path, manifest: dict[str, Any], signed_by: str | None = None) -> dict[str, tuple[bool, str]]:
    checks, complaint = verify.folder_checks(release, manifest, signed_by, None)
    found = {one.name: (one.passed, one.detail) for one in checks}
    assert found["data file"][0] == (complaint is None)
    assert complaint in (None, found["data file"][1])
    return found


def test_a_signature_is_that_of_the_key_that_is_asked_for(tmp_path: Path) -> None:
    release, manifest, key = sealed(tmp_path)
    nobody = "0" * 32
    matches = f"SHA-256 {manifest['data']['sha256'][:16]}… matches the manifest"
    assert details(release, manifest)["data file"] == (True, matches)
    assert details(release, manifest)["nothing private"][0]
    signed = f"signed by key {key}"
    for asked in (None, key, key.upper()):
        assert details(release, manifest, asked)["signature"] == (True, signed)
    assert details(release, manifest, nobody)["signature"] == (False, f"{signed}, not signed by key {nobody}")
    (release / "manifest.json").write_text("{}")
    why = "the manifest is not what manifest.sig signs, so it was changed afterwards"
    assert (
        details(release, manifest, nobody)["signature"] == details(release, manifest, key)["signature"] == (False, why)
    )
    (release / "manifest.sig").unlink()
    passed, said = details(release, manifest)["signature"]
    assert passed
    assert said.startswith("unsigned, so anyone could have changed the figures; compare them with ")
    assert details(release, manifest, key)["signature"] == (False, f"unsigned, not signed by key {key}")
    (release / "checkins.csv").write_bytes(b"other")
    assert details(release, manifest)["data file"] == (False, "the SHA-256 of checkins.csv differs from the manifest")


def test_an_audit_belongs_to_its_data_and_settings(tmp_path: Path) -> None:
    release, manifest, _ = sealed(tmp_path)
    assert "audit" not in details(release, manifest)
    own = manifests.release_identity(manifest)
    assert details(release, manifest | {"audit": {"of": own}})["audit"] == (
        True,
        "made for this data and these settings",
    )
    for other in ({"of": own | {"data_sha256": "0"}}, {}, [own], "x"):
        said = (False, "made for other data or settings; run audit again")
        assert details(release, manifest | {"audit": other})["audit"] == said


@pytest.mark.parametrize(
    ("content", "spare"),
    [(b"a,b\n1,2", False), (b"a,b\n1,2\n", False), (b"a,b\r\n1,2\r\n", False), (b"\xef\xbb\xbfa,b\n1,2\n", False),
     (b"a,b\n1,2\n\n", True), (b"a,b\n1,2\n\r\n", True), (b"\na,b\n1,2\n", True), (b"a,b\n1,2\n\r", True)],
)  # fmt: skip
def test_nobody_vouches_for_bytes_that_no_row_needs(content: bytes, spare: bool, tmp_path: Path) -> None:
    release, manifest, _ = sealed(tmp_path, content)
    assert details(release, manifest)["data file"][0]  # who signed it did
    (release / "manifest.sig").unlink()
    passed, said = details(release, manifest)["data file"]
    assert passed is not spare
    assert said.startswith("checkins.csv holds more than its rows" if spare else "SHA-256")


def test_each_part_must_hold_its_rows_alone(tmp_path: Path) -> None:
    release = tmp_path / "r"
    (release / "data").mkdir(parents=True)
    for name, end in (("one.csv", "\n"), ("two.csv", "\n\n")):
        (release / "data" / name).write_text(f"a,b\n1,2{end}")
    manifest = {"data": {"file": "data", "format": "csv", "parts": {"one.csv": "0", "two.csv": "0"}}}
    assert verify.spare_bytes(release, manifest, None) == (
        "data/two.csv holds more than its rows, and no signature vouches for that"
    )
    (release / "data" / "two.csv").write_text("a,b\n")
    assert verify.spare_bytes(release, manifest, None) is None
