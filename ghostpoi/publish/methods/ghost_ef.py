"""GHOST-EF: an entropy floor instead of the manifold term."""

from ghostpoi.publish.methods.ghost import Ghost

GHOST_EF = Ghost(beta=0.0, eta=3.0)
