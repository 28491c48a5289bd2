"""Victims: the next-POI models that somebody trains on a release, restored or not."""

from ghostpoi.victims.base import WRONG, Exam, Job, Progress, Result, Victim
from ghostpoi.victims.graph import Graph
from ghostpoi.victims.gru import GRU
from ghostpoi.victims.markov import Markov
from ghostpoi.victims.stan import Stan
from ghostpoi.victims.transformer import Transformer, train_victims, victim_settings
from ghostpoi.victims.user import User

VICTIMS: dict[str, Victim] = {
    "transformer": Transformer(),
    "markov": Markov(),
    "gru": GRU(),
    "stan": Stan(),
    "graph": Graph(),
    "user": User(),
}

__all__ = ["VICTIMS", "WRONG", "Exam", "Job", "Progress", "Result", "Victim", "train_victims", "victim_settings"]
