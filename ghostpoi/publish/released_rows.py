"""The rows of a release and what its manifest says about them, whether they are written to a folder or not."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ghostpoi import __version__
from ghostpoi.data.checkins import Longs
from ghostpoi.data.formats import CheckinFile, Rows
from ghostpoi.progress import Say
from ghostpoi.publish import pseudonyms
from ghostpoi.publish.columns import VenueColumns, classify
from ghostpoi.publish.figures import figures
from ghostpoi.publish.kept_rows import check_kept, in_file
from ghostpoi.publish.manifest import NO_CATEGORY
from ghostpoi.publish.private_folder import RowsRequest
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.whole_table import WholeTable, category_groups, check_category, donor_rows, grouped, prepare
from ghostpoi.randomness import Seed


@dataclass(frozen=True)
class Plan:
    """A file that can be released: what becomes of each column, and the venues that rows may draw."""

    request: RowsRequest
    file: CheckinFile
    columns: VenueColumns
    rows: Rows  # without the columns that the release leaves out
    whole: WholeTable

    @property
    def hides_users(self) -> bool:
        return self.request.settings.identity.pseudonyms != "keep"


@dataclass(frozen=True)
class ReleasedRows:
    """The rows of a release, beside what is private about them."""

    rows: Rows
    manifest: dict[str, Any]  # everything in it is public
    whole: WholeTable
    venues: Substitution  # of all clean rows
    shown: Longs  # (M,) the clean row of each released row
    users: pseudonyms.NewUsers | None

    def with_manifest(self, more: dict[str, Any]) -> "ReleasedRows":
        """Return the same rows with more in the manifest."""
        return replace(self, manifest=self.manifest | more)


def plan(request: RowsRequest, file: CheckinFile, say: Say) -> Plan:
    """Decide what becomes of each column; refuse a file that cannot be released."""
    settings, hides_users = request.settings, request.settings.identity.pseudonyms != "keep"
    check_category(file.table, settings.method)
    table = grouped(file.table, request.groups, settings.method)
    columns = classify(
        file.table, file.rows, file.mapping, file.path, request.keep, request.drop, pseudonyms.wanted(file, settings)
    )
    noted = check_kept(file, hides_users)
    rows = file.all_rows if len(file.kept) else file.rows
    rows = (rows if request.keep_metadata else rows.without_metadata()).drop(columns.drop)
    _try_changes(rows, columns.change, file.mapping["user"] if hides_users else None)
    for text in [*columns.warnings, *([noted] if noted else [])]:
        say(f"warning: {text}")
    return Plan(request, file, columns, rows, prepare(table, settings))


def release_rows(plan: Plan, released: Substitution, seed: Seed) -> ReleasedRows:
    """Give every row the fields of its released venue, and a pseudonym if users are hidden."""
    request, file, whole, columns = plan.request, plan.file, plan.whole, plan.columns
    settings, rows = request.settings, plan.rows
    shown = np.flatnonzero(whole.has_candidates) if request.withhold else np.arange(len(whole.table))
    donor = donor_rows(whole, released, settings.method, seed, every=plan.hides_users)
    donor, shown_in_file = in_file(file, donor, shown)
    rows, new, user = rows.copy_fields(columns.change, donor), None, file.mapping["user"]
    if plan.hides_users:
        new = pseudonyms.draw(whole.table, shown, settings, seed, rows.largest_number(user))
        shown = new.row
        rows = rows.take(shown).replace_ids(user, new.released_ids)
    elif request.withhold:
        rows = rows.take(shown_in_file)
    manifest = {
        "tool": {"name": "ghostpoi", "version": __version__},
        "method": request.method,
        "protocol": request.protocol,
        "settings": settings.public(),
        "columns": {
            "fields": file.mapping,
            "changed_with_the_venue": columns.change,
            "kept": columns.keep,
            "dropped": columns.drop,
            "kept_on_request": [name for name in columns.keep if name in request.keep],
        },
        "disclosure": {
            "category": settings.method.keeps_category if whole.table.category_field else NO_CATEGORY,
            "category_groups": category_groups(whole, settings.method),
            "aggregates": list(settings.method.published_aggregates),
        },
        **({} if new is None else {"identity": new.public}),
        **figures(whole, settings.method, released, shown, file.counted),
    }
    return ReleasedRows(rows, manifest, whole, released, shown, new)


def _try_changes(rows: Rows, columns: list[str], user: str | None) -> None:
    """Change one row as all will be changed: what cannot be is refused before any work."""
    first = np.zeros(1, np.int64)
    row = rows.take(first).copy_fields(columns, first)
    if user is not None:
        row.replace_ids(user, np.array(["1"], object))
