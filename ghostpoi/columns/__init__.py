"""Columns of a file: which change with the venue, which stay, and which would reveal clean venues."""

from ghostpoi.columns.classify import VenueColumns, classify, order_finding, telling
from ghostpoi.columns.related import RelatedVenues

__all__ = ["RelatedVenues", "VenueColumns", "classify", "order_finding", "telling"]
