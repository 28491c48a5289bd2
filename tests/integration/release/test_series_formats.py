"""A series of any kind of file: overlapping halves of the same table, with all that a venue decides."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from monthly_city import release_in
from small_city import RICH, Release, called, city, rich_csv, rich_parquet

HALVES = ((0.0, 0.6), (0.4, 1.0))


def halves(kind: str, folder: Path) -> list[Path]:
    """Two files that share a fifth of the rows."""
    if kind == "parquet":
        frame = pl.read_parquet(rich_parquet())
        paths = [folder / f"{n}.parquet" for n in range(2)]
        for path, (begin, end) in zip(paths, HALVES, strict=True):
            frame[int(begin * frame.height) : int(end * frame.height)].write_parquet(path)
        return paths
    source = {"txt": city, "csv": rich_csv, "crlf": city}[kind]()
    lines = source.read_bytes().decode("latin-1").splitlines()
    head = lines[:1] if kind == "csv" else []
    end_of_line = "\r\n" if kind == "crlf" else "\n"
    body = lines[len(head) :]
    paths = [folder / f"{n}{source.suffix}" for n in range(2)]
    for path, (begin, end) in zip(paths, HALVES, strict=True):
        part = [*head, *body[int(begin * len(body)) : int(end * len(body))]]
        path.write_bytes((end_of_line.join(part) + end_of_line * (kind != "crlf")).encode("latin-1"))
    return paths


@pytest.mark.parametrize("kind", ["txt", "crlf", "csv", "parquet"])
@pytest.mark.parametrize("users", ["keep", "session"])
def test_halves_of_a_file_form_a_series(kind: str, users: str, tmp_path: Path) -> None:
    drops = ["--drop", "gender", "--drop", "checkin", *RICH[:-2]]  # --keep of a dropped column is refused
    words = [*([] if kind in ("txt", "crlf") else RICH if users == "keep" else drops), "--pseudonyms", users]
    made: list[Release] = []
    for n, file in enumerate(halves(kind, tmp_path)):
        made.append(release_in(tmp_path / "series", file, tmp_path / f"release-{n}", *words))
        done = called("verify", made[-1].folder, "--against", file, *(RICH[:-2] if "csv" in kind else []))
        assert done.returncode == 0, done.stdout
    assert made[1].manifest["series"]["repeated"] == pytest.approx(len(pairs(made[1])) / 3, abs=2)
    assert made[0].manifest["columns"] == made[1].manifest["columns"]


def pairs(release: Release) -> list[int]:
    return list(range(int(release.manifest["data"]["rows"])))


@pytest.mark.parametrize("missing", ["keep", "drop"])
def test_rows_that_lack_a_value(missing: str, tmp_path: Path) -> None:
    for n, file in enumerate(halves("csv", tmp_path)):
        lines = file.read_text().splitlines()
        at = lines[0].split(",").index("timestamp")
        assert at == len(lines[0].split(",")) - 1
        lines[5] = lines[5].rsplit(",", 1)[0] + ","
        file.write_text("\n".join(lines) + "\n")
        done = release_in(tmp_path / "series", file, tmp_path / f"release-{n}", *RICH, "--missing", missing)
        assert done.manifest["rows"]["missing"] == {"kept" if missing == "keep" else "dropped": 1}
        assert called("verify", done.folder, "--against", file).returncode == 0


def test_withheld_rows_are_not_released_and_may_come_later(tmp_path: Path) -> None:
    words = ("--no-candidate", "withhold", "--set", "method.category=exact", "--set", "method.reach_km=0.5")
    made = [
        release_in(tmp_path / "series", file, tmp_path / f"release-{n}", *words)
        for n, file in enumerate(halves("txt", tmp_path))
    ]
    for one in made:
        assert one.manifest["rows"]["withheld"] > 0
        assert called("verify", one.folder, "--against", one.file).returncode == 0


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    release_in(tmp_path / "series", halves("csv", tmp_path)[0], tmp_path / "first", *RICH)
    file = halves("parquet", tmp_path)[1]
    done = called("protect", file, "-o", tmp_path / "second", "--series", tmp_path / "series", *RICH)
    assert done.returncode == 2
    assert done.stderr.endswith(
        f"{file} does not fit into the series {tmp_path / 'series'}: its format (table, .parquet) should be table, .csv"
        "; give files of one kind\n"
    )


def test_a_column_that_tells_the_venue_later_is_refused(tmp_path: Path) -> None:
    """The first month visits each venue in the same mood, so to speak; a later one names the venue in that column."""
    first, second = (pl.read_csv(path) for path in halves("csv", tmp_path))
    for n, frame in enumerate((first.with_columns(mood=pl.lit("good")), second.with_columns(mood=pl.col("spot")))):
        frame.write_csv(tmp_path / f"{n}.csv")
    release_in(tmp_path / "series", tmp_path / "0.csv", tmp_path / "first", *RICH)
    done = called("protect", tmp_path / "1.csv", "-o", tmp_path / "second", "--series", tmp_path / "series", *RICH)
    assert done.returncode == 2
    assert "the column 'mood', which earlier releases kept, " in done.stderr
    assert not (tmp_path / "second").exists()


def test_show_and_verify_need_no_torch() -> None:
    code = "import sys, ghostpoi.cli.commands, ghostpoi.release.series.overview; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
