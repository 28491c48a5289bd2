"""Columns of a file: which change with the venue, which stay, and which would reveal clean venues."""

from ghostpoi.publish.columns.classify import VenueColumns, classify, telling

__all__ = ["VenueColumns", "classify", "telling"]
