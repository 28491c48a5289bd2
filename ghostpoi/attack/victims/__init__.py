"""Victims: the next-POI models that somebody trains on a release, restored or not.

The neural ones train many models of one shape at once: `stacked_model` holds their weights and lays out batches,
`stacked_training` trains them. To add a victim, write a file here and add a line to the dict.
"""

from ghostpoi.attack.victims.base import Victim, victim_settings
from ghostpoi.attack.victims.graph import Graph
from ghostpoi.attack.victims.gru import GRU
from ghostpoi.attack.victims.markov import Markov
from ghostpoi.attack.victims.stan import Stan
from ghostpoi.attack.victims.transformer import Transformer
from ghostpoi.attack.victims.user import User
from ghostpoi.plugins import Registry

VICTIMS: Registry[Victim] = Registry(
    "victims",
    {
        "transformer": Transformer(),
        "markov": Markov(),
        "gru": GRU(),
        "stan": Stan(),
        "graph": Graph(),
        "user": User(),
    },
)

__all__ = ["VICTIMS", "victim_settings"]
