"""What a cell depends on, as a hash: the data, the settings of the victim, and the code of every stage.

A cell with another fingerprint than today's is measured again.
"""

from collections.abc import Callable

from ghostpoi.attack.victims import VICTIMS, victim_settings
from ghostpoi.data.prepared import Prepared
from ghostpoi.evaluate.cache import key_of
from ghostpoi.evaluate.controls import CLEAN, LEAK_STAY
from ghostpoi.evaluate.grid import VICTIM_STAGES
from ghostpoi.evaluate.measures import accuracy, detection, plausibility, utility
from ghostpoi.evaluate.restoration import Restorer, find_adversary
from ghostpoi.models import trajectory_lm
from ghostpoi.publish import category_groups
from ghostpoi.publish.rounds import publish
from ghostpoi.source import code_of
from ghostpoi.study.plan import Variant
from ghostpoi.study.store import Cell

Stages = list[object]
MEASURES = (plausibility.__name__, utility.__name__, trajectory_lm.__name__, detection.__name__)  # of a release


def release_stages(method: str) -> Stages:
    """What makes a release."""
    if method == CLEAN:
        return []
    made = Variant(method).settings("strong").method
    return [made, publish, category_groups.__name__, *([trajectory_lm.__name__] if made.needs_trajectory_lm else [])]


def fingerprints(data: Prepared, protocol: str) -> Callable[[Cell], str]:
    """Return what computes the fingerprint of a cell that is measured on this data."""
    content = key_of(data.train, data.val, data.test, data.vocabulary, data.candidates)

    def fingerprint(cell: Cell) -> str:
        stages = release_stages(cell["method"])
        if cell["kind"] == "release":
            stages += MEASURES
        if cell["kind"] == "floor":
            stages.append(accuracy.__name__)
        if cell["kind"] == "accuracy":
            adversary, _ = find_adversary(cell["adversary"])
            stages += [VICTIMS[cell["victim"]], *VICTIM_STAGES, Restorer, *([adversary] if adversary else [])]
            if cell["adversary"] == LEAK_STAY:
                stages.append("ghostpoi.attack.inference.distillation")
        settings = victim_settings(protocol) if cell["kind"] == "accuracy" else None
        return key_of(content, settings, code_of(*stages))[:16]

    return fingerprint
