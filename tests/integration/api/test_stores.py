"""Inputs, releases and private folders at URLs of object stores: a real S3 server, and what lies in memory."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import polars as pl
import pytest
from object_store import BUCKET, SECRET, Store, object_store
from small_city import SEED, called, city, sentence

import ghostpoi
from ghostpoi import InputError, stores

QUICK = ("--adversaries", "none", "--victim", "markov", "--seeds", 1, "--no-naturalness",
         "--set", "filters.train_share=0.5", "--set", "filters.val_share=0.25")  # fmt: skip


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with object_store() as found:
        yield found


@pytest.fixture(scope="module")
def clean(store: Store) -> str:
    return store.put("in/city.txt", city())


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    release = tmp_path_factory.mktemp("local") / "release"
    assert called("protect", city(), "-o", release, "--seed", SEED).returncode == 0
    return release


def at(name: str) -> tuple[str, ...]:
    return "-o", f"s3://{BUCKET}/{name}", "--private", f"s3://{BUCKET}/{name}-private"


def protected(clean: object, name: str, *more: object) -> subprocess.CompletedProcess[str]:
    return called("protect", clean, *at(name), *more)


def test_a_release_is_the_same_wherever_it_lies(store: Store, clean: str, local: Path, tmp_path: Path) -> None:
    done = protected(clean, "same", "--seed", SEED)
    assert done.returncode == 0, done.stderr
    assert f"audit {clean} s3://{BUCKET}/same --private s3://{BUCKET}/same-private" in " ".join(done.stdout.split())
    assert store.keys("same/") == ["same/checkins.txt", "same/manifest.json", "same/manifest.sig"]
    assert store.keys("same-private/") == [f"same-private/{name}" for name in ("pairs.npz", "run.json", "signing.key")]
    copy = store.fetch("same", tmp_path / "copy")
    assert (copy / "checkins.txt").read_bytes() == (local / "checkins.txt").read_bytes()
    ours, theirs = (json.loads((folder / "manifest.json").read_text()) for folder in (copy, local))
    assert ours == theirs
    for word in (SECRET, "publisher", "127.0.0.1", "s3://", "ghostpoi-at-"):
        assert word not in json.dumps(ours) + done.stdout.replace("s3://", "") + done.stderr
    assert called("verify", f"s3://{BUCKET}/same", "--against", clean).returncode == 0
    again = protected(clean, "same")
    assert sentence(again) == (
        f"s3://{BUCKET}/same exists already; choose another folder with -o, or replace it with --force"
    )


def test_what_a_command_changes_is_sent(store: Store, clean: str) -> None:
    name = f"s3://{BUCKET}/audited"
    assert protected(clean, "audited").returncode == 0
    audit = called("audit", clean, name, *QUICK, "--private", f"{name}-private", "--report")
    assert audit.returncode == 0, audit.stderr
    assert f"wrote {name}/report.html" in audit.stderr
    assert "audit" in json.loads(store.get("audited/manifest.json"))
    assert {"audited/report.html", "audited/card.md"} <= {*store.keys("audited/")}
    found = called("verify", name, "--json")
    assert next(check["detail"] for check in json.loads(found.stdout)["checks"]).startswith("signed by key")
    exported = called("export", name, "--to", "recbole", "-o", f"s3://{BUCKET}/exported/town")
    assert exported.stdout == f"s3://{BUCKET}/exported/town\n"
    assert "exported/town/town.inter" in store.keys("exported/")


def test_a_series_knows_its_releases_by_their_urls(store: Store, clean: str) -> None:
    place, words = f"s3://{BUCKET}/month", ("--series", f"s3://{BUCKET}/series")
    half = store.put("in/half.txt", b"".join(city().read_bytes().splitlines(keepends=True)[:600]))
    for file, name in ((half, "half"), (clean, "month")):
        assert protected(file, name, *words).returncode == 0
    private = ("--private", f"{place}-private")
    done = called("audit", clean, place, *QUICK, *private, *words, "--no-store", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["series"]["releases"] == [f"s3://{BUCKET}/half", place]
    entry = json.loads(store.get("series/series.json"))["releases"][1]
    assert (entry["release"], entry["private"]) == (place, f"{place}-private")
    shown = called("series", "verify", words[1])
    assert shown.returncode == 0, shown.stdout
    assert f"rows at {place}, as in the ledger" in " ".join(shown.stdout.split())
    note = json.loads(store.get("series/series.json"))  # the machine was lost before it could note the release
    note["releases"][1] |= {"status": "begun", "completed": None}
    store.put("series/series.json", json.dumps(note).encode())
    assert protected(clean, "month", *words, "--force").returncode == 0
    entries = json.loads(store.get("series/series.json"))["releases"]
    assert [one["status"] for one in entries] == ["complete", "complete"]
    store.put("month/checkins.txt", b"other")
    assert called("series", "verify", words[1]).returncode == 1


def test_python_reads_and_writes_urls(clean: str, local: Path, store: Store) -> None:
    made = ghostpoi.protect(clean, output="memory://r/one", private="memory://r/own", seed=SEED)
    assert (str(made.folder), str(made.private)) == ("memory://r/one", "memory://r/own")
    assert made.table.equals(pl.DataFrame(ghostpoi.protect(str(city()), seed=SEED).table))
    assert ghostpoi.verify(made, against=clean)
    assert ghostpoi.verify("memory://r/one").passed
    with pytest.raises(InputError, match=r"memory://r/one exists already; .* output=, or .* force=True"):
        ghostpoi.protect(clean, output="memory://r/one", private="memory://r/other")
    assert ghostpoi.person("memory://r/one", user="1").found["release"] == "memory://r/one"
    assert ghostpoi.verify(local.as_uri()).passed  # file://
    forced = ghostpoi.protect(clean, output="memory://r/one", private="memory://r/own", force=True)
    assert forced.manifest["data"]["sha256"] != made.manifest["data"]["sha256"]


def test_parts_and_patterns(store: Store, tmp_path: Path) -> None:
    lines = city().read_bytes().splitlines(keepends=True)
    store.put("parts/a.txt", b"".join(lines[:400]))
    store.put("parts/day=2/b.txt", b"".join(lines[400:]))
    whole = json.loads(called("inspect", city(), "--json").stdout)
    for place in (f"s3://{BUCKET}/parts", f"s3://{BUCKET}/parts/", f"s3://{BUCKET}/parts/**/*.txt"):
        found = json.loads(called("inspect", place, "--json").stdout)
        assert (found["checkins"], found["users"]) == (whole["checkins"], whole["users"])


REFUSED = {
    "s3://nowhere/x.csv": "s3://nowhere/x.csv: there is no such bucket; check its name",
    f"s3://{BUCKET}/nothing.csv": f"s3://{BUCKET}/nothing.csv does not exist; check the path",
    "s3://": "s3:// names no store; give s3://BUCKET/PATH, a URL of memory, gs, az, abfs, abfss, or a path",
    "ftp://host/x.csv": "ftp://host/x.csv names no store; give s3://BUCKET/PATH, a URL of memory, gs, az, abfs, abfss, "
    "or a path",
    "s3://key:s3cret@city/x.csv": "a URL of s3:// holds credentials or parameters, which others could see; leave them "
    "out, and set them in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}


@pytest.mark.parametrize("place", REFUSED)
def test_what_cannot_be_read(place: str, store: Store) -> None:
    assert sentence(called("inspect", place)) == REFUSED[place]


def test_a_private_folder_is_named(store: Store, clean: str) -> None:
    done = called("protect", clean, "-o", f"s3://{BUCKET}/public")
    assert sentence(done) == (
        f"s3://{BUCKET}/public is in a store, where others may read what lies next to it; name a place of its own for "
        "the private folder with --private"
    )
    nowhere = called("protect", clean, "-o", "s3://nowhere/public", "--private", f"s3://{BUCKET}/unused")
    assert sentence(nowhere) == "s3://nowhere/public: there is no such bucket; check its name"
    assert not [key for key in store.keys("") if "public" in key or "unused" in key]


def refusing(monkeypatch: pytest.MonkeyPatch, name: str, when: Any, error: Exception) -> list[str]:
    """Let a function of obstore fail once, for the keys that fit."""
    real, seen = getattr(obstore, name), list[str]()

    def failing(store: Any, key: Any, *more: Any, **options: Any) -> Any:
        if not seen and when(key):
            seen.append(key)
            raise error
        return real(store, key, *more, **options)

    monkeypatch.setattr(obstore, name, failing)
    return seen


@pytest.mark.parametrize("regions", [(), ("--memory", "4GB", "--set", "regions.gap_km=1", "--set",
                                          "regions.most_venues=50")], ids=["at once", "by region"])  # fmt: skip
@pytest.mark.parametrize("key", ["checkins.txt", "manifest.json"])
def test_a_connection_that_is_lost_while_the_release_is_sent(
    store: Store, clean: str, key: str, regions: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = f"lost-{key[:2]}{len(regions)}"
    lost = obstore.exceptions.GenericError(f"error sending request, {SECRET}")
    seen = refusing(monkeypatch, "put", lambda at: at.startswith(f"{name}/") and at.endswith(key), lost)
    words = (*regions, "--seed", SEED)
    failed = protected(clean, name, *words)
    assert (failed.returncode, len(seen)) == (1, 1), failed.stderr
    assert failed.stderr == (
        f"ghostpoi: the connection to s3://{BUCKET}/{name}/{key} was lost; check the network, then try again\n"
    )
    assert f"{name}/manifest.json" not in store.keys("")
    assert called("verify", f"s3://{BUCKET}/{name}").returncode == 2
    assert protected(clean, name, *words).returncode == 2
    resumed = protected(clean, name, *words, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert protected(clean, f"{name}-whole", *words).returncode == 0
    assert store.get(f"{name}/checkins.txt") == store.get(f"{name}-whole/checkins.txt")
    for folder in (name, f"{name}-private"):
        assert [key.removeprefix(folder) for key in store.keys(f"{folder}/")] == [
            key.removeprefix(f"{name}-whole" if folder == name else f"{name}-whole-private")
            for key in store.keys(f"{folder.replace(name, f'{name}-whole')}/")
        ]


def test_readers_never_see_half_a_release(store: Store, clean: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older release is replaced: after each request, what is there is the old one, the new one, or none."""
    assert protected(clean, "live", "--seed", SEED).returncode == 0
    states: list[set[str]] = []

    def noting(name: str) -> None:
        real = getattr(obstore, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            found = real(*arguments, **options)
            there = {key: store.get(f"live/{key}") for key in ("manifest.json", "checkins.txt", "manifest.sig")
                     if f"live/{key}" in store.keys("live/")}  # fmt: skip
            if "manifest.json" in there:
                import hashlib

                data = json.loads(there["manifest.json"])["data"]
                assert hashlib.sha256(there["checkins.txt"]).hexdigest() == data["sha256"]
                assert "manifest.sig" in there
            states.append(set(there))
            return found

        monkeypatch.setattr(obstore, name, noted)

    noting("put")
    noting("delete")
    assert protected(clean, "live", "--force").returncode == 0
    assert any("manifest.json" not in state for state in states)
    assert "manifest.json" in states[-1]


def test_two_commands_do_not_write_one_release(store: Store, clean: str) -> None:
    store.put("busy/.writing", b"")
    assert sentence(protected(clean, "busy")) == (
        f"another ghostpoi is writing s3://{BUCKET}/busy, or was interrupted; wait until it has finished, or continue "
        "with --resume"
    )
    store.put("taken/notes.txt", b"mine")
    assert sentence(protected(clean, "taken", "--force")) == (
        f"s3://{BUCKET}/taken is not a release, so --force does not replace it; choose another with -o"
    )
    assert store.keys("taken/") == ["taken/notes.txt"]


def test_credentials_that_are_refused(store: Store, clean: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = obstore.exceptions.PermissionDeniedError(f"<Code>InvalidAccessKeyId</Code><Key>{SECRET}</Key>")
    for name in ("list", "get", "put"):
        with monkeypatch.context() as patch:
            refusing(patch, name, lambda key: True, refused)
            failed = protected(clean, f"denied-{name}")
        assert failed.returncode == 2
        assert failed.stderr.endswith(
            "the store refuses these credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ask for the "
            "right\n"
        )
        assert SECRET not in failed.stderr
        assert not store.keys(f"denied-{name}/")


def test_keys_stay_inside_the_folder_of_copies(tmp_path: Path) -> None:
    copy = stores.copy_of("s3://city/../../etc/passwd", tmp_path / "ghostpoi-at-1")
    assert copy == tmp_path / "ghostpoi-at-1" / "s3" / "city" / "etc" / "passwd"
    assert stores.url_of(copy) == "s3://city/etc/passwd"
    assert stores.url_of(tmp_path) == ""
