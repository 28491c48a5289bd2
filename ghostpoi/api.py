"""The Python API: protect a polars or pandas DataFrame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Longs
from ghostpoi.data.formats.fields import find_columns, to_checkins
from ghostpoi.errors import InputError
from ghostpoi.publish.columns import classify
from ghostpoi.publish.device_choice import device_for
from ghostpoi.publish.protect import protect_table
from ghostpoi.publish.pseudonyms import draw, hidden
from ghostpoi.publish.publication_settings import publication, with_pseudonyms
from ghostpoi.publish.whole_table import check_category, donor_rows, prepare
from ghostpoi.randomness import Seed
from ghostpoi.settings import override

if TYPE_CHECKING:
    import pandas

Frame = TypeVar("Frame", pl.DataFrame, "pandas.DataFrame")


def protect(
    table: Frame,
    method: str = "crowd",
    *,
    seed: int | None = None,
    protocol: str = "strong",
    columns: dict[str, str] | None = None,
    set: Sequence[str] = (),
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    pseudonyms: str | None = None,
    device: str = "auto",
) -> Frame:
    """Return the table with venues substituted. Rows, order, types and all other columns stay the same.

    `pseudonyms="session"` or "week" also replaces user ids by random ones that change with every session or week; rows
    are then ordered by time, and nothing tells which pseudonyms belong together.

    `columns` maps fields to columns, e.g. {"poi": "venue_id"}. `set` holds settings, e.g. ["method.size=64"]. `keep`
    names columns to keep even though they may reveal clean venues, `drop` columns to leave out. Omit `seed` for a real
    release: ghostpoi then draws 128 bits from the operating system, and nobody can repeat the draws.
    """
    frame = table if isinstance(table, pl.DataFrame) else _from_pandas(table)
    if frame.height == 0:
        raise InputError("the table has no check-ins; give at least one row")
    settings = override(publication(method, protocol), list(set), "set")
    settings = with_pseudonyms(settings, pseudonyms, list(set))
    mapping = find_columns(frame.columns, columns or {}, "the table")
    fields = frame.select(pl.col(column).alias(field) for field, column in mapping.items())
    checkins = to_checkins(fields, mapping.get("category", ""), lambda row: f"row {row + 1}")
    check_category(checkins, settings.method)
    found = classify(checkins, frame, mapping, "the table", list(keep), list(drop), hidden(checkins, settings))
    change, user = found.change, mapping["user"]
    hides_users = settings.identity.pseudonyms != "keep"
    if levels := [name for name in change if name not in table.columns]:
        raise InputError(f"the index {levels[0]!r} changes with the venue; make it a column with reset_index() first")
    if hides_users and user not in table.columns:
        raise InputError(f"the index {user!r} gets pseudonyms; make it a column with reset_index() first")
    whole = prepare(checkins, settings)
    secret = Seed.fresh() if seed is None else Seed(seed)
    released = protect_table(whole, settings, secret, device_for(device, settings))
    donor = donor_rows(whole, released, settings.method, secret, every=hides_users)
    result: Any
    if isinstance(table, pl.DataFrame):
        result = table.with_columns(table[name].gather(pl.Series(donor)) for name in change).drop(found.drop)
    else:
        result = table.drop(columns=found.drop)
        for name in change:
            result[name] = result[name].take(donor).set_axis(result.index)
    if hides_users:
        kind = frame[user].dtype
        new = draw(checkins, np.arange(len(checkins)), settings, secret, _largest_number(kind))
        number = int if kind.is_integer() else float if kind.is_float() else str
        result = _with_users(result, user, [number(i) for i in new.released_ids], new.row)
    return cast(Frame, result)


def _largest_number(kind: pl.DataType) -> int | None:
    """Return the largest number that a column of user ids can hold; None if it can hold any text."""
    if kind.is_integer():
        return int(pl.select(pl.lit(0, kind).upper_bound()).item())
    if kind.is_float():
        return 1 << (24 if kind == pl.Float32 else 53)
    if kind in (pl.String, pl.Categorical, pl.Enum):
        return None
    raise InputError(f"user ids of type {kind} cannot become pseudonyms; store them as text or numbers")


def _with_users(table: Any, column: str, ids: list[Any], row: Longs) -> Any:
    """Return these rows with new user ids, in the type of the old ones. A pandas index that counts rows starts anew."""
    if isinstance(table, pl.DataFrame):
        kind = table[column].dtype
        new = pl.Series(column, ids).cast(pl.Enum(sorted(set(ids))) if kind == pl.Enum else kind)
        return table[row].with_columns(new)
    counted = type(table.index).__name__ == "RangeIndex"
    table = table.iloc[row].reset_index(drop=True) if counted else table.iloc[row]
    old = table[column]
    same = "category" if str(old.dtype) == "category" else old.dtype
    return table.assign(**{column: type(old)(ids, index=table.index, dtype=same)})


def _from_pandas(table: Any) -> pl.DataFrame:
    """Convert a pandas frame. Index levels become columns, because they may reveal the venue like any column."""
    if not (hasattr(table, "iloc") and hasattr(table, "columns")):
        raise InputError(f"protect takes a polars or pandas DataFrame, not {type(table).__name__}")
    if not (table.columns.is_unique and all(isinstance(name, str) for name in table.columns)):
        raise InputError("the column names of the table must be distinct strings; rename them")
    try:
        frame: pl.DataFrame = pl.from_pandas(table.reset_index(drop=type(table.index).__name__ == "RangeIndex"))
        return frame
    except (ValueError, TypeError, pl.exceptions.PolarsError) as e:  # pyarrow's errors are ValueErrors
        reason = str(e).splitlines()[0]
        raise InputError(f"the table cannot be read ({reason}); store text, numbers and times in its columns") from None
