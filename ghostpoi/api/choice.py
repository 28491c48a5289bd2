"""`ghostpoi.choose`: try settings on a table and recommend one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ghostpoi.api.reading import PathLike, ReadingOptions, assignments, opened, optional
from ghostpoi.api.wording import caller, step
from ghostpoi.errors import InputError

if TYPE_CHECKING:
    from ghostpoi.api.reading import Source


@dataclass(frozen=True)
class Choice:
    """The settings that were tried. `found` is what `ghostpoi choose --json` prints, `page` where the page is, if any.

    >>> choice = ghostpoi.choose("checkins.csv", seeds=1, cache="cache")
    >>> ghostpoi.protect("checkins.csv", set=choice.settings)
    Release(5,636 rows, ...)
    """

    found: dict[str, Any] = field(repr=False)
    page: Path | None = None

    @property
    def recommended(self) -> dict[str, Any] | None:
        """The recommended trial; None if no setting keeps all that was asked for."""
        number = self.found["recommended"]
        return None if number is None else self.trials[number]

    @property
    def settings(self) -> dict[str, str]:
        """What `protect(set=...)` takes: the recommended settings or, if there are none, the nearest ones."""
        best = self.recommended or self.trials[self.found["nearest"]]
        return dict(text.split("=", 1) for text in best["settings"])

    @property
    def trials(self) -> list[dict[str, Any]]:
        """All settings that were tried, with what each protects and keeps."""
        found: list[dict[str, Any]] = self.found["trials"]
        return found

    def __bool__(self) -> bool:
        return self.recommended is not None

    def __repr__(self) -> str:
        best = self.recommended
        of = f"of {len(self.trials)} settings"
        return f"Choice({best['name']}, {of})" if best else f"Choice(none {of} keeps all that was asked for)"


@step
def choose(
    source: Source, *, output: PathLike | None = None, max_mean_km: float = 2.0, min_flows: float = 0.5,
    max_popularity_js: float = 0.1, keep_category: str = "any", pseudonyms: str = "keep", leak: float = 0.05,
    seeds: int = 3, map: Mapping[str, str] | None = None, set: Mapping[str, Any] | Sequence[str] = (),
    config: PathLike | None = None, taxonomy: PathLike | None = None, keep: Sequence[str] = (),
    drop: Sequence[str] = (), cache: PathLike | None = None, **reading: Unpack[ReadingOptions],
) -> Choice:  # fmt: skip
    """Try settings on a table and recommend the safest one that keeps what you need.

    A choice is true if there is one. With `output`, write a page about all trials; it describes clean data, so keep it
    private. `cache` is a private folder for finished work.

    >>> ghostpoi.choose("checkins.csv", max_mean_km=3, seeds=1, cache="cache")
    Choice(..., of 12 settings)
    """
    from ghostpoi.data import formats
    from ghostpoi.data.taxonomy import read_taxonomy
    from ghostpoi.evaluate.cache import default_folder, open_cache
    from ghostpoi.evaluate.choose import ChooseRequest, work
    from ghostpoi.evaluate.choose import choose as try_settings
    from ghostpoi.evaluate.choose.options import STRICTNESS, Wishes
    from ghostpoi.publish.pseudonyms import wanted
    from ghostpoi.publish.publication_settings import publication
    from ghostpoi.publish.venue_files import classify_file
    from ghostpoi.publish.whole_table import check_category, grouped
    from ghostpoi.reporting.choice_page import write_choice
    from ghostpoi.settings import changed, override

    texts, page = assignments(set), optional(output)
    _check(texts, keep_category, STRICTNESS, leak, page)
    wishes = Wishes(
        max_mean_km=max_mean_km, min_flows=min_flows, max_popularity_js=max_popularity_js,
        keep_category=keep_category,  # type: ignore[arg-type]
    )  # fmt: skip
    asked = [f"identity.pseudonyms={pseudonyms}"] if pseudonyms != "keep" else []
    settings = override(changed(publication("crowd"), texts, optional(config)), asked)
    by_group = override(settings, ["method.category=group"])
    with opened(source, reading) as file:
        read = formats.read(file, dict(map or {}))
        check_category(read.table, settings if keep_category == "any" else by_group)
        classify_file(read, keep, drop, wanted(read, settings))
        table = grouped(read.table, read_taxonomy(Path(taxonomy)) if taxonomy else {}, by_group.method)
        request = ChooseRequest(
            table=table, settings=settings, wishes=wishes, leak=leak, seeds=seeds,
            cache=open_cache(Path(cache) if cache else default_folder()),
        )  # fmt: skip
        with caller().bar(work(request)) as progress:
            found = try_settings(request, progress)
    for trial in found["trials"]:
        grouping = "method.category=group" in trial["settings"]
        repeated = {
            "set": [*texts, *trial["settings"]], "map": dict(map or {}), "keep": list(keep), "drop": list(drop),
            **read.reading.stated, "config": config, "taxonomy": taxonomy if grouping else None,
            "pseudonyms": pseudonyms if asked else None,
        }  # fmt: skip
        trial["command"] = caller().call("protect", str(file), repeated)
        trial["missed"] = [caller().text(wish) for wish in trial["missed"]]
    if page is not None:
        write_choice(page, file.name, found)
    return Choice(found, page)


def _check(texts: list[str], keep_category: str, strictness: Sequence[str], leak: float, page: Path | None) -> None:
    """Refuse what can be refused before any work."""
    if keep_category not in strictness:
        raise InputError(f"--keep-category {keep_category}: use {', '.join(strictness)}")
    if not 0 < leak <= 1:
        raise InputError(f"--leak {leak:g}: give a share above 0 and at most 1; the paper's is 0.05")
    if own := [text for text in texts if text.startswith("method.")]:
        raise InputError(f"--set {own[0]}: choose tries the settings of the method itself; leave it out")
    if own := [text for text in texts if text.startswith("identity.")]:
        raise InputError(f"--set {own[0]}: use --pseudonyms instead")
    if page is not None and (not page.parent.is_dir() or page.is_dir()):
        raise InputError(f"-o {page}: give the name of a page in a folder that exists")
