"""Adversaries: each tries to restore, from a release, what a victim could have learned from the clean sessions.

To add one, write a file and add a line to the dict. Reports use these classes: importing them must not import torch.
"""

from ghostpoi.attack.adversaries.base import Adversary
from ghostpoi.plugins import Registry

ADVERSARIES: Registry[Adversary] = Registry(
    "adversaries",
    __name__,
    {
        "none": "none:NoAdversary",
        "bridge": "bridge:Bridge",
        "frequency": "frequency:Frequency",
        "bigram": "bigram:Bigram",
        "per-user": "per_user:PerUser",
        "deconvolution": "deconvolution:Deconvolution",
        "habits": "habits:Habits",
        "habits+leak": "habits_leak:HabitsLeak",
        "hidden-markov": "hidden_markov:HiddenMarkov",
        "paired-bridge": "paired_bridge:PairedBridge",
        "multi-release": "multi_release:MultiRelease",
        "kept-columns": "kept_columns:KeptColumns",
        "step-lengths": "step_lengths:StepLengths",
        "session-habits": "session_habits:SessionHabits",
        "distilled": "distilled:Distilled",
        "relink": "relink:Relink",
        "relink-distilled": "relink_distilled:RelinkDistilled",
        "distilled-release": "distilled_release:DistilledRelease",
    },
)
