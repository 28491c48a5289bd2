"""A7: each user's habits by deconvolution."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.habits_leak import HabitsLeak


@dataclass(frozen=True)
class Habits(HabitsLeak):
    """A7 is A8 without the leak.

    What a user's draws from one candidate set have in common reveals the venue. Without a rule, the release stays.
    """

    number = 7
    title = "user habits"
    holds = "the public rule and who released what; no leak"
    does = "pools each user's visits, since repeated draws reveal a habit"
    uses_leak = False
