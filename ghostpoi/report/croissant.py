"""Croissant 1.0 metadata of a release, for search engines and data loaders.

Everything in it comes from the manifest and the released file, so the same release always gives the same bytes.
"""

import json
import re
from importlib import resources
from typing import Any

from ghostpoi.report.data_file import CITATION, KEYWORDS, LICENSE, DataFile, describe
from ghostpoi.report.labels import LIMITS
from ghostpoi.report.release_view import ReleaseView

FILE, RECORDS = "data-file", "checkins"  # ids inside the metadata
PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+")


def croissant(release: ReleaseView) -> str:
    """Return the metadata of a release as JSON."""
    manifest, file = release.manifest, describe(release)
    digest, tool = manifest["data"]["sha256"], manifest["tool"]
    context = (resources.files("ghostpoi.report") / "assets" / "croissant-context.json").read_text("utf-8")
    metadata = {
        "@context": json.loads(context),
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": f"protected-checkins-{digest[:12]}",
        "description": (
            f"{file.rows:,} check-ins, protected with {tool['name']} {tool['version']}, method {manifest['method']}. "
            "Venues are replaced by others of the same category nearby, so that next-POI models learn less from them. "
            "Rows, users, times and categories are genuine. See card.md and manifest.json for the settings and the "
            "measured protection."
        ),
        "license": LICENSE,
        "version": f"1.0.0+{digest[:12]}",
        "citeAs": CITATION,
        "keywords": list(KEYWORDS),
        "rai:dataLimitations": [f"{title} {text}" for title, text in LIMITS],
        "rai:personalSensitiveInformation": ["Visits of people: pseudonymous users, times and venue categories."],
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": FILE,
                "name": file.path.name,
                "description": f"The released check-ins: {file.layout}.",
                "contentUrl": file.path.name,
                "contentSize": f"{file.path.stat().st_size} B",
                "encodingFormat": file.mime_type,
                "sha256": digest,
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": RECORDS,
                "name": RECORDS,
                "description": "One record per check-in, in the order of the publisher's file.",
                "field": [_field(file, at) for at in range(len(file.columns))],
            }
        ],
    }
    return json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"


def _field(file: DataFile, at: int) -> dict[str, Any]:
    column = file.columns[at]
    # The dot keeps a made-up id apart from every plain name.
    name = column.name if PLAIN_ID.fullmatch(column.name) else f"column.{at + 1}"
    field = {
        "@type": "cr:Field",
        "@id": f"{RECORDS}/{name}",
        "name": column.name or name,
        "description": column.description,
        "dataType": column.type,
    }
    if not file.has_header:
        # Croissant cannot declare a table without a header, but it can cut lines.
        extract: dict[str, Any] = {"extract": {"fileProperty": "lines"}}
        extract["transform"] = {"regex": rf"(?:[^\t]*\t){{{at}}}([^\t\r]*)"}
    elif column.title:
        extract = {"extract": {"column": column.title}}
    else:
        return field  # no source can refer to a column without a name
    return field | {"source": {"fileObject": {"@id": FILE}} | extract}
