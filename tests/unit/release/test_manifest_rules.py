"""What a manifest may hold, key by key, and what follows from it."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from conftest import checkins

from ghostpoi import formats
from ghostpoi.errors import InputError
from ghostpoi.files import file_hashes, joint_hash
from ghostpoi.formats import Source
from ghostpoi.release import manifest as manifests
from ghostpoi.release.manifest import SHAPE, read_manifest

Manifest = dict[str, Any]
KINDS: dict[str, tuple[list[Any], list[Any]]] = {  # good and bad values; those of sections follow from their keys
    "any": ([1], []),
    "section": ([], [[], None, "x", 1]),
    "section or null": ([None], [[], "x", 1]),
    "text": (["x"], [7, None, ["x"], True]),
    "number": ([1, 0.5, -3], [True, "1", None, [1]]),
    "count": ([0, 1, 2**53 - 1], [-1, 2**53, 1.5, True, "1", None]),
    "positive": ([0.5, 1, 9e14], [0, -1, 1e15, 1e16, float("nan"), True, "1", None]),
    "texts": ([[], ["a", "b"]], ["a", ["a", 1], {"a": "b"}, None]),
    "texts by name": ([{}, {"a": "b"}], [["a"], {"a": 1}, {"a": "b", "c": None}, "a"]),
    "pairs": ([[], [["a", "b"], ["c", "d"]]], [[["a"]], [["a", "b", "c"]], [["a", 1]], ["ab"], "ab", {"a": "b"}]),
    "size": ([1, 2, 2**53 - 1], [0, -1, 2**53, 1.5, True, "1", None]),
    "counts": ([{}, {"a": 0, "b": 3}], [{"a": -1}, {"a": 1.0}, {"a": True}, [1]]),
    "settings": ([{}, {"a": True, "b": 1, "c": 0.5, "d": "x"}], [{"a": None}, {"a": [1]}, {"a": {}}, [], "x"]),
    "settings by section": ([], [{"a": 1}, {"filters": {"b": None}}, [], "x"]),
}  # fmt: skip


def path_of(section: str, key: str) -> list[str]:
    return [name for name in section.split(".") if name] + [key]


def whole() -> Manifest:
    """A manifest with every key that a release may have."""
    made: Manifest = {}
    for section, keys in sorted(SHAPE.items(), key=lambda item: (item[0].count("."), item[0] != "", item[0])):
        at = made
        for name in filter(None, section.split(".")):
            at[name] = at.get(name) or {}
            at = at[name]
        for key, kind in keys.items():
            if key != "*":
                good, _ = KINDS[kind.removesuffix("?")]
                at[key] = at.get(key, deepcopy(good[0]) if good else {})
    made["data"] |= {"file": "checkins.csv", "parts": {"a/b.csv": "0"}, "beside": {"venues.csv": "1"}}
    return made


def put(made: Manifest, path: list[str], *value: Any) -> None:
    """Set a key, or delete it."""
    *sections, last = path
    for name in sections:
        made = made[name]
    if value:
        made[last] = value[0]
    else:
        del made[last]


@pytest.fixture
def complaint(tmp_path: Path) -> Callable[[Any], str]:
    """What reading a manifest says, "" if nothing."""

    def read(made: Any) -> str:
        path = tmp_path / "manifest.json"
        path.write_bytes(made if isinstance(made, bytes) else json.dumps(made).encode())
        try:
            assert read_manifest(tmp_path) == json.loads(path.read_bytes())
        except InputError as error:
            return error.text.removeprefix(f"{path} is not a manifest of ghostpoi (").split("); make")[0]
        return ""

    return read


def test_every_key_holds_its_kind(complaint: Callable[[Any], str]) -> None:
    assert complaint(whole()) == ""
    assert {kind.removesuffix("?") for keys in SHAPE.values() for kind in keys.values()} <= KINDS.keys()
    for section, keys in SHAPE.items():
        for key, kind in keys.items():
            if key == "*":
                continue
            path, (good, bad) = path_of(section, key), KINDS[kind.removesuffix("?")]
            for value in bad:
                put(made := whole(), path, value)
                said = [f"{'.'.join(path[:to])} has the wrong type" for to in (1, 2, 3)]  # of the key or its section
                assert complaint(made) in said[: len(path)], (path, value)
            for value in good:
                put(made := whole(), path, deepcopy(value))
                own = ".".join(path) in SHAPE or path in (["data", "file"], ["data", "beside"], ["data", "parts"])
                assert own or value is None or complaint(made) == "", (path, value)
            put(made := whole(), path)
            said = complaint(made)
            assert said == ("" if kind.endswith("?") else f"{'.'.join(path)} is missing") or path == [
                "rows",
                "drawn_own",
            ]


def test_rows_that_drew_their_own_venue_go_with_the_plausibility(complaint: Callable[[Any], str]) -> None:
    made = whole()
    del made["rows"]["drawn_own"]
    assert complaint(made) == "rows.drawn_own is missing"
    made["plausibility"] = None
    assert complaint(made) == ""


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"file": "a/b.csv"}, "data.file is not a plain file name"),
        ({"file": ""}, "data.file is not a plain file name"),
        ({"file": "."}, "data.file is not a plain file name"),
        ({"file": "first \ud800"}, "data.file is not a plain file name"),
        ({"file": "\udfff"}, "data.file is not a plain file name"),
        ({"file": "a\0"}, "data.file is not a plain file name"),
        ({"file": "\ud7ff\ue000"}, ""),
        ({"beside": {"../x": "0"}}, "data.file is not a plain file name"),
        ({"beside": {"..": "0"}}, "data.file is not a plain file name"),
        ({"parts": {"a/../b": "0"}}, "data.parts are not plain paths"),
        ({"parts": {"/b": "0"}}, "data.parts are not plain paths"),
        ({"parts": {"fine": "0", "a//b": "0"}}, "data.parts are not plain paths"),
        ({"parts": {"a/b/c.csv": "0"}}, ""),
    ],
)
def test_names_stay_inside_the_release(change: Manifest, fault: str, complaint: Callable[[Any], str]) -> None:
    made = whole()
    made["data"] |= change
    assert complaint(made) == fault


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


def test_limits_of_a_manifest(complaint: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert complaint(whole() | {"audit": nested(49)}) == ""
    assert complaint(whole() | {"audit": nested(50)}) == "it is nested too deeply"
    assert complaint(whole() | {"audit": {"a": [1, {"b": nested(46)}]}}) == ""
    assert complaint(whole() | {"audit": {"a": [1, {"b": nested(47)}]}}) == "it is nested too deeply"
    assert complaint(b"[1]") == "it is not a JSON object"
    assert manifests.MAX_BYTES == 64 * 2**20
    text = json.dumps(whole()).encode()
    monkeypatch.setattr(manifests, "MAX_BYTES", (1 << 20) + 7)
    assert complaint(text + b" " * ((1 << 20) + 7 - len(text))) == ""
    assert complaint(text + b" " * ((1 << 20) + 8 - len(text))) == "it is larger than 1 MiB"
    assert "names 'data' twice in one object" in complaint(text[:-1] + b', "data": {}}')


def test_a_release_needs_a_folder_and_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        read_manifest(tmp_path / "none")
    with pytest.raises(InputError, match=r"has no manifest\.json, so it is not a complete release"):
        read_manifest(tmp_path)


def test_keys_that_no_release_has_are_named() -> None:
    made = whole()
    assert manifests.unknown_keys(made) == []
    made |= {"note": 1}
    made["data"] |= {"more": 1, "file": "x"}
    made["rows"]["hidden"]["why"] = 1
    made["settings"]["own"] = {"x": 1}
    made["plausibility"] = None
    assert manifests.unknown_keys(made) == ["data.more", "note", "rows.hidden.why"]
    assert manifests.section_of({"a": {"b": {"c": 1}}, "d": 1}, "a.b") == {"c": 1}
    assert manifests.section_of({"a": 1}, "") == {"a": 1}
    assert manifests.section_of({"a": {"b": 1}}, "a.b") is manifests.section_of({"a": 1}, "b.c") is None


def hashed(folder: Path) -> Manifest:
    """A release by hand: a folder of two parts, a table next to it, and their manifest data."""
    (folder / "data" / "sub").mkdir(parents=True)
    for name in ("data/one.csv", "data/sub/two.csv", "venues.csv"):
        (folder / name).write_text(name)
    hash_of = {
        n: joint_hash(file_hashes(folder / n)) for n in ("data", "data/one.csv", "data/sub/two.csv", "venues.csv")
    }
    parts = {name.removeprefix("data/"): hash_of[name] for name in ("data/one.csv", "data/sub/two.csv")}
    return {
        "data": {
            "file": "data",
            "sha256": hash_of["data"],
            "parts": parts,
            "beside": {"venues.csv": hash_of["venues.csv"]},
        }
    }


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("data/one.csv", "the SHA-256 of data/one.csv differs from the manifest"),
        ("data/sub/two.csv", "the SHA-256 of data/sub/two.csv differs from the manifest"),
        ("venues.csv", "the SHA-256 of venues.csv differs from the manifest"),
    ],
)
def test_every_file_is_compared_with_its_hash(name: str, fault: str, tmp_path: Path) -> None:
    made = hashed(tmp_path)
    assert manifests.hash_complaint(tmp_path, made) is None
    (tmp_path / name).write_text("other")
    assert manifests.hash_complaint(tmp_path, made) == fault
    (tmp_path / name).unlink()
    assert manifests.hash_complaint(tmp_path, made) == f"{name} is missing"
    (tmp_path / name).symlink_to(tmp_path)
    assert (
        manifests.hash_complaint(tmp_path, made)
        == f"{name} is a link, which may lead to private data; put the file itself there"
    )


def test_a_folder_is_no_file_and_the_reverse(tmp_path: Path) -> None:
    made = hashed(tmp_path)
    alone = {"data": {"file": "data", "sha256": made["data"]["sha256"]}}
    assert manifests.hash_complaint(tmp_path, alone) == "data is missing"
    file = {"data": {"file": "venues.csv", "sha256": made["data"]["beside"]["venues.csv"]}}
    assert manifests.hash_complaint(tmp_path, file) is None
    parted = {"data": made["data"] | {"file": "venues.csv", "parts": {}, "sha256": file["data"]["sha256"]}}
    assert manifests.hash_complaint(tmp_path, parted) is None


def test_a_seal_needs_one_valid_line(tmp_path: Path) -> None:
    private, release, series = tmp_path / "p", tmp_path / "r", tmp_path / "s"
    for folder in (private, release, series):
        folder.mkdir()
    assert not manifests.has_key(private)
    manifests.create_key(private, series)
    key = (private / "signing.key").read_bytes()
    assert manifests.has_key(private)
    assert (series / "signing.key").read_bytes() == key
    manifests.create_key(private)
    assert (private / "signing.key").read_bytes() == key  # a publisher keeps one key
    (other := tmp_path / "o").mkdir()
    manifests.create_key(other, series)
    assert manifests.fingerprint(other) == manifests.fingerprint(private)
    (alone := tmp_path / "a").mkdir()
    manifests.create_key(alone)
    assert manifests.fingerprint(alone) != manifests.fingerprint(private)
    made = {"name": "Zoë", "data": [1, 2]}
    manifests.store_manifest(release, made, private)
    text = (release / "manifest.json").read_bytes()
    assert text == (json.dumps(made, indent=2, ensure_ascii=False) + "\n").encode()
    line = (release / "manifest.sig").read_text()
    assert line == manifests.sign(private, text)
    seal = manifests.seal_of(release)
    assert (seal.signer, seal.complaint) == (manifests.fingerprint(private), None)
    assert len(manifests.fingerprint(private)) == 32
    wrong, noise = manifests.sign(private, b"other"), "ed25519 " + "0" * 64 + " " + "0" * 128 + "\n"
    for lines, valid in (
        (wrong + line, True), (noise + line, True), ("x" + line, False), (wrong, False), ("", False),
        ("#" * 4095 + "\n" + line, False), ("#" * (4095 - len(line)) + "\n" + line, True),
    ):  # fmt: skip
        (release / "manifest.sig").write_text(lines)
        assert (manifests.seal_of(release).signer is not None) == valid, lines[:9]
        assert (manifests.seal_of(release).complaint is None) == valid
    for content in (b"nothing", key.replace(b"PRIVATE", b"PUBLIC")):
        (other / "signing.key").write_bytes(content)
        with pytest.raises(InputError, match="is not an ed25519 key"):
            manifests.fingerprint(other)


@pytest.mark.parametrize(("text", "fits"), [
    ("0123456789ABCDEF0123456789abcdef", True), ("01:23:45:67 89abcdef0123456789 abcdef", True),
    ("0123456789abcdef0123456789abcde", False), ("0123456789abcdef0123456789abcdef0", False), ("g" * 32, False),
])  # fmt: skip
def test_a_fingerprint_has_32_digits(text: str, fits: bool) -> None:
    if fits:
        assert manifests.parse_fingerprint(text) == "0123456789abcdef" * 2
        return
    with pytest.raises(InputError, match="is not a fingerprint; give the 32 hexadecimal digits"):
        manifests.parse_fingerprint(text)


def test_figures_name_the_release_by_its_data_and_settings() -> None:
    made = {"data": {"sha256": "f00"}, "settings": {"b": {"x": 1}, "a": {}}, "method": "m", "protocol": "p", "other": 1}
    found = manifests.release_identity(made)
    assert found["data_sha256"] == "f00"
    same = dict(reversed(made.items())) | {"other": 2, "settings": {"a": {}, "b": {"x": 1}}}
    assert manifests.release_identity(same) == found
    for key, value in (("settings", {}), ("method", "n"), ("protocol", "q")):
        assert manifests.release_identity(made | {key: value}) != found


def test_the_clean_file_is_read_as_the_release_was_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    made = {"data": {"reading": {"venues": "venues.csv", "decimal": ","}}}
    path = tmp_path / "clean.csv"
    with pytest.raises(
        InputError, match=r"was made with a table of venues, and .*venues\.csv does not exist; name the table"
    ):
        manifests.clean_source(Source(path), made)
    elsewhere = Source(path, formats.Reading(venues=str(tmp_path / "other.csv"), decimal=","))
    assert manifests.clean_source(elsewhere, made).reading.venues == str(tmp_path / "other.csv")
    (tmp_path / "venues.csv").touch()
    assert manifests.clean_source(Source(path), made).reading == formats.Reading(
        venues=str(tmp_path / "venues.csv"), decimal=","
    )
    assert manifests.clean_source(Source(path, formats.Reading(missing="drop")), {"data": {}}).reading.stated == {
        "missing": "drop"
    }


@pytest.mark.parametrize(
    ("withheld", "hidden", "all_of_them"), [(0, 0, False), (3, 3, False), (4, 3, True), (1, 0, True)]
)
def test_a_release_withholds_more_than_hidden_rows(withheld: int, hidden: int, all_of_them: bool) -> None:
    assert manifests.withholds({"rows": {"withheld": withheld, "hidden": {"withheld": hidden}}}) == all_of_them


def test_the_groups_of_categories_are_those_of_the_release() -> None:
    table = manifests.with_groups(
        checkins([(1, "a", 5)]), {"disclosure": {"category_groups": [["Bar", "food"], ["Gym", "sport"]]}}
    )
    assert table.category_groups == {"Bar": "food", "Gym": "sport"}


def test_a_method_that_is_not_installed_counts_as_random() -> None:
    made = {"method": "nobody's", "settings": {"filters": {"min_poi_checkins": 7}, "lm": {"dim": "unread"}}}
    found = manifests.settings_of(made)
    assert found.filters.min_poi_checkins == 7
    assert type(found.method) is type(manifests.settings_of(made | {"method": "random"}).method)
    assert type(manifests.settings_of(made | {"method": "crowd"}).method) is not type(found.method)


def test_a_dataset_is_divided_by_distance_or_by_a_column(complaint: Callable[[Any], str]) -> None:
    for name in ("gap_km", "column"):
        del (made := whole())["regions"][name]
        assert complaint(made) == ""
    del made["regions"]["gap_km"]
    assert complaint(made) == "regions.gap_km is missing"
    del made["regions"]
    assert complaint(made) == ""
