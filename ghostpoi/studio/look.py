"""What is in a file: its columns and what becomes of each, and a sample of its people for quick trials."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi import formats
from ghostpoi.api.door import Door
from ghostpoi.api.given import Given, rows_request, source_of
from ghostpoi.data.checkins import FIELDS
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.formats import CheckinFile, Source
from ghostpoi.formats.content import load
from ghostpoi.formats.fields import COLUMN_NAMES, plain_name
from ghostpoi.formats.text import first_line
from ghostpoi.options import in_studio, values_of
from ghostpoi.release.plan import plan

SAMPLE = 15_000  # rows, at least
SHOWN = 3  # examples of each column
LONG = 40  # characters of an example


def look(folder: Path, request: Mapping[str, Any], door: Door) -> dict[str, Any]:
    """Read a file; where that fails, say why and list the columns, so that they can be mapped."""
    source = source_of(request["file"], request["reading"])
    with door.bar(3) as report:
        report("reading the file", 0)
        try:
            file = formats.read(source, dict(request["map"]))
        except InputError as e:
            said = in_studio(e.text).replace(f"{source.path.parent}/", "")
            columns = _bare(source, request["map"])
            held = {one["field"] for one in columns}
            held |= {"category"} | ({"lat", "lon"} if "point" in held else set())
            lacking = [one for one in FIELDS if one not in held] if columns else []
            return {"readable": False, "error": said, "columns": columns, "lacking": lacking}
        table = file.table
        report("testing what each column reveals", 1)
        columns, sentence = _columns(file, request, door)
        report("drawing a sample", 1)
        chosen = _sample(file, folder / f"sample{''.join(source.path.suffixes[:1])}")
        report("", 1)
    times = [f"{datetime.fromtimestamp(int(t), UTC):%-d %B %Y}" for t in (table.time.min(), table.time.max())]
    return {
        "readable": True, "columns": columns, "sentence": sentence,
        "rows": len(table), "users": len(table.user_ids), "venues": len(table.venue_ids) - 1,
        "categories": len(table.category_ids), "first": times[0], "last": times[1], "sample": chosen,
    }  # fmt: skip


def _columns(file: CheckinFile, request: Mapping[str, Any], door: Door) -> tuple[list[dict[str, Any]], str]:
    """Return what each column was taken for and what becomes of it, and a sentence if some must be decided on."""
    asked = Given("protect", {"config": request["config"]} | request["changes"])
    given = rows_request(asked, request["map"], [])
    sentence, fate = "", dict[str, tuple[str, str]]()
    try:
        found = plan(given, file, door.say).columns
        fate = dict.fromkeys(found.change, ("changes", "it follows from the venue"))
        fate |= {name: ("stays", found.why.get(name, "")) for name in found.keep}
        fate |= dict.fromkeys(found.drop, ("left out", "you decided so"))
    except InputError as e:
        sentence = in_studio(e.text).removeprefix(f"{file.path}: ")
        fate = dict.fromkeys(values_of("drop", e.text), ("decide", ""))
    stays, times = ("stays", "the release relies on it"), given.settings.identity.times
    fate[file.mapping["user"]] = ("changes", "other ids") if given.settings.hides_users else stays
    fate[file.mapping["time"]] = stays if times == "keep" else ("changes", times)
    field, rows = {column: field for field, column in file.mapping.items()}, file.all_rows
    each = {name: rows.get_column(name).head(50).to_list() for name in rows.columns}
    return _described(each, field, fate), sentence


def _described(
    each: Mapping[str, Sequence[Any]], field: Mapping[str, str], fate: Mapping[str, tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return columns, of which the first values are given, as the page shows them."""
    return [
        {"name": name, "examples": _examples(values), "field": field.get(name, ""),
         "fate": fate.get(name, ("", ""))[0], "why": fate.get(name, ("", ""))[1]}
        for name, values in each.items()
    ]  # fmt: skip


def _examples(values: Sequence[Any]) -> list[str]:
    found = dict.fromkeys(str(value) for value in values if value not in (None, ""))
    return [text if len(text) <= LONG else f"{text[: LONG - 1]}…" for text in list(found)[:SHOWN]]


def _bare(source: Source, given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the columns of a table with the fields that their names suggest; none of a file of another kind."""
    each = dict[str, list[Any]]()
    with suppress(InputError):
        data = load(source)
        for content in (data, data[: data.find(b"\n", first_line(data)) + 1]):  # rows may be damaged
            with suppress(InputError):
                rows = formats.decoded(source, content)[1]
                each = each or {name: rows.get_column(name).head(50).to_list() for name in rows.columns}
    field = {column: name for name, column in given.items()}
    plain = {name: plain_name(name) for name in each if name not in field}
    for wanted, tiers in COLUMN_NAMES.items():
        fits = next(filter(None, ([n for n, name in plain.items() if name in tier] for tier in tiers)), [])
        if wanted not in given and len(fits) == 1:
            field[fits[0]] = wanted
    return _described(each, field, {})


def _sample(file: CheckinFile, path: Path) -> dict[str, Any]:
    """Write all rows of some people, drawn by chance, in the form of the file."""
    size = np.bincount(file.table.user)
    order = np.random.default_rng(0).permutation(len(size))
    count = int(np.searchsorted(np.cumsum(size[order]), SAMPLE)) + 1
    chosen = np.zeros(len(size), bool)
    chosen[order[:count]] = True
    rows = np.flatnonzero(chosen[file.table.user])
    with replacing(path, mode=0o600) as out:
        file.rows.take(rows).write(out)
    return {"file": str(path), "users": int(chosen.sum()), "rows": len(rows), "whole": bool(chosen.all())}
