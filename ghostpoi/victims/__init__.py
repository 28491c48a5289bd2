"""Victims: the next-POI models that somebody trains on a release, restored or not."""

from ghostpoi.victims.base import WRONG, Job, Progress, Result, Victim
from ghostpoi.victims.transformer import Transformer, train_victims, victim_settings

VICTIMS: dict[str, Victim] = {
    "transformer": Transformer(),
}

__all__ = ["VICTIMS", "WRONG", "Job", "Progress", "Result", "Victim", "train_victims", "victim_settings"]
