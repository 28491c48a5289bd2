"""Columns of a file: which change with the venue, which stay, and which would reveal clean venues."""

from ghostpoi.columns.classify import Tests, VenueColumns, classify
from ghostpoi.columns.related import RelatedVenues

__all__ = ["RelatedVenues", "Tests", "VenueColumns", "classify"]
