"""The small city in the layouts of other tools, each written once."""

import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import sample_releases
from small_city import called, city, scratch

from ghostpoi import formats


@dataclass(frozen=True)
class Visit:
    user: str
    poi: str
    category: str
    lat: float
    lon: float
    time: datetime


@cache
def visits() -> list[Visit]:
    table = formats.read(city()).table
    columns = (
        table.user_ids[table.user], table.venue_ids[table.venue], table.category_ids[table.category],
        table.lat.tolist(), table.lon.tolist(), [datetime.fromtimestamp(t, UTC) for t in table.time.tolist()],
    )  # fmt: skip
    return [Visit(*row) for row in zip(*columns, strict=True)]


def written(name: str, line: Callable[[Visit], str], header: str = "") -> Path:
    """Write the city with one line per visit."""
    path = scratch() / name
    if not path.exists():
        path.write_text(header + "".join(f"{line(v)}\n" for v in visits()))
    return path


def snap() -> Path:
    """As SNAP's Gowalla: user, time, latitude, longitude, location id."""
    return written("snap.txt", lambda v: f"{v.user}\t{v.time:%Y-%m-%dT%H:%M:%SZ}\t{v.lat}\t{v.lon}\t{v.poi}")


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def shown(folder: Path) -> tuple[str, list[int]]:
    """The caption and the bars of the chart."""
    assert called("report", folder).returncode == 0
    page = (folder / "report.html").read_text()
    caption = re.search(r'id="caption-hours">([^<]*)<', page)
    assert caption
    return caption[1], list(sample_releases.charts(folder)["hours"].figure.series[0].values)


def counted(local: Callable[[datetime], datetime]) -> list[int]:
    hours = [local(v.time).hour for v in visits()]
    return [hours.count(h) for h in range(24)]
