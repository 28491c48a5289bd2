"""A release that stands alone: its candidate sets, draws and venue fields come from its own file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.progress import Report, Say
from ghostpoi.publish import pseudonyms
from ghostpoi.publish.checkpoint import Checkpoint
from ghostpoi.publish.columns import VenueColumns
from ghostpoi.publish.kept_rows import in_file
from ghostpoi.publish.private_folder import RowsRequest, Run
from ghostpoi.publish.protect import protect_table
from ghostpoi.publish.pseudonyms import NewUsers
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.whole_table import WholeTable, donor_rows
from ghostpoi.randomness import Seed


@dataclass(frozen=True)
class SingleRelease:
    """What `release.make_release` asks of a release; `series.SeriesRelease` gives other answers."""

    request: RowsRequest
    file: CheckinFile
    columns: VenueColumns
    table: Checkins

    def start(self) -> None:
        """Store what an interrupted run needs again."""

    def draw(self, whole: WholeTable, run: Run, say: Say, report: Report) -> Substitution:
        """Choose a venue for every row."""
        return protect_table(
            whole, self.request.settings, run.seed, self.request.device, cache=run.folder.parent / "trajectory_lm",
            checkpoint=Checkpoint(run.folder / "checkpoint.safetensors", run.key, say), say=say, report=report,
        )  # fmt: skip

    def with_fields(self, rows: Rows, whole: WholeTable, released: Substitution, seed: Seed, every: bool) -> Rows:
        """Return the rows of the file with the fields of the released venues."""
        donor = donor_rows(whole, released, self.request.settings.method, seed, every=every)
        return rows.copy_fields(self.columns.change, in_file(self.file, donor, donor)[0])

    def users(self, whole: WholeTable, shown: Longs, seed: Seed, most: int | None) -> NewUsers:
        """Draw the pseudonyms."""
        return pseudonyms.draw(whole.table, shown, self.request.settings, seed, most)

    @property
    def public(self) -> dict[str, Any]:
        """Further sections of the manifest."""
        return {}

    def store_private(self, folder: Path, rows: Rows) -> tuple[str, ...]:
        """Write further files for the private folder; return their names."""
        return ()

    def begin(self, manifest: dict[str, Any], released: Substitution, shown: Longs, new: NewUsers | None) -> None:
        """Note that the release is about to get its place."""

    def complete(self) -> None:
        """Note that the release has its place."""
