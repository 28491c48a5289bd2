"""What a study asks for and its cells do not have."""

from collections.abc import Iterator

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.study.cells import ADAPTIVE, MANY, Cells
from ghostpoi.study.plan import VICTIM, Study
from ghostpoi.study.table import label


def missing(study: Study, cells: Cells) -> list[str]:
    """One line per victim and method that lacks cells; one for the whole study where it has none."""
    if not cells.about:
        return [f"study `{study.name}`: {study.title}"]
    said = []
    for victim in study.victims:
        here = cells.of(victim)
        with_victim = "" if victim == VICTIM else f", victim {victim}"
        controls = [("clean", "clean", None)] + [("clean", "leak-only", r) for r in study.leak]
        absent = [_name(a, r) for m, a, r in controls if (m, a, r) not in here.contests]
        said += [f"study `{study.name}`{with_victim}: {', '.join(absent)}"] if absent else []
        for variant in study.methods:
            lost = [_name(a, r) for a, r in _asked(study) if (variant.text, a, r) not in here.contests]
            said += [f"study `{study.name}`{with_victim}, {label(variant.text)}: {', '.join(lost)}"] if lost else []
    return said + _of_releases(study, cells)


def never_asked(study: Study) -> list[str]:
    """The numbers of adversaries of A1 to A10 that a study leaves out."""
    return [number for name, number in ADAPTIVE.items() if name not in study.adversaries]


def _of_releases(study: Study, cells: Cells) -> list[str]:
    lost = [label(v.text) for v in study.methods if v.text not in cells.releases]
    said = [f"study `{study.name}`, figures of the release: {', '.join(lost)}"] if lost else []
    if study.detector:
        blind = [label(v.text) for v in study.methods if not cells.release(v.text, "detector", "auc")]
        said += [f"study `{study.name}`, A12: {', '.join(blind)}"] if blind else []
    return said


def _asked(study: Study) -> Iterator[tuple[str, float | None]]:
    for adversary in study.adversaries:
        for ratio in study.leak if ADVERSARIES[adversary].uses_leak else (None,):
            yield adversary, ratio
    for ratio in study.leak:
        yield "leak-mixed", ratio
        for count in study.releases:
            yield f"{MANY}{count}", ratio


def _name(adversary: str, leak: float | None) -> str:
    number = "A11 " if adversary.startswith(MANY) else f"{ADAPTIVE[adversary]} " if adversary in ADAPTIVE else ""
    return f"{number}{adversary}" + ("" if leak is None else f" at {leak:.0%}")
