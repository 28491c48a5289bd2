"""Adversaries: each tries to win back from a release what a victim could have learned from the clean sessions."""

from ghostpoi.adversaries.base import Adversary, Evidence, leak, leak_mixed, purify
from ghostpoi.adversaries.bigram import Bigram
from ghostpoi.adversaries.bridge import Bridge
from ghostpoi.adversaries.deconvolution import Deconvolution
from ghostpoi.adversaries.frequency import Frequency
from ghostpoi.adversaries.habits import Habits
from ghostpoi.adversaries.habits_leak import HabitsLeak
from ghostpoi.adversaries.hidden_markov import HiddenMarkov
from ghostpoi.adversaries.none import NoAdversary
from ghostpoi.adversaries.paired_bridge import PairedBridge
from ghostpoi.adversaries.per_user import PerUser

ADVERSARIES: dict[str, Adversary] = {
    "none": NoAdversary(),
    "bridge": Bridge(),
    "frequency": Frequency(),
    "bigram": Bigram(),
    "per-user": PerUser(),
    "deconvolution": Deconvolution(),
    "habits": Habits(),
    "habits+leak": HabitsLeak(),
    "hidden-markov": HiddenMarkov(),
    "paired-bridge": PairedBridge(),
}

TRAINED = ("bridge", "paired-bridge")  # those that train a model of their own, which costs about as much as a victim

__all__ = ["ADVERSARIES", "TRAINED", "Adversary", "Evidence", "leak", "leak_mixed", "purify"]
