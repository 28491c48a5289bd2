"""What follows from the accuracies of an audit. A merged audit needs nothing else to be concluded again."""

from collections.abc import Mapping
from typing import Any

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.evaluate.controls import FLOORS, LEAK_MIXED, LEAK_ONLY, LEAK_STAY, RANDOM, RANDOM_MATCHED, under
from ghostpoi.evaluate.default_set import in_order, not_run
from ghostpoi.evaluate.measures.accuracy_gaps import gaps, strongest
from ghostpoi.evaluate.verdicts import Accuracies, no_verdict, verdicts


def accuracies(audit: Mapping[str, Any]) -> Accuracies:
    """Return acc@1 of all victims of an audit, adversaries in the order of the registry."""
    adversaries, controls = audit["adversaries"], audit["controls"]
    names = in_order(adversaries)
    random = {
        control: {name: _acc(controls[key]) for name in names if (key := under(control, name)) in controls}
        for control in (RANDOM, RANDOM_MATCHED)
    }
    return Accuracies(
        clean=_acc(audit["clean"]),
        adversaries={name: _acc(adversaries[name]) for name in names},
        leak={name: _acc(controls[name]) for name in (LEAK_ONLY, LEAK_STAY, LEAK_MIXED)},
        random=random,
        floors={name: _acc(controls[name]) for name in FLOORS},
        positions=int(audit["test_positions"]),
        leakless=[name for name in names if name in ADVERSARIES and not ADVERSARIES[name].uses_leak],
    )


def conclude(audit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the strongest adversary, the verdicts or why there are none, what was not run, and the gaps."""
    acc, pseudonyms = accuracies(audit), audit.get("pseudonyms", "keep") != "keep"
    return {
        "strongest": strongest(acc.adversaries),
        "verdicts": verdicts(acc),
        "no_verdict": no_verdict(acc),
        "not_run": not_run(acc.adversaries, bool(audit.get("kept_columns")), pseudonyms),
        "gaps": gaps(acc.clean, acc.adversaries),
    }


def _acc(measures: Mapping[str, Any]) -> list[float]:
    return [float(value) for value in measures["acc@1"]["seeds"]]
