"""Victims: the next-POI models that somebody trains on a release, restored or not."""

from ghostpoi.attack.victims.base import WRONG, Exam, Job, Progress, Result, Victim
from ghostpoi.attack.victims.graph import Graph
from ghostpoi.attack.victims.gru import GRU
from ghostpoi.attack.victims.markov import Markov
from ghostpoi.attack.victims.stan import Stan
from ghostpoi.attack.victims.transformer import Transformer, train_victims, victim_settings
from ghostpoi.attack.victims.user import User

VICTIMS: dict[str, Victim] = {
    "transformer": Transformer(),
    "markov": Markov(),
    "gru": GRU(),
    "stan": Stan(),
    "graph": Graph(),
    "user": User(),
}

__all__ = ["VICTIMS", "WRONG", "Exam", "Job", "Progress", "Result", "Victim", "train_victims", "victim_settings"]
