"""Methods: each proposes a substitute for one position of a batch of sessions."""

from ghostpoi.publish.methods.base import KEEP, HasSets, Method, sets_of
from ghostpoi.publish.methods.crowd import Crowd
from ghostpoi.publish.methods.em import Em
from ghostpoi.publish.methods.ghost import Ghost
from ghostpoi.publish.methods.ghost_ef import GHOST_EF
from ghostpoi.publish.methods.ghost_sym import GHOST_SYM
from ghostpoi.publish.methods.pgd import Pgd
from ghostpoi.publish.methods.random import Random
from ghostpoi.publish.methods.ts_ue import TsUe

METHODS: dict[str, Method] = {
    "ghost": Ghost(),
    "ghost-sym": GHOST_SYM,
    "ghost-ef": GHOST_EF,
    "pgd": Pgd(),
    "em": Em(),
    "ts-ue": TsUe(),
    "random": Random(),
    "crowd": Crowd(),
}

__all__ = ["KEEP", "METHODS", "HasSets", "Method", "sets_of"]
