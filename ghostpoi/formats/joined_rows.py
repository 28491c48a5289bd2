"""Rows of several files of one kind, as if they were one file."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from ghostpoi.errors import InputError
from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.kinds import PARQUET
from ghostpoi.formats.rows import Rows
from ghostpoi.formats.source import Source
from ghostpoi.formats.text_rows import TextRows, file_of_text


def joined_rows(parts: Sequence[Rows], like: Rows, other: str) -> Rows:
    """Return the rows of all parts as rows of the same kind as `like`. `other`: what its types differ from."""
    if isinstance(like, TextRows):
        texts = [part for part in parts if isinstance(part, TextRows)]
        frame = pl.concat([part.frame.select(like.columns) for part in texts])
        returns = None
        if any(part.returns is not None for part in [like, *texts]):
            missing = [pl.repeat(False, part.frame.height, eager=True) for part in texts]
            returns = pl.concat([m if p.returns is None else p.returns for p, m in zip(texts, missing, strict=True)])
        dialects = [part.dialect for part in [like, *texts]]
        if any(d.controls for d in dialects) and any(d.control_separated for d in dialects):
            raise InputError(
                f"{next(d.path for d in dialects if d.controls)} contains control characters (bytes 1d to 1f), and "
                f"{next(d.path for d in dialects if d.control_separated)} quotes or carriage returns; remove them"
            )
        dialect = replace(
            like.dialect, control_separated=any(d.control_separated for d in dialects),
            quoted=any(d.quoted for d in dialects), ascii=all(d.ascii for d in dialects),
            controls=any(d.controls for d in dialects),
            encoding=next((d.encoding for d in dialects if not d.ascii), like.dialect.encoding),
        )  # fmt: skip
        return TextRows(frame, dialect, returns)
    import pyarrow as pa  # slow to import

    from ghostpoi.formats.parquet import ParquetRows

    if isinstance(like, ParquetRows):
        tables = [part.table.select(like.columns) for part in parts if isinstance(part, ParquetRows)]
        try:
            table = pa.concat_tables([one.cast(like.schema) for one in tables]).unify_dictionaries()
        except (pa.ArrowException, ValueError):
            raise InputError(
                f"{like.path}: the types of its columns differ from those of {other}; store the same types"
            ) from None
        return ParquetRows.of(table, like.path)
    raise TypeError(f"rows of {type(like).__name__} cannot be joined")


def can_join(rows: Rows) -> bool:
    """Tell whether rows are of a kind that `joined_rows` takes."""
    if isinstance(rows, TextRows):
        return True
    from ghostpoi.formats.parquet import ParquetRows

    return isinstance(rows, ParquetRows)


def file_of(source: Source, rows: Rows, format: str, mapping: dict[str, str]) -> CheckinFile:
    """Return the check-ins of rows that were read before; `mapping` names the columns that were found then."""
    if isinstance(rows, TextRows):
        return file_of_text(source, rows, format, mapping)
    from ghostpoi.formats.parquet import ParquetRows, file_of_rows

    if isinstance(rows, ParquetRows):
        return file_of_rows(source, rows, PARQUET, mapping)
    raise TypeError(f"rows of {type(rows).__name__} cannot be read again")
