"""Export a release: read it, with its clean side if the publisher gives the private folder, and write the folder."""

from pathlib import Path

import numpy as np

from ghostpoi.data import sessions
from ghostpoi.data.checkins import Checkins, Ints, Longs, by_user_and_time
from ghostpoi.data.sessions import Sessions
from ghostpoi.errors import InputError
from ghostpoi.exports import EXPORTS
from ghostpoi.exports.base import ExportData, ExportVenues, Texts, Visits
from ghostpoi.files import new_folder
from ghostpoi.formats.source import SizeLimit
from ghostpoi.options import option
from ghostpoi.release.manifest import PRIVATE_MARK, complaint_about, read_data, read_manifest, settings_of
from ghostpoi.release.private_folder import Pairs, clean_users, read_pairs
from ghostpoi.settings import FilterSettings

PRIVATE = f"<!-- {PRIVATE_MARK} -->\n**This folder is private: it holds clean data. Never publish it.**\n"
PUBLIC = "It says nothing that the release does not say.\n"


def export(
    release: Path, to: str, output: Path, private: Path | None = None, limit: SizeLimit | None = None
) -> ExportData:
    """Write a release in the form of another tool; with its private folder, also the clean side."""
    if to not in EXPORTS:
        raise InputError(f"{option('to', to)}: unknown export; choose one of {', '.join(EXPORTS)}")
    form = EXPORTS[to]
    if output.resolve().is_relative_to(release.resolve()):
        raise InputError(f"{option('output', output)} lies inside the release {release}; choose another folder")
    data = read_release(release, output.resolve().name, private, limit)
    kind = PUBLIC if private is None else PRIVATE
    about = f"# {data.name}\n\nA release of ghostpoi, exported for {to}.\n{kind}\n{form.usage(data)}"
    files = {name: text if isinstance(text, bytes) else text.encode() for name, text in form.files(data).items()}
    files["README.md"] = files.get("README.md", b"") + about.encode()
    with new_folder(output, private=private is not None) as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)
    return data


def read_release(release: Path, name: str, private: Path | None = None, limit: SizeLimit | None = None) -> ExportData:
    """Read a release and, from its private folder if given, the clean sessions and venues."""
    manifest = read_manifest(release)
    if complaint := complaint_about(release, manifest):
        raise InputError(f"{release} is damaged ({complaint}); make the release again with protect")
    file = read_data(release, manifest, limit)
    table, left_out = file.table, len(file.kept)
    order = by_user_and_time(table.user, table.time)
    first = np.flatnonzero(np.diff(table.user[order], prepend=-1))
    start = np.append(first, len(table))
    users = table.user_ids[table.user]
    if private is None:
        v = table.venues
        category = ["", *table.category_ids[v.category[1:]]]
        venues = ExportVenues(table.venue_ids.tolist(), category, v.lat, v.lon)
        rows = Visits(users[order], table.venue[order], table.time[order], start)
        return ExportData(name, rows, venues, left_out=left_out)
    pairs, settings = read_pairs(private, table, str(release)), settings_of(manifest)
    parts = _parts(
        pairs, table, users, np.array(clean_users(private, table, settings.hides_users), object), settings.filters
    )
    if lacking := [part for part, visits in parts.items() if not (np.diff(visits.start) > 1).any()]:
        raise InputError(
            f"{option('private', private)}: no session of the part {lacking[0]!r} has two check-ins, so there is no "
            f"step to predict; leave {option('private')} out, or protect a longer file"
        )
    venues = ExportVenues(pairs.ids, pairs.category, np.array(pairs.lat), np.array(pairs.lon))
    rows = Visits(users[order], pairs.released[order], table.time[order], start)
    return ExportData(name, rows, venues, parts, pairs.clean[order], left_out)


def _parts(pairs: Pairs, table: Checkins, users: Texts, clean: Texts, filters: FilterSettings) -> dict[str, Visits]:
    """Cut the clean rows into sessions and split them, as for a clean file without the rows that were withheld."""
    row = np.argsort(pairs.row)  # in the order of the clean file
    ids, user = np.unique(clean[row].astype(str), return_inverse=True)
    used, venue = np.unique(pairs.clean[row], return_inverse=True)
    lat, lon, names = (np.array(values)[used] for values in (pairs.lat, pairs.lon, pairs.ids))
    before = Checkins(
        user.astype(np.int32), venue.astype(np.int32) + 1, np.zeros(len(row), np.int32), lat[venue], lon[venue],
        pairs.time[row], ids.astype(object), np.append("", names).astype(object), np.array([""], object),
        name="the clean file",
    )  # fmt: skip
    data = sessions.build(before, filters)

    def visits(part: Sessions, venue: Ints, user: Texts, time: Longs) -> Visits:
        at: Longs = row[part.row]
        return Visits(user[at], venue[at], time[at], part.start)

    shown, hidden = (pairs.released, users, table.time), (pairs.clean, clean, pairs.time)
    return {
        "train": visits(data.train, *shown),
        "valid": visits(data.val, *hidden),
        "test": visits(data.test, *hidden),
        "clean": visits(data.train, *hidden),
    }
