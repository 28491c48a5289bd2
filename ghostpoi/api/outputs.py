"""`ghostpoi.report`, `ghostpoi.export` and `ghostpoi.synth`: pages, files for other tools, synthetic check-ins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from ghostpoi.api.door import Door, step
from ghostpoi.api.given import PathLike, ReadingOptions, mapped, optional, source_of
from ghostpoi.api.release import ReleaseLike, folder_of, private_of
from ghostpoi.errors import InputError
from ghostpoi.options import option

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Report:
    """The pages about a release. `pages` are their paths.

    >>> ghostpoi.report("release").page.name
    'report.html'
    """

    pages: tuple[Path, ...]

    @property
    def page(self) -> Path:
        """The page to open in a browser."""
        return self.pages[0]


@step
def report(
    door: Door, release: ReleaseLike, *, output: PathLike | None = None, dpia: bool = False,
    compare: Sequence[ReleaseLike] = (), private: PathLike | None = None, with_clean: bool = False,
    outlines: PathLike | None = None, map: Mapping[str, str] | None = None, config: PathLike | None = None,
    audit: Sequence[PathLike] = (), title: str = "", publisher: str = "", license: str = "",
    **reading: Unpack[ReadingOptions],
) -> Report:  # fmt: skip
    """Write an offline page to decide from: within your limits or not, what a release protects, and what it keeps.

    `compare` lists other releases of the same file. `with_clean=True` shows clean data next to the release, on a page
    in the private folder; never publish it. `dpia=True` writes two printed sides for a data protection officer instead.

    >>> [path.name for path in ghostpoi.report("release").pages]
    ['report.html', 'card.md', 'croissant.json']
    """
    from ghostpoi.release.manifest import read_manifest, seal_of
    from ghostpoi.reports.page import write_dpia, write_pages
    from ghostpoi.reports.release_view import About

    folder, about = folder_of(release), About(title, publisher, license)
    source = source_of(folder, reading)
    if dpia:
        if with_clean or compare or audit or private:
            raise InputError(f"{option('dpia')} is about one release as it is published; leave the other options out")
        return Report((write_dpia(source, optional(output), about),))
    if folder.is_dir() and "regions" in read_manifest(folder):
        if with_clean:
            raise InputError(
                f"{option('with_clean')} is for a release of one region, and {folder} has many; leave it out"
            )
        door.say(f"warning: the page about {folder} is drawn from all its rows, which must fit into memory")
    pages = write_pages(
        source, private=private_of(release, private) if with_clean else optional(private), with_clean=with_clean,
        compare=tuple(folder_of(other) for other in compare), output=optional(output), mapping=mapped(map, config),
        audits=tuple(Path(path) for path in audit), about=about, outlines=optional(outlines),
    )  # fmt: skip
    if folder.is_dir() and not seal_of(folder).signer:
        door.say(
            f"warning: {folder} is unsigned, so its figures may have been changed; check them with verify "
            f"{option('against')}"
        )
    return Report(tuple(pages))


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
    door: Door, release: ReleaseLike, to: str, output: PathLike, *, private: PathLike | None = None,
    max_size: str | None = None,
) -> Export:  # fmt: skip
    """Write a release in the form that another tool trains on; with `private`, also clean data to test on.

    >>> ghostpoi.export("release", to="hf", output="dataset").folder.name
    'dataset'
    """
    from ghostpoi.exports.write import export as write
    from ghostpoi.formats.source import limit_of

    left_out = write(folder_of(release), to, Path(output), optional(private), limit_of(max_size)).left_out
    if left_out:
        rows = f"{left_out:,} {'row' if left_out == 1 else 'rows'} with missing values"
        door.say(f"warning: {rows}: left out of the export, because other tools need every value")
    return Export(Path(output), private is not None)


@step
def synth(
    door: Door, users: int = 500, pois: int = 1500, days: int = 120, *, seed: int = 0, density: float = 40.0
) -> polars.DataFrame:
    """Return the check-ins of a synthetic city: people with homes, jobs and habits at clustered venues.

    >>> ghostpoi.synth(users=150, pois=300, days=60, seed=7).write_csv("checkins.csv")
    """
    from ghostpoi.data.synthetic import make_city
    from ghostpoi.data.synthetic_files import city_frame

    return city_frame(make_city(users, pois, days, seed, density), seed)
