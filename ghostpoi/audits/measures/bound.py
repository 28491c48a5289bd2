"""What no adversary can exceed who names the clean venue of a visit, for methods that release crowds.

Each released venue is drawn from the crowd of the clean one with fixed probabilities and independent noise, so the best
guess is the member that is likeliest under what the adversary holds beforehand. Its share of right guesses is the Bayes
vulnerability; guessing entropy is the mean number of guesses until one is right. A figure holds in a world whose visits
follow its prior. Under `habits`, the prior is what each person really did, and it holds in the world as it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.evidence import Outside
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Ints, Longs

HABITS = "habits"  # the prior of an adversary who knows how often each person visited each venue


@dataclass(frozen=True)
class CrowdVisits:
    """Clean visits, and the sets by which they are released."""

    sets: Candidates
    user: Longs  # (N,)
    venue: Ints  # (N,)
    slot: Longs  # (N,) of the week


def bound(visits: CrowdVisits, priors: Mapping[str, Outside]) -> dict[str, float]:
    """Return the Bayes vulnerability and the guessing entropy of a visit under each prior, and under true habits."""
    found, total = dict[str, float](), max(1, len(visits.venue))
    every = {name: _memoryless(visits, prior) for name, prior in priors.items()} | {HABITS: _habits(visits)}
    for name, each in every.items():
        parts = list(each)
        right = sum(float(count @ vulnerability(chance, emitted)) for chance, emitted, count in parts)
        tried = sum(float(count @ guesses(chance, emitted)) for chance, emitted, count in parts)
        found |= {f"{name}_vulnerability": right / total, f"{name}_guesses": tried / total}
    return found


def vulnerability(chance: Floats, emitted: Floats) -> Floats:
    """Return the probability that the best guess is right, (G,).

    `chance` (G, M) is that of each member beforehand, `emitted` (M, O) that of each observation behind a member.
    """
    joint = chance[:, :, None] * emitted
    return joint.max(axis=1).sum(axis=1)


def guesses(chance: Floats, emitted: Floats) -> Floats:
    """Return the mean number of guesses until one is right, (G,); arguments as of `vulnerability`."""
    joint = -np.sort(-(chance[:, :, None] * emitted), axis=1)  # the likeliest member first
    return (joint * np.arange(1, chance.shape[1] + 1)[:, None]).sum(axis=(1, 2))


def crowds_of(sets: Candidates) -> Longs:
    """Number the crowds of venues, (P+1,): those that are released by one set; a venue without a set is alone."""
    alone = sets.poi[:, 0] == 0
    crowd = np.unique(sets.poi, axis=0, return_inverse=True)[1].reshape(-1)
    return np.where(alone, len(crowd) + np.arange(len(crowd)), crowd)


def _emitted(sets: Candidates, members: Longs) -> Floats:
    """Return how likely each member is released as each venue of the crowd, (M, O); one column if members agree."""
    same = np.ones((len(members), 1))
    if sets.weight is None or not sets.poi[members, 0].all():
        return same
    weight = sets.weight[members]
    share = weight / weight.sum(axis=1, keepdims=True)
    return share if np.ptp(share, axis=0).max() > 1e-12 else same


def _by_crowd(visits: CrowdVisits, key: Longs) -> Iterator[tuple[Longs, Longs, Longs, Longs]]:
    """Yield the members of each crowd, with the numbers of its visits, the groups by `key`, and the group of each."""
    crowd = crowds_of(visits.sets)
    venues = np.argsort(crowd[1:], kind="stable") + 1
    order = np.argsort(crowd[visits.venue], kind="stable")
    known, size = np.unique(crowd[visits.venue], return_counts=True)
    for number, at in zip(known, np.split(order, np.cumsum(size))[:-1], strict=True):
        begin, end = np.searchsorted(crowd[venues], [number, number + 1])
        groups, group = np.unique(key[at], return_inverse=True)
        yield venues[begin:end], at, groups, group


def _memoryless(visits: CrowdVisits, prior: Outside) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield for each crowd the chances of its members in every slot, what is emitted, and the visits of each slot."""
    for members, _, slots, group in _by_crowd(visits, visits.slot):
        popular = np.ones(len(members)) if prior.popularity is None else prior.popularity[members]
        weight = popular * (np.ones((len(slots), 1)) if prior.hours is None else prior.hours[slots][:, members])
        total = weight.sum(axis=1, keepdims=True)
        chance = np.divide(weight, total, out=np.full(weight.shape, 1 / len(members)), where=total > 0)
        yield chance, _emitted(visits.sets, members), np.bincount(group).astype(float)


def _habits(visits: CrowdVisits) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield the same for every user, whose chances are what the user really did."""
    for members, at, users, group in _by_crowd(visits, visits.user):
        place = np.searchsorted(members, visits.venue[at])
        count = np.bincount(group * len(members) + place, minlength=len(users) * len(members)).astype(float)
        count = count.reshape(len(users), len(members))
        total = count.sum(axis=1)
        yield count / total[:, None], _emitted(visits.sets, members), total
