"""Victims: the next-POI models that somebody trains on a release, restored or not.

The neural ones train many models of one shape at once, as `stacked` does. To add a victim, write a class and add a line
to the dict.
"""

from ghostpoi.attack.victims.base import Victim, victim_settings
from ghostpoi.plugins import Registry

VICTIMS: Registry[Victim] = Registry(
    "victims",
    __name__,
    {
        "transformer": "neural:Transformer",
        "markov": "counts:Markov",
        "counting": "counts:Counting",
        "gru": "neural:GRU",
        "stan": "neural:Stan",
        "graph": "neural:Graph",
        "user": "neural:User",
    },
)

__all__ = ["VICTIMS", "victim_settings"]
