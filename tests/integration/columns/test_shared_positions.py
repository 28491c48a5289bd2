"""Venues at one position: which of them a person visited changes no byte of a crowd release."""

import random
from pathlib import Path

from small_city import SEED, protect

LOOSE = [f"filters.{name}=1" for name in ("min_poi_checkins", "min_user_checkins", "min_session_length")]
SETS = [word for text in (*LOOSE, "method.size=4", "method.draw=even") for word in ("--set", text)]


def malls(path: Path, swapped: bool) -> Path:
    """Four malls with eight shops at one position, so two crowds each. Swapped: shops of a crowd trade their visits."""
    draw = random.Random(3)
    lines = ["user,poi,category,lat,lon,time"]
    for visit in range(300):
        mall, shop, user = draw.randrange(4), draw.randrange(8), draw.randrange(6)
        shown = shop ^ 1 if swapped else shop
        lines.append(f"u{user},m{mall}s{shown},c,{40 + mall / 100:.2f},-74.00,{1_600_000_000 + 3600 * visit}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_trading_shops_of_a_mall_changes_nothing(tmp_path: Path) -> None:
    files = [malls(tmp_path / f"{swapped}.csv", swapped) for swapped in (False, True)]
    assert files[0].read_bytes() != files[1].read_bytes()
    one, two = (protect(file, tmp_path / file.stem, "--seed", SEED, *SETS) for file in files)
    assert one.manifest["rows"]["in_sessions"]["no_candidate"] == 0
    assert one.data.read_bytes() == two.data.read_bytes()
