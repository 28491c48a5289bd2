"""The clean side of a release, as its private folder holds it: clean venues, and the users behind pseudonyms."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ghostpoi.data.checkins import Checkins, Ints, Longs
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.release.users import PAIRS, read_map


@dataclass(frozen=True)
class Pairs:
    """The clean and released venue of every released row, its clean time, and all venues. Row 0 is no venue."""

    clean: Ints  # (N,)
    released: Ints  # (N,)
    row: Longs  # (N,) the row of the clean file
    time: Longs  # (N,) clean
    ids: list[str]  # (V+1,), and so the next three
    category: list[str]
    lat: list[float]
    lon: list[float]


def read_pairs(private: Path, released: Checkins, name: str) -> Pairs:
    """Read the pairs of a release, which messages call by `name`; refuse those of another release."""
    path = private / PAIRS
    if not path.is_file() and path.with_suffix("").is_dir():
        raise InputError(
            f"{option('private', private)} holds pairs by region, of data that may be larger than memory; to have "
            f"clean and released rows side by side, leave out {option('engine')} and {option('memory')} when you make "
            "the release"
        )
    if not path.is_file():
        raise InputError(f"{option('private', private)} holds no {PAIRS}; give the private folder that protect wrote")
    try:
        with np.load(path, allow_pickle=False) as file:
            shown = file["shown"]
            clean, drawn = (file[name][shown] for name in ("clean", "released"))
            venues = (file[name].tolist() for name in ("poi_id", "category", "lat", "lon"))
            time = file["time"][shown] if "time" in file else released.time
            pairs = Pairs(clean, drawn, shown, time, *venues)
            same = np.array_equal(file["poi_id"][drawn], released.venue_ids[released.venue].astype(str))
    except KeyError:
        raise InputError(f"{path} was written by an older version of ghostpoi; make the release again") from None
    except (OSError, ValueError, IndexError, EOFError):
        raise InputError(f"{path} cannot be read; restore it from a copy or make the release again") from None
    if not same:
        raise InputError(f"{path} belongs to another release than {name}; give that release's private folder")
    return pairs


def clean_users(private: Path, released: Checkins, pseudonyms: bool) -> list[str]:
    """Return the clean user id of every released row. `pseudonyms` says whether the release hides them."""
    users = read_map(private).behind(released) if pseudonyms else released.user_ids[released.user]
    found: list[str] = users.tolist()
    return found
