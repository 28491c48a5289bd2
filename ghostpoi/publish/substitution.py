"""The result of a walk, of all rounds, and of the whole table."""

from dataclasses import dataclass

from ghostpoi.data.checkins import Bools, Ints


@dataclass(frozen=True)
class Substitution:
    """Released venues, one per position of the sessions or per row of the table."""

    poi: Ints  # (N,) POIs of the vocabulary for sessions, venues for the table
    mask_emptied: Bools  # (N,) the speed mask excluded every candidate of a set that was not empty
