"""File formats. Each module offers `sniff`, `read` and `rows`; rows know how to write themselves back."""

from pathlib import Path
from types import ModuleType

from ghostpoi.data.checkins import Checkins
from ghostpoi.data.formats import table, tsmc2014
from ghostpoi.data.formats.compression import binary_kind, load
from ghostpoi.data.formats.rows import Rows, Source
from ghostpoi.errors import InputError

FORMATS: dict[str, ModuleType] = {"tsmc2014": tsmc2014, "table": table}  # in the order in which they are tried

__all__ = ["FORMATS", "Rows", "Source", "read", "read_rows"]


def read(path: Path, mapping: dict[str, str] | None = None, format: str | None = None) -> tuple[Checkins, Source]:
    """Read a check-in file of any known format."""
    data = load(path)
    if format is not None and format not in FORMATS:
        raise InputError(f"there is no format {format!r}; formats are {', '.join(FORMATS)}")
    head = data[:65536]
    for name, module in FORMATS.items():
        if name == format or (format is None and module.sniff(head)):
            checkins: Checkins
            checkins, source = module.read(path, data, mapping or {})
            return checkins, source
    raise InputError(f"{path} {binary_kind(head)}")


def read_rows(source: Source) -> Rows:
    """Every field of a file that was read, to be written back."""
    rows: Rows = FORMATS[source.format].rows(source, load(source.path))
    return rows
