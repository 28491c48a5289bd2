"""What steps are given: check-ins, a path or a data frame, with how to read and to divide them, and settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ghostpoi.errors import InputError
from ghostpoi.options import Option, declared, groups, option

if TYPE_CHECKING:
    from ghostpoi import formats
    from ghostpoi.formats.source import Query
    from ghostpoi.regions.engine import Scale
    from ghostpoi.release.private_folder import RowsRequest

TABLE = "the table"  # what messages call a data frame
VENUES = "the venues"
IN_DATABASES = ("table", "query", "order_by")  # the options that are for databases
VENUES_FILE = "venues.csv"  # as which a data frame of venues is read
FRAMES = {TABLE: "table", VENUES: "venues"}  # how a call that is shown names them
SECTION, REGION = "regions.", "region"  # of settings, of --map


class Given(SimpleNamespace):
    """The options of a step by keyword, as options.toml declares them: those that were given, and defaults."""

    def __init__(self, step: str, values: Mapping[str, Any]) -> None:
        options = [one for one in declared()[step].values() if one.only != "command"]
        super().__init__(**{one.keyword: _of_type(one, values.get(one.keyword)) for one in options})

    @property
    def reading(self) -> dict[str, Any]:
        """What is stated about how to read the file."""
        return {name: vars(self)[name] for name in groups()["reading options"] if name in vars(self)}

    @property
    def fields(self) -> dict[str, str]:
        """Which column holds each field: what the settings file states, then what the caller does."""
        from ghostpoi.settings import columns_of

        return columns_of(self.config) | self.map

    @property
    def dividing(self) -> dict[str, Any]:
        """What is stated about how to divide a dataset, as far as something is."""
        return {name: found for name in groups()["region options"] if (found := vars(self)[name])}


def _of_type(one: Option, value: Any) -> Any:
    value = one.python_default if value is None else value
    if one.type == "settings":
        return [f"{key}={text}" for key, text in value.items()] if isinstance(value, Mapping) else list(value)
    if one.type == "mapping":
        return dict(value or {})
    if one.is_list and isinstance(value, str):
        return [value]
    if one.type == "path" and value is not None:
        return tuple(map(Path, value)) if one.many else Path(value)
    return value


def source_of(source: Any, options: Mapping[str, Any], name: str = TABLE) -> formats.Source:
    """Return how to read a file or a data frame, with what the caller states about it."""
    from ghostpoi import formats
    from ghostpoi.formats.source import is_url, limit_of

    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    limit, beside = limit_of(given.pop("max_size", None)), {}
    for key in {"columns", "normalise"} & given.keys():
        given[key] = given[key] if isinstance(given[key], str) else ",".join(given[key])
    if "venues" in given:
        venues = given["venues"]
        if not isinstance(venues, str | os.PathLike):
            from ghostpoi.formats.frames import as_csv  # slow to import

            venues, beside = VENUES_FILE, {VENUES_FILE: as_csv(venues)}
        given["venues"] = str(venues)
    is_path = isinstance(source, str | os.PathLike)
    if query := _query(str(source) if is_path else "", {name: given.pop(name, "") for name in IN_DATABASES}):
        place = Path(query.place if not is_url(query.place) else str(query))
        return formats.Source(place, formats.Reading(**given), limit, beside=beside, query=query, named=str(query))
    stated = formats.Source(Path(source if is_path else name), formats.Reading(**given), limit, beside=beside)
    if is_path:
        return stated
    from ghostpoi.formats.frames import frame_source

    return frame_source(source, stated)


def _query(place: str, asked: Mapping[str, Any]) -> Query | None:
    """Return what to read from a database; None if the check-ins are in none."""
    from ghostpoi.formats.content import database_of
    from ghostpoi.formats.source import Query

    if not database_of(place):
        if given := next((name for name, value in asked.items() if value), ""):
            raise InputError(
                f"{option(given, asked[given])} is for a database: postgresql://USER@HOST/DATABASE, or a file of "
                "SQLite or DuckDB"
            )
        return None
    columns = [asked["order_by"]] if isinstance(asked["order_by"], str) else asked["order_by"]
    order_by = tuple(name.strip() for text in columns for name in text.split(",") if name.strip())
    return Query(place, asked["table"], asked["query"], order_by)


def divided(
    given: Given, fields: Mapping[str, str] | None = None, texts: list[str] | None = None
) -> tuple[Scale | None, dict[str, str], list[str]]:
    """Return how to divide a dataset, if an option asks for that, and the fields and settings that tables can have."""
    fields, texts = dict(fields or {}), texts or []
    region, own = fields.pop(REGION, None), [text for text in texts if text.startswith(SECTION)]
    texts = [text for text in texts if text not in own]
    if not (own or region is not None or given.dividing):
        return None, fields, texts
    from ghostpoi.formats.source import bytes_of
    from ghostpoi.regions.engine import Scale
    from ghostpoi.settings import Divided, override

    return Scale(
        settings=override(Divided(), own).regions, region_column=region or "", engine=given.engine or "local",
        workers=given.workers, scheduler=given.scheduler,
        memory=None if given.memory is None else bytes_of(given.memory, "memory"),
    ), fields, texts  # fmt: skip


def rows_request(given: Given, fields: dict[str, str], texts: list[str]) -> RowsRequest:
    """Return what `protect` is asked for, with these fields and settings; refuse values that no release can have."""
    from ghostpoi.data.places import read_taxonomy
    from ghostpoi.draw import publication as known
    from ghostpoi.release.private_folder import RowsRequest
    from ghostpoi.settings import changed

    method, purpose, no_candidate = given.method, given.purpose, given.no_candidate
    if no_candidate is None:
        no_candidate = known.preset(purpose, method)[known.WITHHOLD] if purpose else "keep"
    if no_candidate not in ("keep", "withhold"):
        raise InputError(f"{option('no_candidate', no_candidate)}: use keep or withhold")
    base = known.with_preset(known.publication(method, given.protocol), purpose, method)
    known.check_read(settings := changed(base, texts, given.config), base, changed(base, texts, None))
    settings = known.with_identity(settings, {"pseudonyms": given.pseudonyms, "times": given.times}, texts)
    return RowsRequest(
        settings=settings, method=method, protocol=given.protocol, device=known.device_for(given.device, settings),
        mapping=fields, keep=tuple(given.keep), drop=tuple(given.drop), withhold=no_candidate == "withhold",
        keep_metadata=given.keep_metadata, purpose=purpose or "",
        groups=read_taxonomy(given.taxonomy) if given.taxonomy else {},
    )  # fmt: skip
