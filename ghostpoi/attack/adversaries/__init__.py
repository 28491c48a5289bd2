"""Adversaries: each tries to restore, from a release, what a victim could have learned from the clean sessions.

To add one, write a file and add a line to the dict. Reports use these classes: importing them must not import torch.
"""

from ghostpoi.attack.adversaries.base import Adversary
from ghostpoi.attack.adversaries.bigram import Bigram
from ghostpoi.attack.adversaries.bridge import Bridge
from ghostpoi.attack.adversaries.deconvolution import Deconvolution
from ghostpoi.attack.adversaries.distilled import Distilled
from ghostpoi.attack.adversaries.frequency import Frequency
from ghostpoi.attack.adversaries.habits import Habits
from ghostpoi.attack.adversaries.habits_leak import HabitsLeak
from ghostpoi.attack.adversaries.hidden_markov import HiddenMarkov
from ghostpoi.attack.adversaries.kept_columns import KeptColumns
from ghostpoi.attack.adversaries.multi_release import MultiRelease
from ghostpoi.attack.adversaries.none import NoAdversary
from ghostpoi.attack.adversaries.paired_bridge import PairedBridge
from ghostpoi.attack.adversaries.per_user import PerUser
from ghostpoi.attack.adversaries.relink import Relink
from ghostpoi.attack.adversaries.session_habits import SessionHabits
from ghostpoi.attack.adversaries.step_lengths import StepLengths
from ghostpoi.plugins import Registry

ADVERSARIES: Registry[Adversary] = Registry(
    "adversaries",
    {
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
        "multi-release": MultiRelease(),
        "kept-columns": KeptColumns(),
        "step-lengths": StepLengths(),
        "session-habits": SessionHabits(),
        "distilled": Distilled(),
        "relink": Relink(),
    },
)
