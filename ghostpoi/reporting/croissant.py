"""Croissant 1.0 metadata of a release, for search engines and data loaders.

Everything in it comes from the manifest and the released file, so the same release always gives the same bytes.
"""

import json
import re
from typing import Any

from ghostpoi.reporting import labels
from ghostpoi.reporting.column_descriptions import DataFile, describe
from ghostpoi.reporting.release_view import NOTHING_SAID, About, ReleaseView
from ghostpoi.reporting.templates import TEXTS, template

PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+")


def croissant(release: ReleaseView, about: About = NOTHING_SAID) -> str:
    """Return the metadata of a release as JSON."""
    file = describe(release)
    fields = [_field(file, at) for at in range(len(file.columns))]
    share = {"share": lambda value: labels.share(value, 1)}
    made = template("croissant.json", share, finalize=json.dumps)  # every value that it prints is written as JSON
    text = made.render(
        texts=TEXTS, about=about, m=release.manifest, file=file, fields=fields, summary=release.summary,
        citations=release.citations, pseudonyms=release.pseudonyms, limits=release.limits,
    )  # fmt: skip
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def _field(file: DataFile, at: int) -> dict[str, Any]:
    column = file.columns[at]
    # The dot keeps a made-up id apart from every plain name.
    name = column.name if PLAIN_ID.fullmatch(column.name) else f"column.{at + 1}"
    field = {
        "@type": "cr:Field",
        "@id": f"checkins/{name}",
        "name": column.name or name,
        "description": column.description,
        "dataType": column.type,
    }
    if file.records is not None:
        path = file.records.json_path(column.name)
        by_line = file.mime_type == "application/jsonlines"
        if not path or (by_line and path != f"$[{json.dumps(column.name, ensure_ascii=False)}]"):
            return field  # Croissant cannot refer to cells of workbooks, nor to what is inside a value of a line
        extract: dict[str, Any] = {"extract": {"column": column.name} if by_line else {"jsonPath": path}}
    elif not file.has_header:
        # Croissant cannot declare a table without a header, but it can cut lines.
        extract = {"extract": {"fileProperty": "lines"}}
        extract["transform"] = {"regex": rf"(?:[^\t]*\t){{{at}}}([^\t\r]*)"}
    elif column.title:
        extract = {"extract": {"column": column.title}}
    else:
        return field  # no source can refer to a column without a name
    return field | {"source": {"fileSet" if file.parts else "fileObject": {"@id": "data-file"}} | extract}
