"""docs/adaptive.md, generated from the cells: no finding on it is typed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt

from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.study import figures, plan
from ghostpoi.study.adaptive import findings, tables, target
from ghostpoi.study.adaptive.figures import trade_off
from ghostpoi.study.adaptive.missing import missing, never_asked
from ghostpoi.study.cells import ADAPTIVE, LEAK, VICTIM, Cells
from ghostpoi.study.table import MISSING, Table

PROTOCOL = "strong"  # a weak victim flatters a defence
STUDIES = ("adaptive", "adaptive-leak", "adaptive-releases", "crowds", "transfer")
CITY = "city"  # the study of the synthetic city that the demonstration makes
SYNTH = "--users 400 --pois 1200 --days 100 --seed 7"  # that city
FOLDER = "figures"
LEAKED = "leaked pairs"
RULE = "the candidate rule, and the channel where the method has one"
KNOWN = {  # adversary -> (what it holds, what it does)
    "none": ("the release", "takes it as it is"),
    "bridge": (LEAKED, "trains a causal denoiser on them"),
    "frequency": (LEAKED, "a table from released to clean POI"),
    "bigram": (LEAKED, "the same, given the released POI before"),
    "per-user": (f"{LEAKED} and whose they are", "a table per user, then A3's"),
    "deconvolution": (f"no leak; {RULE}", "EM for the popularity of POIs, then the likeliest behind each released one"),
    "habits": (f"no leak; {RULE}; who released what", "the same per user: repeated draws give a habit away"),
    "habits+leak": ("all that A5 and A7 hold", "both in one model"),
    "hidden-markov": ("all that A8 holds", "adds the steps from one POI to the next"),
    "paired-bridge": (f"{LEAKED}; {RULE}", "a categorical bridge from released to clean, learned on the pairs"),
}
BEYOND = {
    "A11": ("all that A8 holds, of several releases of the same rows", "multiplies their evidence"),
    "A12": ("the release and the leaked sessions", "tells released sessions from clean ones; restores nothing"),
}


@dataclass(frozen=True)
class Measured:
    """The cells of all studies of the page."""

    studies: dict[str, Cells]

    @staticmethod
    def read(results: Path) -> "Measured":
        """All that is there; none is fine."""
        return Measured({study: Cells.read(results, study, PROTOCOL) for study in (*STUDIES, CITY)})

    @property
    def any(self) -> bool:
        return any(cells.about for cells in self.studies.values())

    @property
    def main(self) -> Cells:
        return self.studies["adaptive"]

    @property
    def victims(self) -> dict[str, Cells]:
        """The contests of each victim, those that were not measured too: a line about all of them must know of them.

        The Transformer's are those of the main study.
        """
        other = self.studies["transfer"]
        asked = dict.fromkeys([*plan.load("transfer").victims, *other.victims])
        return {VICTIM: self.main} | {victim: other.of(victim) for victim in asked if victim != VICTIM}

    def facts(self, key: str) -> str:
        """The different values of a field over all cells."""
        return ", ".join(sorted({v for c in self.studies.values() for v in c.about_all(key)})) or MISSING


def write(results: Path, output: Path, say: Callable[[str], None]) -> Path:
    """The page and its figures beside it."""
    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; make it first")
    measured = Measured.read(results)
    if not measured.any:
        say(f"there are no cells of {', '.join((*STUDIES, CITY))} in {results} yet; make them with ghostpoi study run")
    draw(measured, output.parent / FOLDER)
    text = page(measured)
    with replacing(output) as out:
        out.write(text.encode())
    return output


def draw(measured: Measured, folder: Path) -> list[Path]:
    """The figures whose cells are there."""
    made: list[Path] = []
    if measured.main.about:
        made += figures.draw(measured.main, folder, ("svg",))
    ablation = measured.studies["crowds"]
    if ablation.about:
        with plt.rc_context(figures.RC):
            made += figures.save(trade_off(ablation, measured.main), folder, _trade_off_name(), ("svg",))
    return made


def page(measured: Measured) -> str:
    """The whole text."""
    main, where = measured.main, tables.place(measured.main)
    transfer = measured.studies["transfer"]
    parts = [
        _opening(measured),
        _section("What the adversaries know", KNOWS, _known()),
        _section("Who wins back how much", "", tables.accuracies(main), _figure(main, "worst"), tables.restored(main)),
        _section(
            "The strongest adversary", findings.strongest_text(main), findings.mixed_text(main),
            findings.strongest(main, where),
            "Beside an earlier measurement outside of this project:", findings.outside_lines(main),
            tables.beside_outside(main),
        ),
        _section(
            "Does the target hold?", TARGET, target.summary(main, measured.victims),
            target.table(main, measured.victims, where),
        ),
        _section("What a release costs", "", tables.costs(main)),
        _section(
            "How near to the bound", BOUND, findings.bound_text(main), findings.bound(main, where),
            findings.categories_text(measured.studies["crowds"]),
        ),
        _study(measured, "adaptive-leak", "As more leaks", findings.leak_text, tables.leaks),
        _study(measured, "adaptive-releases", "Several releases (A11)", findings.release_text, tables.releases),
        _study(measured, "crowds", "What makes the difference: the ablation", findings.ablation_text, tables.ablation),
        _section(
            "Other victims", *findings.transfer_text(measured.victims),
            tables.transfer(measured.victims, transfer.methods or main.methods, tables.place(transfer)),
        ),
        _section(
            "The synthetic city", findings.order_text(measured.studies[CITY], main),
            tables.ablation(measured.studies[CITY], "Worst cases"),
        ),
        _section("What was not measured", _missing(measured)),
        _section("How it was made", _commands()),
    ]  # fmt: skip
    return "\n".join(part for part in parts if part).rstrip() + "\n"


KNOWS = (
    "Anyone can read this code, so the rule is public: the candidate sets and, where a method draws by a fixed "
    "probability, that too. The seed, the models and the clean file are not. A leaked pair is a whole training session "
    "in clean and in released form. Every victim is then trained on what the adversary made of the release, with the "
    "leaked sessions in clean form where the adversary holds them, and tested on clean sessions. The channel is the "
    "probability with which a method releases a venue as another; β says how closely `crowd` follows T_psi, a language "
    "model of trajectories that was trained on the clean sessions; its default is 0, chosen on these tables."
)
TARGET = (
    "It was set before these cells were measured, with the outside figures above in view: for acc@1 with the "
    f"Transformer victim at {LEAK:.0%} leak, over A1 to A10. Collapsing many venues onto one would be no defence, so a "
    "release must also be no worse than a uniform draw in naturalness, popularity and flows, and no other victim may "
    "get much more from it than from the leak. What was tried for it: the ablation below, with figures; channels by "
    "linear programs and a bounded number of draws, measured outside, in the table above; and what is told on the page "
    "of [crowd](crowd.md). What no such release can keep back: the bound below."
)
BOUND = (
    "Whoever holds the leaked sessions can throw the release away and learn from them alone: no release can push an "
    "adversary below leak-only. What counts is the distance to it."
)


def _opening(measured: Measured) -> str:
    facts = (("Data", "data"), ("Hardware", "hardware"), ("Commits", "commit"), ("Seeds", "seeds"))
    return "\n".join(
        [
            "# Adversaries that know the rule",
            "",
            "Generated from the cells under `results/` by `ghostpoi study page adaptive`; do not edit.",
            "",
            *(f"- {name}: {measured.facts(key)}" for name, key in facts),
            f"- Protocol: {PROTOCOL}",
            "",
            "A difference is taken seed by seed and called lower or higher only if its 95% interval over the seeds "
            "leaves out 0; everything else is inside the spread and no win. Many differences are looked at, so one "
            "clear one among them is weak evidence. A method's name stands for its settings of today; every cell holds "
            "its settings in full, for older commits had other defaults.",
            "",
        ]
    )


def _known() -> Table:
    rows = [(ADAPTIVE[name], f"`{name}`", *words) for name, words in KNOWN.items()]
    rows += [(number, "", *words) for number, words in BEYOND.items()]
    return Table("The adversaries", ("", "name", "holds", "does"), tuple(rows))


def _study(
    measured: Measured, study: str, title: str, say: Callable[[Cells], findings.Parts], make: Callable[[Cells], Table]
) -> str:
    cells = measured.studies[study]
    if study in figures.FIGURES:
        return _section(title, *say(cells), make(cells), _figure(cells, figures.FIGURES[study][0]))
    return _section(title, *say(cells), make(cells))


def _section(title: str, *parts: str | list[str] | Table) -> str:
    """Paragraphs, lists and tables under a heading."""
    lines = [f"## {title}", ""]
    for part in parts:
        if isinstance(part, Table):
            lines.append(part.markdown())
        elif isinstance(part, list):
            lines += [*(f"- {item}" for item in part), ""]
        elif part:
            lines += [part, ""]
    return "\n".join(lines)


def _figure(cells: Cells, name: str) -> str:
    return f"![{name}]({FOLDER}/{name}-{PROTOCOL}.svg)" if cells.about else ""


def _trade_off_name() -> str:
    return f"{figures.FIGURES['crowds'][0]}-{PROTOCOL}"


def _missing(measured: Measured) -> list[str]:
    """Cells that studies ask for and do not have, then what no study asks for."""
    said = [line for study, cells in measured.studies.items() for line in missing(plan.load(study), cells)]
    absent = never_asked(plan.load("adaptive"))
    said += [f"{', '.join(absent)}: not in the study `adaptive`"] if absent else []
    cities = {c.city for c in measured.studies.values() if c.about}
    said += ["Foursquare-TKY: the studies run on any prepared file"] if "tky" not in cities else []
    return [*said, *_not_asked()]


def _not_asked() -> Iterable[str]:
    yield f"protocol `paper`: this page is about the stronger victim alone, protocol `{PROTOCOL}`"
    yield (
        "adversaries made for `crowd` with β above 0, whose draws tell what T_psi knows: A6 to A9 and A11 count what "
        "is popular inside crowds and look no further; what a victim learns of the rest shows under A1 and leak-mixed"
    )
    yield "adversaries that nobody here thought of: a worst case is the worst of those listed"


def _commands() -> str:
    return "\n".join(
        [
            "    ghostpoi prepare dataset_TSMC2014_NYC.txt -o nyc.npz",
            f"    ghostpoi study run {' '.join(STUDIES)} --data nyc.npz --protocol {PROTOCOL}",
            f"    ghostpoi synth -o synthetic_city.txt {SYNTH}",
            "    ghostpoi prepare synthetic_city.txt -o city.npz",
            f"    ghostpoi study run {CITY} --data city.npz --protocol {PROTOCOL}",
            "    ghostpoi study page adaptive -o docs/adaptive.md",
        ]
    )
