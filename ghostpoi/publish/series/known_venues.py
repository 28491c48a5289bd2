"""All venues of a series, as its releases brought them."""

from ghostpoi.errors import InputError
from ghostpoi.publish.series.ledger import Series
from ghostpoi.publish.venue_catalogue import UNREADABLE, Catalogue


def read_catalogue(series: Series) -> Catalogue:
    """Read the venues of all releases of a series."""
    catalogue = Catalogue.empty()
    try:
        for entry in series.entries:
            catalogue = catalogue.load_more(series.named("venues", entry.number, ".npz"))
    except UNREADABLE:
        raise InputError(f"the venues in {series.folder} cannot be read; restore the folder from a copy") from None
    return catalogue
