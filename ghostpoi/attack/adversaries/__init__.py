"""Adversaries: each tries to win back from a release what a victim could have learned from the clean sessions."""

from ghostpoi.attack.adversaries.base import Adversary, Evidence, leak, leak_mixed, purify
from ghostpoi.attack.adversaries.bigram import Bigram
from ghostpoi.attack.adversaries.bridge import Bridge
from ghostpoi.attack.adversaries.deconvolution import Deconvolution
from ghostpoi.attack.adversaries.frequency import Frequency
from ghostpoi.attack.adversaries.habits import Habits
from ghostpoi.attack.adversaries.habits_leak import HabitsLeak
from ghostpoi.attack.adversaries.hidden_markov import HiddenMarkov
from ghostpoi.attack.adversaries.none import NoAdversary
from ghostpoi.attack.adversaries.paired_bridge import PairedBridge
from ghostpoi.attack.adversaries.per_user import PerUser

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
