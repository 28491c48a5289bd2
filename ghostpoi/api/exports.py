"""`ghostpoi.export`: write a release for another tool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ghostpoi.api.reading import PathLike, optional
from ghostpoi.api.wording import caller, step
from ghostpoi.api.written import ReleaseLike, folder_of


@dataclass(frozen=True)
class Export:
    """A release in the form of another tool, in `folder`. `private` says whether it holds clean data.

    >>> found = ghostpoi.export("release", to="recbole", output="city")
    >>> sorted(path.name for path in found.folder.iterdir()), found.private
    (['README.md', 'city.inter', 'city.item', 'city.yaml'], False)
    """

    folder: Path
    private: bool


@step
def export(
    release: ReleaseLike, to: str, output: PathLike, *, private: PathLike | None = None, max_size: str | None = None
) -> Export:
    """Write a release in the form that another tool trains on; with `private`, also clean data to test on.

    >>> ghostpoi.export("release", to="hf", output="dataset").folder.name
    'dataset'
    """
    from ghostpoi.exports.write import export as write
    from ghostpoi.formats.source import limit_of

    left_out = write(folder_of(release), to, Path(output), optional(private), limit_of(max_size)).left_out
    if left_out:
        rows = f"{left_out:,} {'row' if left_out == 1 else 'rows'} with missing values"
        caller().say(f"warning: {rows}: left out of the export, because other tools need every value")
    return Export(Path(output), private is not None)
