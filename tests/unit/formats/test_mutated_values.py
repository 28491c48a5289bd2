"""Damaged JSON, GeoJSON, workbooks and tables of venues: one sentence, never another error."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_real_samples import DYNA, FEATURES, GEO, RECORDS, xlsx

from ghostpoi import formats
from ghostpoi.errors import InputError
from ghostpoi.formats import Reading

COLLECTION = {"type": "FeatureCollection", "name": "x", "features": FEATURES}
SAMPLES: dict[str, bytes] = {
    "x.jsonl": "".join(json.dumps(r) + "\n" for r in RECORDS).encode(),
    "x.json": json.dumps(RECORDS).encode(),
    "x.geojson": json.dumps(COLLECTION).encode(),
    "x.geo": GEO.encode(),
}
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def read(path: Path, content: bytes) -> None:
    """Read and write back what is accepted; it must read the same again."""
    path.write_bytes(content)
    try:
        if path.suffix == ".geo":
            data = path.with_suffix(".dyna")
            data.write_text(DYNA)
            formats.read(formats.Source(data, Reading(venues=str(path))))
            return
        file = formats.read(path)
    except InputError:  # the command line prints it as one line
        return
    out = io.BytesIO()
    file.rows.write(out)
    again = path.with_name(f"again{path.suffix}")
    again.write_bytes(out.getvalue())
    rows = formats.read(again, file.mapping, file.format).rows
    for name in file.rows.columns:
        assert rows.get_column(name).equals(file.rows.get_column(name))


@pytest.mark.parametrize("name", SAMPLES)
@quick
@given(data=st.data())
def test_bytes_that_changed(name: str, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(SAMPLES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        piece = data.draw(st.binary(max_size=3) | st.sampled_from([b"{", b"}", b'"', b"\n", b",", b"null", b"1e999"]))
        content[at : at + data.draw(st.integers(0, 3))] = piece
    read(tmp_path / name, bytes(content))


@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
@quick
@given(extra=st.lists(st.dictionaries(st.text(max_size=4), values, max_size=4), min_size=3, max_size=3))
def test_any_values_in_other_columns(name: str, tmp_path: Path, extra: list[dict[str, Any]]) -> None:
    rows = [extra[at] | row for at, row in enumerate(RECORDS)]
    text = json.dumps(rows) if name == "x.json" else "".join(json.dumps(r) + "\n" for r in rows)
    read(tmp_path / name, text.encode())


@quick
@given(extra=st.lists(st.dictionaries(st.text(max_size=4), values, max_size=4), min_size=3, max_size=3))
def test_any_properties(tmp_path: Path, extra: list[dict[str, Any]]) -> None:
    features = [f | {"properties": extra[at] | f["properties"]} for at, f in enumerate(FEATURES)]
    read(tmp_path / "x.geojson", json.dumps(COLLECTION | {"features": features}).encode())


@quick
@given(data=st.data())
def test_parts_of_a_workbook_that_changed(tmp_path: Path, data: st.DataObject) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(xlsx())) as parts, zipfile.ZipFile(out, "w") as archive:
        names = parts.namelist()
        which = data.draw(st.sampled_from(names))
        for name in names:
            content = bytearray(parts.read(name))
            if name == which:
                at = data.draw(st.integers(0, len(content) - 1))
                content[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=4))
            archive.writestr(name, bytes(content))
    read(tmp_path / "x.xlsx", out.getvalue())
