"""`ghostpoi.report`: write pages about a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from ghostpoi.api.reading import PathLike, ReadingOptions, optional, source_of
from ghostpoi.api.wording import caller, step
from ghostpoi.api.written import ReleaseLike, folder_of, private_of
from ghostpoi.errors import InputError


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
    release: ReleaseLike, *, output: PathLike | None = None, compare: Sequence[ReleaseLike] = (),
    private: PathLike | None = None, with_clean: bool = False, map: Mapping[str, str] | None = None,
    audit: Sequence[PathLike] = (), title: str = "", publisher: str = "", license: str = "",
    **reading: Unpack[ReadingOptions],
) -> Report:  # fmt: skip
    """Write an offline page about a release: verdict, map, plausibility, utility, trade-off.

    `compare` lists other releases of the same file. `with_clean=True` shows clean data beside the release, on a page in
    the private folder; never publish it.

    >>> [path.name for path in ghostpoi.report("release").pages]
    ['report.html', 'card.md', 'croissant.json']
    """
    from ghostpoi.publish.manifest import read_manifest, seal_of
    from ghostpoi.reports.page import write_pages
    from ghostpoi.reports.release_view import About

    folder, about = folder_of(release), About(title, publisher, license)
    source = source_of(folder, reading)
    if folder.is_dir() and "regions" in read_manifest(folder):
        if with_clean:
            raise InputError(f"--with-clean is for a release of one region, and {folder} has many; leave it out")
        caller().say(f"warning: the page about {folder} is drawn from all its rows, which must fit into memory")
    pages = write_pages(
        source, private=private_of(release, private) if with_clean else optional(private), with_clean=with_clean,
        compare=tuple(folder_of(other) for other in compare), output=optional(output), mapping=dict(map or {}),
        audits=tuple(Path(path) for path in audit), about=about,
    )  # fmt: skip
    if folder.is_dir() and not seal_of(folder).signer:
        caller().say(
            f"warning: {folder} is unsigned, so its figures may have been changed; check them with verify --against"
        )
    return Report(tuple(pages))
