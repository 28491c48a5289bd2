"""Victims: the next-POI models that somebody trains on a release, restored or not.

The neural ones train many models of one shape at once: `stacked_model` holds their weights and lays out batches,
`stacked_training` trains them. To add a victim, write a file here and add a line to the dict.
"""

from ghostpoi.attack.victims.base import Victim, victim_settings
from ghostpoi.plugins import Registry

VICTIMS: Registry[Victim] = Registry(
    "victims",
    __name__,
    {
        "transformer": "transformer:Transformer",
        "markov": "markov:Markov",
        "gru": "gru:GRU",
        "stan": "stan:Stan",
        "graph": "graph:Graph",
        "user": "user:User",
    },
)

__all__ = ["VICTIMS", "victim_settings"]
