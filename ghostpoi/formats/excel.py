"""Excel workbooks (.xlsx): one sheet whose first row names the columns.

A release has a sheet of values only: formulas, formats, other sheets and notes on the author may hold anything.
"""

import datetime
import io
import json
import re
import zipfile
from typing import Any, BinaryIO

from ghostpoi.errors import InputError
from ghostpoi.formats.base import CheckinFile, Format
from ghostpoi.formats.compression import is_workbook
from ghostpoi.formats.records import TIME, RecordRows, json_text, read_records
from ghostpoi.formats.source import Source
from ghostpoi.plugins import installing

PAST = (1980, 1, 1, 0, 0, 0)  # the date of every part of a written workbook, so that the same rows give the same bytes
STAMP = re.compile(rb"(<dcterms:(created|modified)[^>]*>)[^<]*")


class ExcelRows(RecordRows):
    """One sheet."""

    words = "an Excel workbook with one sheet, whose first row names the columns"
    mime_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

    def write(self, out: BinaryIO) -> None:
        openpyxl = _openpyxl("the workbook")
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("checkins")
        sheet.append(self.columns)
        for row in self.records:
            sheet.append([None if text is None else _cell(sheet, _value(text)) for text in row])
        whole = io.BytesIO()
        book.save(whole)
        with zipfile.ZipFile(whole) as parts, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in parts.namelist():
                content = parts.read(name)
                content = STAMP.sub(rb"\g<1>1980-01-01T00:00:00Z", content) if name.startswith("docProps/") else content
                archive.writestr(zipfile.ZipInfo(name, PAST), content, zipfile.ZIP_DEFLATED)


def _read(source: Source, data: bytes, mapping: dict[str, str]) -> CheckinFile:
    openpyxl = _openpyxl(str(source))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            source.check_size(sum(part.file_size for part in parts.infolist()), len(data))
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheets = {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets}
    except InputError:
        raise
    except Exception as e:  # openpyxl raises errors of many kinds on damaged files
        why = (str(e).splitlines() or ["it cannot be read"])[0]
        raise InputError(f"{source} is a damaged workbook ({why}); save it again") from None
    filled = {title: rows for title, rows in sheets.items() if any(any(v is not None for v in row) for row in rows)}
    if len(filled) != 1:
        named = f" ({', '.join(map(repr, filled))})" if filled else ""
        raise InputError(
            f"{source} has {len(filled) or 'no'} sheets with data{named}; leave only the sheet of check-ins in it"
        )
    rows = next(iter(filled.values()))
    while all(value is None for value in rows[-1]):
        rows.pop()
    head = [str(name).strip() if name is not None else "" for name in rows[0]]
    width = max((at for row in rows for at, value in enumerate(row, 1) if value is not None), default=0)
    if len(rows) == 1:
        raise InputError(f"{source} has a row of column names but no check-ins; give at least one row of data")
    if not all(head[:width]) or len(head) < width:
        raise InputError(f"{source}, row 1: a column has no name; name all columns in the first row")
    full = [[*row, *[None] * (width - len(row))] for row in rows[1:]]
    columns = {
        name: [None if row[at] is None else _text(row[at]) for row in full]
        for at, name in enumerate(head[:width])
    }  # fmt: skip
    if len(columns) < width:
        raise InputError(f"{source}, row 1: two columns have the same name; rename one of them")
    return read_records(source, data, "excel", columns, mapping, ExcelRows, "row", first=2)


def _openpyxl(what: str) -> Any:
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"{what} is an Excel workbook, which needs openpyxl; install it with {installing('excel')}, "
            "or export the sheet with the check-ins as CSV"
        ) from None
    return openpyxl


def _text(value: Any) -> str:
    """Return the text of a value as a workbook can hold it: numbers of 16 digits, whole ones without a point."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    if isinstance(value, datetime.datetime | datetime.time):
        return TIME + str(value)
    if isinstance(value, datetime.timedelta):
        return json_text(str(value))
    if isinstance(value, float):
        value = float(f"{value:.16g}")
        return json_text(int(value) if value.is_integer() else value)
    return json_text(value)


def _value(text: str) -> Any:
    if not text.startswith(TIME):
        return json.loads(text)
    if "-" not in text:
        return datetime.time.fromisoformat(text[1:])
    return datetime.datetime.fromisoformat(text[1:])


def _cell(sheet: Any, value: Any) -> Any:
    """Return what to write; text that looks like a formula needs to be marked as text."""
    if not (isinstance(value, str) and value.startswith("=")):
        return value
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value)
    cell.data_type = "s"
    return cell


EXCEL = Format(
    "Excel workbook (.xlsx) with one sheet, whose first row names the columns; needs ghostpoi[excel]",
    is_workbook,
    _read,
)
