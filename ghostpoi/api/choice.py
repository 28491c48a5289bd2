"""`ghostpoi.choose`: try settings on a table and recommend one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ghostpoi.api.door import Door, step
from ghostpoi.api.given import VENUES, PathLike, ReadingOptions, assignments, divided, mapped, optional, source_of
from ghostpoi.api.release import rows_request
from ghostpoi.errors import InputError
from ghostpoi.options import option

if TYPE_CHECKING:
    from ghostpoi.api.given import Source


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
        """The recommended settings, one of `tried`; None if no setting keeps all that was asked for."""
        found: dict[str, Any] | None = self.found["recommended"]
        return found

    @property
    def settings(self) -> dict[str, str]:
        """What `protect(set=...)` takes: the recommended settings or, if there are none, the nearest ones."""
        best = self.recommended or self.found["nearest"]
        return dict(text.split("=", 1) for text in best["settings"])

    @property
    def tried(self) -> list[dict[str, Any]]:
        """All settings that were tried, with what each protects and keeps."""
        found: list[dict[str, Any]] = self.found["tried"]
        return found

    def __bool__(self) -> bool:
        return self.recommended is not None

    def __repr__(self) -> str:
        best = self.recommended
        of = f"of {len(self.tried)} settings"
        return f"Choice({best['name']}, {of})" if best else f"Choice(none {of} keeps all that was asked for)"


@step
def choose(
    door: Door, source: Source, *, output: PathLike | None = None, max_mean_km: float = 2.0, min_flows: float = 0.4,
    max_popularity_js: float = 0.1, min_rhythm: float = 1.0, keep_category: str = "any", pseudonyms: str = "keep",
    leak: float = 0.05, seeds: int = 3, map: Mapping[str, str] | None = None,
    set: Mapping[str, Any] | Sequence[str] = (), config: PathLike | None = None, taxonomy: PathLike | None = None,
    keep: Sequence[str] = (), drop: Sequence[str] = (), cache: PathLike | None = None, engine: str | None = None,
    workers: int = 0, scheduler: str = "", memory: str | None = None, regions: int | None = None,
    **reading: Unpack[ReadingOptions],
) -> Choice:  # fmt: skip
    """Try settings on a table and recommend the safest one that keeps what you need.

    A choice is true if it recommends one. With `output`, write a page about all trials; it describes clean data, so
    keep it private. `cache` is a private folder for finished work. With `engine`, settings are tried region by region,
    on `regions` of them, by default as many as have 300,000 rows.

    >>> ghostpoi.choose("checkins.csv", max_mean_km=3, seeds=1, cache="cache")
    Choice(..., of 12 settings)
    """
    from ghostpoi.audits.cache import default_folder, open_cache
    from ghostpoi.audits.choose import STRICTNESS, Asked, Wishes
    from ghostpoi.audits.choose import choose as try_settings
    from ghostpoi.reports.page import write_choice

    texts, page = assignments(set), optional(output)
    at_scale, fields, settings = divided(mapped(map, config), texts, engine, workers, scheduler, memory)
    _check(texts, keep_category, STRICTNESS, leak, page)
    if regions is not None and at_scale is None:
        raise InputError(
            f"{option('regions')} is for a dataset of many regions and needs {option('engine')}; leave it out"
        )
    wishes = Wishes(
        max_mean_km=max_mean_km, min_flows=min_flows, max_popularity_js=max_popularity_js,
        min_rhythm=min_rhythm, keep_category=keep_category,  # type: ignore[arg-type]
    )  # fmt: skip
    asked = None if pseudonyms == "keep" else pseudonyms
    rows = rows_request(
        "crowd", map=fields, set=settings, config=config, keep=keep, drop=drop, pseudonyms=asked, taxonomy=taxonomy
    )
    request = Asked(
        rows=rows, wishes=wishes, leak=leak, seeds=seeds,
        cache=open_cache(Path(cache) if cache else default_folder()),
    )  # fmt: skip
    file = source_of(source, reading)
    stated = file.reading.stated | (file.query.stated if file.query else {})
    if not isinstance(reading.get("venues", ""), str | os.PathLike | None):
        stated["venues"] = VENUES
    with door.bar(1.0) as progress:
        found = try_settings(file, request, at_scale, regions, door.say, progress)
    given: dict[str, Any] = {"engine": engine, "workers": workers, "scheduler": scheduler, "memory": memory}
    other = found["times"] if found["times"] != rows.settings.identity.times else None
    for one in found["tried_times"]:
        one["refused"] = door.text(one["refused"])
        one["missed"] = [door.text(wish) for wish in one["missed"]]
    for trial in found["tried"]:
        grouping = "method.category=group" in trial["settings"]
        repeated = {
            "set": [*texts, *trial["settings"]], "map": dict(map or {}), "keep": list(keep), "drop": list(drop),
            **stated, "config": config, "taxonomy": taxonomy if grouping else None,
            "pseudonyms": asked, "times": other, **{name: value or None for name, value in given.items()},
        }  # fmt: skip
        trial["command"] = door.call("protect", file.place, repeated)
        trial["missed"] = [door.text(wish) for wish in trial["missed"]]
    if page is not None:
        write_choice(page, file.path.name, found)
    return Choice(found, page)


def _check(texts: list[str], keep_category: str, strictness: Sequence[str], leak: float, page: Path | None) -> None:
    """Refuse what can be refused before any work."""
    if keep_category not in strictness:
        raise InputError(f"{option('keep_category', keep_category)}: use exact, group or any")
    if not 0 < leak <= 1:
        raise InputError(f"{option('leak', f'{leak:g}')}: give a share above 0 and at most 1; the paper's is 0.05")
    if own := [text for text in texts if text.startswith("method.")]:
        raise InputError(f"{option('set', own[0])}: choose tries the settings of the method itself; leave it out")
    if own := [text for text in texts if text.startswith("identity.")]:
        raise InputError(f"{option('set', own[0])}: use {option('pseudonyms')} instead")
    if page is not None and (not page.parent.is_dir() or page.is_dir()):
        raise InputError(f"{option('output', page)}: give the name of a page in a folder that exists")
