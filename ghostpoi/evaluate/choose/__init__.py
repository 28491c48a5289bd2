"""Choose settings for a file: try a small grid on the publisher's own data and recommend the best protected setting.

All settings face two fast adversaries. Those that fulfil the wishes and do best then face the whole default set under
several seeds. An adversary is measured by a victim that trains in a second.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ghostpoi.data.checkins import Checkins
from ghostpoi.evaluate.cache import Cache
from ghostpoi.evaluate.choose.options import Option, Wishes, frontier, options
from ghostpoi.evaluate.choose.trial import ALL, MOVES, VICTIM, Accuracies, Trial
from ghostpoi.evaluate.controls import CLEAN
from ghostpoi.evaluate.default_set import default_adversaries
from ghostpoi.evaluate.measures.accuracy_gaps import SAMPLING_ERRORS, accuracy_lost, spread, strongest
from ghostpoi.processes import process_pool
from ghostpoi.progress import Report
from ghostpoi.publish.publication_settings import Publication
from ghostpoi.settings import override

__all__ = ["ChooseRequest", "Option", "Wishes", "choose", "work"]

FAST = ("none", "habits+leak")  # what every setting faces
FINALISTS = 2  # settings that face the whole default set
FEW_GENUINE = 0.01  # a difference between shares of genuine rows that does not matter
WORTHWHILE = 50_000  # rows; with fewer, one process is done before others have started


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the publisher asks for."""

    settings: Publication  # all but the crowd's own
    wishes: Wishes = field(default_factory=Wishes)
    leak: float = 0.05
    seeds: int = 3
    cache: Cache

    @property
    def options(self) -> list[Option]:
        """The settings to try."""
        return options(self.wishes)

    @property
    def adversaries(self) -> tuple[str, ...]:
        return default_adversaries(pseudonyms=self.settings.identity.pseudonyms != "keep")


@dataclass(frozen=True, kw_only=True)
class ChooseRequest(Asked):
    """The same of one table."""

    table: Checkins

    @property
    def options(self) -> list[Option]:
        return options(self.wishes, bool(self.table.category_field))


Found = Iterator[tuple[Option, dict[str, Any]]]


class Tries(Protocol):
    """Measures settings: on a table, or on regions."""

    def first(self, options: Sequence[Option]) -> Found:
        """Yield what each setting keeps, and its protection from the fast adversaries."""

    def final(self, options: Sequence[Option]) -> Found:
        """Yield the protection of each setting from all adversaries, under all seeds."""

    def controls(self, option: Option) -> Accuracies:
        """Return what every setting is compared with."""


def work(request: Asked) -> float:
    """Return all units of work for the progress bar, in adversaries."""
    return len(request.options) * len(FAST) + FINALISTS * request.seeds * len(request.adversaries)


def choose(request: ChooseRequest, report: Report) -> dict[str, Any]:
    """Try settings on a table."""
    with _pool(request, len(request.options)) as each:
        return decide(request, _OnTable(request, each), report)


def decide(request: Asked, tries: Tries, report: Report) -> dict[str, Any]:
    """Return all that was tried as plain values, controls, and the recommended setting or None."""
    tried = request.options
    found: dict[Option, dict[str, Any]] = {}
    for option, measured in tries.first(tried):
        found[option] = measured | {"worst_of_fast": measured["worst"], "missed": request.wishes.missed(measured)}
        report(f"tried {option.name}", len(FAST))
    possible = sorted((o for o in tried if not found[o]["missed"]), key=lambda o: _order(found[o]))[:FINALISTS]
    report("all adversaries on the best", 0)
    for option, measured in tries.final(possible):
        found[option] |= measured
        report(f"all adversaries on {option.name}", request.seeds * len(request.adversaries))
    best = _best(possible, found)
    rows = [{"name": o.name, "settings": o.assignments, **found[o]} for o in tried]
    for row, on_frontier in zip(rows, frontier(rows), strict=True):
        row |= {"frontier": on_frontier, "complete": len(row["accuracy"]) > len(FAST) + 1}
    nearest = best or min(tried, key=lambda o: (len(found[o]["missed"]), *_order(found[o])))
    controls = tries.controls(nearest)
    for row in rows:
        lost = accuracy_lost([spread(controls[ALL][CLEAN])["mean"]], [row["worst"]])
        row["protection"] = round(lost[0], 4)
    return {
        "tried": rows,
        "recommended": None if best is None else rows[tried.index(best)],
        "nearest": rows[tried.index(nearest)],
        "controls": controls[ALL],
        "controls_on_moves": controls[MOVES],
        "leak": request.leak,
        "seeds": request.seeds,
        "victim": VICTIM,
        "pseudonyms": request.settings.identity.pseudonyms,
        "wishes": vars(request.wishes),
    }


Measure = Callable[[ChooseRequest, Option], dict[str, Any]]
Each = Callable[[Measure, ChooseRequest, Sequence[Option]], Iterator[tuple[Option, dict[str, Any]]]]


@contextmanager
def _pool(request: ChooseRequest, most: int) -> Iterator[Each]:
    """What measures several options: side by side on a large file, where that saves more than processes cost."""
    workers = min(os.cpu_count() or 1, most)
    if workers < 2 or len(request.table) < WORTHWHILE:
        yield lambda measure, request, those: ((option, measure(request, option)) for option in those)
        return
    with process_pool(workers) as pool:

        def each(measure: Measure, request: ChooseRequest, those: Sequence[Option]) -> Iterator[Any]:
            asked = {pool.submit(measure, request, option): option for option in those}
            yield from ((asked[done], done.result()) for done in as_completed(asked))

        yield each


@dataclass(frozen=True)
class _OnTable:
    """Measures settings on one table."""

    request: ChooseRequest
    each: Each

    def first(self, options: Sequence[Option]) -> Found:
        return self.each(_first, self.request, options)

    def final(self, options: Sequence[Option]) -> Found:
        return self.each(_final, self.request, options)

    def controls(self, option: Option) -> Accuracies:
        return _trial(self.request, option).controls(self.request.seeds)


def _first(request: ChooseRequest, option: Option) -> dict[str, Any]:
    trial = _trial(request, option)
    return trial.usefulness().measures | protection(trial.accuracies(FAST, 1), trial.test_positions)


def _final(request: ChooseRequest, option: Option) -> dict[str, Any]:
    trial = _trial(request, option)
    return protection(trial.accuracies(request.adversaries, request.seeds), trial.test_positions)


def _trial(request: ChooseRequest, option: Option) -> Trial:
    """Make a trial. It is made anew each time: a release takes seconds, and all of them would fill the memory."""
    return Trial(request.table, override(request.settings, option.assignments), request.leak, request.cache)


def _order(found: Mapping[str, Any]) -> tuple[float, float]:
    """Order by protection, then by usefulness."""
    return found["worst"], -found["flows"]


def _best(finalists: Sequence[Option], found: Mapping[Option, dict[str, Any]]) -> Option | None:
    """Return the most useful finalist among those as well protected as the best, as far as the test can tell.

    Genuine rows count as protection: they make a release useful, but nothing hides them.
    """
    least = min((found[o] for o in finalists), key=_order, default=None)
    if least is None:
        return None
    error = SAMPLING_ERRORS * math.sqrt(2 * least["worst"] * (1 - least["worst"]) / least["test_positions"])
    alike = [o for o in finalists if found[o]["worst"] <= least["worst"] + error]
    fewest = min(found[o]["left_genuine"] for o in alike)
    alike = [o for o in alike if found[o]["left_genuine"] <= fewest + FEW_GENUINE]
    return max(alike, key=lambda o: (found[o]["flows"], -found[o]["popularity"]))


def protection(found: Accuracies, positions: Mapping[str, int]) -> dict[str, Any]:
    """Return what adversaries learn from a release, given acc@1 behind each."""
    top, moving = strongest(found[ALL]), found[MOVES]
    accuracy = {name: spread(values) for name, values in found[ALL].items()}
    return {
        "accuracy": accuracy, "strongest": top, "worst": accuracy[top]["mean"], "test_positions": positions[ALL],
        "worst_on_moves": spread(moving[strongest(moving)])["mean"],
    }  # fmt: skip
