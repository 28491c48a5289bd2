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
from ghostpoi.publish.table import prepare
from ghostpoi.settings import Settings


def release_rule(pair: TablePair, vocabulary: Vocabulary, settings: Settings) -> Rule:
    """Return the rule of a release: the manifest names the method and its settings.

    Nothing is known about another tool's release; a uniform draw from candidate sets serves as the first guess.
    """
    method = _method(pair.manifest)
    return rule_of(method, _candidates(pair, vocabulary, settings, method or METHODS[RANDOM]), vocabulary)


def random_rule(pair: TablePair, vocabulary: Vocabulary, settings: Settings) -> Rule:
    """Return the rule of the random control."""
    return rule_of(METHODS[RANDOM], _candidates(pair, vocabulary, settings, METHODS[RANDOM]), vocabulary)


def _method(manifest: dict[str, Any] | None) -> Method | None:
    return settings_of(manifest).method if manifest is not None and manifest["method"] in METHODS else None


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
    venues, modelled = len(pair.clean.pois), own.data.vocabulary.source[1:]
    poi_of = np.zeros(venues + 1, np.int32)  # by venue of the clean file from 1; 0 is padding
    known = np.flatnonzero((vocabulary.source >= 0) & (vocabulary.source < venues))  # others have no candidates
    poi_of[vocabulary.source[known] + 1] = known
    # Candidate sets of all venues, replaced by those over the publisher's vocabulary where it knows the venue.
    sets = np.zeros((venues + 1, max(own.covered.poi.shape[1], own.every.poi.shape[1])), np.int32)
    sets[:, : own.every.poi.shape[1]] = own.every.poi
    sets[modelled + 1] = 0
    sets[modelled + 1, : own.covered.poi.shape[1]] = np.append(0, modelled + 1)[own.covered.poi[1:]]
    radius = own.every.radius_km.copy()
    radius[modelled + 1] = own.covered.radius_km[1:]
    row = np.zeros(len(vocabulary), np.int64)
    row[known] = vocabulary.source[known] + 1
    found = poi_of[sets[row]]
    found = np.take_along_axis(found, np.argsort(found == 0, axis=1, kind="stable"), 1)  # padding last
    return Candidates(found, radius[row])
