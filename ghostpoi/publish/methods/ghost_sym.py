"""GHOST-Sym: both terms weigh the same."""

from ghostpoi.publish.methods.ghost import Ghost

GHOST_SYM = Ghost(alpha=1.0, beta=1.0)
