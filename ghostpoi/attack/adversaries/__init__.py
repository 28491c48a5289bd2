"""Adversaries: each tries to restore, from a release, what a victim could have learned from the clean sessions.

A file holds one family: the model and what differs between its members. To add an adversary, write a class and add a
line to the dict. Reports use these classes: importing them must not import torch.
"""

from ghostpoi.attack.adversaries.base import Adversary
from ghostpoi.plugins import Registry

ADVERSARIES: Registry[Adversary] = Registry(
    "adversaries",
    __name__,
    {
        "none": "lookups:NoAdversary",
        "bridge": "bridges:Bridge",
        "frequency": "lookups:Frequency",
        "bigram": "lookups:Bigram",
        "per-user": "lookups:PerUser",
        "deconvolution": "deconvolution:Deconvolution",
        "habits": "habits:Habits",
        "habits+leak": "habits:HabitsLeak",
        "hidden-markov": "hidden_markov:HiddenMarkov",
        "paired-bridge": "bridges:PairedBridge",
        "multi-release": "several_releases:MultiRelease",
        "kept-columns": "lookups:KeptColumns",
        "step-lengths": "hidden_markov:StepLengths",
        "session-habits": "habits:SessionHabits",
        "distilled": "distillation:Distilled",
        "relink": "relinking:Relink",
        "relink-distilled": "relinking:RelinkDistilled",
        "distilled-release": "distillation:DistilledRelease",
        "posterior": "posterior:Posterior",
        "posterior-informed": "posterior:InformedPosterior",
        "posterior-learned": "posterior:LearnedPosterior",
        "posterior-no-leak": "posterior:PosteriorWithoutLeak",
        "posterior-informed-no-leak": "posterior:InformedPosteriorWithoutLeak",
        "posterior-learned-no-leak": "posterior:LearnedPosteriorWithoutLeak",
        "bridge-augmented": "bridges:AugmentedBridge",
        "bridge-natural": "bridges:NaturalBridge",
    },
)
