"""What adversaries know about an audited release and about the random control: the rule by which venues are drawn."""

from dataclasses import replace
from typing import Any

import numpy as np

from ghostpoi.attack.rule import Rule, rule_of
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.sessions import Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.evaluate.alignment import TablePair
from ghostpoi.evaluate.controls import RANDOM
from ghostpoi.publish.manifest import settings_of
from ghostpoi.publish.methods import METHODS, Method
from ghostpoi.publish.protocols import publication
from ghostpoi.publish.whole_table import prepare
from ghostpoi.settings import Settings


def publisher_of(manifest: dict[str, Any] | None) -> Method | None:
    """Return the method that made a release, with its settings; None if the release is another tool's."""
    return settings_of(manifest).method if manifest is not None and manifest["method"] in METHODS else None


def public_rule(pair: TablePair, vocabulary: Vocabulary, settings: Settings, method: Method | None) -> Rule:
    """Return the rule of a method. Without one, a uniform draw from candidate sets serves as the first guess."""
    return rule_of(method, _candidates(pair, vocabulary, settings, method or METHODS[RANDOM]), vocabulary)


def _candidates(pair: TablePair, vocabulary: Vocabulary, settings: Settings, method: Method) -> Candidates:
    """The publisher's candidate sets, in the numbers of the audit's vocabulary.

    Which venues the publisher's models know depends on clean data. An adversary can infer most of them from the
    release; the audit grants it all of them, which is conservative for the publisher.
    """
    publisher = replace(publication(RANDOM), filters=settings.filters, candidates=settings.candidates, method=method)
    try:
        own = prepare(pair.clean, publisher)
    except InputError:  # no candidates under these settings: the release comes from another tool
        return Candidates(np.zeros((len(vocabulary), 1), np.int32), np.zeros(len(vocabulary)))
    venues, modelled = len(pair.clean.venue_ids), own.data.vocabulary.venue
    known = np.flatnonzero((vocabulary.venue > 0) & (vocabulary.venue < venues))  # others have no candidates
    poi_of = np.zeros(venues, np.int32)
    poi_of[vocabulary.venue[known]] = known
    # Candidate sets of all venues, replaced by those over the publisher's vocabulary where it knows the venue.
    in_sessions, anywhere = own.session_sets, own.venue_sets
    sets = np.zeros((venues, max(in_sessions.poi.shape[1], anywhere.poi.shape[1])), np.int32)
    sets[:, : anywhere.poi.shape[1]] = anywhere.poi
    sets[modelled] = 0
    sets[modelled, : in_sessions.poi.shape[1]] = modelled[in_sessions.poi]
    radius = anywhere.radius_km.copy()
    radius[modelled[1:]] = in_sessions.radius_km[1:]
    venue = np.zeros(len(vocabulary), np.int64)
    venue[known] = vocabulary.venue[known]
    found = poi_of[sets[venue]]
    found = np.take_along_axis(found, np.argsort(found == 0, axis=1, kind="stable"), 1)  # padding last
    return Candidates(found, radius[venue])
