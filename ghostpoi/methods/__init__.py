"""Methods: each proposes a substitute for one position of a batch of sessions."""

from ghostpoi.methods.base import KEEP, HasSets, Method, sets_of
from ghostpoi.methods.crowd import Crowd
from ghostpoi.methods.em import Em
from ghostpoi.methods.ghost import Ghost
from ghostpoi.methods.ghost_ef import GHOST_EF
from ghostpoi.methods.ghost_sym import GHOST_SYM
from ghostpoi.methods.pgd import Pgd
from ghostpoi.methods.random import Random
from ghostpoi.methods.ts_ue import TsUe

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
