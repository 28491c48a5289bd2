"""Columns of a file: which change with the venue, which stay, and which would reveal clean venues."""

from ghostpoi.publish.columns.classify import VenueColumns, classify, telling
from ghostpoi.publish.columns.related_venues import RelatedVenues
from ghostpoi.publish.columns.row_order import order_reveals

__all__ = ["RelatedVenues", "VenueColumns", "classify", "order_reveals", "telling"]
