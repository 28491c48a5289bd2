"""Releases with odd names, and what croissant.json says about them."""

import csv
import hashlib
import io
import logging
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlcroissant as mlc
from sample_releases import put_manifest
from small_city import Release, release

# The publisher's to add: the day is not in the manifest, and a day of our own would not be the one of publishing.
MISSING = {"datePublished"}
ODD = [
    "a|b", 'say "hi"', "<script>alert(1)</script>", "🗽 é", "two words", "x/../y", "..", "a.b", "#", "c,d", "%20",
    "@id",
]  # fmt: skip


def dataset(path: Path) -> Any:
    """Validated: no error, no warning but for what only the publisher can say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that mlcroissant uses
        logging.disable(logging.WARNING)
        try:
            found = mlc.Dataset(jsonld=str(path))
        finally:
            logging.disable(logging.NOTSET)
    issues = found.metadata.ctx.issues
    assert not issues.errors
    assert {warning.split('"')[1].split("/")[-1] for warning in issues.warnings} == MISSING
    return found


def records(path: Path) -> list[dict[str, Any]]:
    found = dataset(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(found.records("checkins"))


def rewritten(
    tmp_path: Path,
    made: Release,
    content: bytes | None = None,
    change: Callable[[dict[str, Any]], object] = lambda manifest: None,
) -> Path:
    """A copy of a release, perhaps with other data and a manifest that says so."""
    folder, manifest = tmp_path / "r", made.manifest
    shutil.copytree(made.folder, folder)
    if content is not None:
        (folder / made.data.name).write_bytes(content)
        manifest["data"]["sha256"] = hashlib.sha256(content).hexdigest()
    change(manifest)
    put_manifest(folder, manifest)
    return folder


def table(rows: list[list[str]], delimiter: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue()


def rich() -> list[list[str]]:
    with release("random", "csv").data.open(newline="") as file:
        return list(csv.reader(file))
