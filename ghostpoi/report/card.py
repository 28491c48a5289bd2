"""The dataset card: a release in plain words, in the form that the Hugging Face hub reads.

Only the manifest and the head of the released file speak here. Whatever comes from the data is shown, never obeyed: no
column name can end a table, open a link or add a line to the front matter.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ghostpoi.evaluate.controls import CONTROLS as NAMES
from ghostpoi.evaluate.differences import accuracy_lost as share_gone
from ghostpoi.report.croissant import (
    CITATION,
    KEYWORDS,
    LICENSE,
    LIMITS,
    Described,
    describe,
    from_manifest,
    write_page,
)

CARD = "card.md"
SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
    (1_000_000_000, "100M<n<1B"),
)
LARGEST = "n>1B"
UNTOUCHED = {
    "no_candidate": "no other venue of the category is near",
    "kept_by_speed": "every substitute would have been too fast to reach",
    "kept_by_method": "the method chose the venue itself",
}
# Of all that an audit measures, the single figures that say nothing about the clean data alone.
UTILITY = (
    ("popularity", "poi_js", "popularity of venues, Jensen-Shannon divergence in bits", 0),
    ("popularity", "category_js", "popularity of categories, Jensen-Shannon divergence in bits", 0),
    ("hours", "category_hour_js", "categories by hour, Jensen-Shannon divergence in bits", 0),
    ("hours", "cell_hour_js", "1 km cells by hour, Jensen-Shannon divergence in bits", 0),
    ("flows", "common_part", "common part of flows between 1 km cells", 1),
    ("flows", "common_part_between", "the same, without steps that stay in their cell", 1),
    ("gyration", "relative_change", "mean relative change of a user's radius of gyration", 0),
    ("visits", "unique_pois_relative_change", "mean relative change of a user's number of venues", 0),
)
PLAIN = re.compile(r"\w(?:[\w .,/()+-]*[\w)])?")
SPECIAL = re.compile(r"[\\`*_{}\[\]<>|&#~$^!@]")


def write_card(release: Path) -> Path:
    """Write RELEASE/card.md."""
    with from_manifest(release):
        text = _card(describe(release))
    return write_page(release / CARD, text)


def named(value: object) -> str:
    """A name from the data: as code where that is safe, else with every sign spelled as an entity."""
    text = _printable(value)
    if PLAIN.fullmatch(text):
        return f"`{text}`"
    return "".join(c if c.isalnum() or c == " " or not c.isascii() else f"&#{ord(c)};" for c in text) or "(no name)"


def prose(value: object) -> str:
    """A sentence from the manifest, with signs that mean something to Markdown spelled as entities."""
    return SPECIAL.sub(lambda sign: f"&#{ord(sign.group())};", _printable(value))


def quoted(value: str) -> str:
    """A YAML string: JSON's, with nothing in it that ends a line or turns the writing direction."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)


def _printable(value: object) -> str:
    return "".join(c if c.isprintable() else " " for c in str(value)).strip()


def _card(found: Described) -> str:
    sections = (
        ("What this is", _what(found)),
        ("How it was made", _made(found)),
        ("What was substituted, and what was not", _rows(found)),
        ("Plausibility", _plausibility(found)),
        ("What can still be learned", _audit(found)),
        ("What it is still good for", _utility(found)),
        ("What this release does not protect against", [f"- {limit}" for limit in LIMITS]),
        ("How to verify it", _verify(found)),
        ("Columns", _columns(found)),
        ("Licence", _licence()),
        ("Citation", _citation()),
    )
    lines = [*_front_matter(found), "", "# Protected check-ins"]
    for title, body in sections:
        lines += ["", f"## {title}", "", *body]
    return "\n".join(lines) + "\n"


def _front_matter(found: Described) -> list[str]:
    """What the hub reads. The task is `other`: the hub has none for visits, and this release is made to teach none."""
    size = next((name for limit, name in SIZES if found.rows < limit), LARGEST)
    tags = (*KEYWORDS, found.manifest["tool"]["name"], found.manifest["method"])
    lines = [
        "---",
        f"license: {LICENSE}",
        'pretty_name: "Protected check-ins"',
        "task_categories:",
        "- other",
        "tags:",
        *(f"- {quoted(str(tag))}" for tag in tags),
        "size_categories:",
        f"- {quoted(size)}",
        "configs:",
        "- config_name: default",
        f"  data_files: {quoted(found.data.name)}",
    ]
    if found.delimiter and found.data.suffix.lower() in (".csv", ".tsv"):  # the hub reads these as tables
        lines += [f"  sep: {quoted(found.delimiter)}"] if found.delimiter != "," else []
        lines += [f"  encoding: {quoted(found.encoding)}"] if found.encoding != "utf-8" else []
    return [*lines, "---"]


def _what(found: Described) -> list[str]:
    m, share = found.manifest, found.manifest["plausibility"]["substitution_rate"]
    return [
        f"{found.rows:,} check-ins: who was where, and when. In {_percent(share)} of the rows of the original file the "
        "venue is not the one that was visited but another of the same category nearby, chosen by the method "
        f"{named(m['method'])}. The aim: a model that is trained on this release should predict the next visit badly, "
        "while the release stays plausible and useful for statistics. Users, times and categories are genuine. Do not "
        "take a single visit as a fact.",
        "",
        f"The data are in {named(found.data.name)}: {found.layout}. {named('manifest.json')} holds every figure below.",
    ]


def _made(found: Described) -> list[str]:
    m = found.manifest
    settings = (
        (named(section), ", ".join(named(f"{key} {value}") for key, value in values.items()))
        for section, values in m["settings"].items()
    )
    return [
        f"Made with {prose(m['tool']['name'])} {prose(m['tool']['version'])}, method {named(m['method'])}, protocol "
        f"{named(m['protocol'])}. The random numbers behind the choices are secret: without that, anybody could undo "
        "them. The settings are not:",
        "",
        *_table(("section", "settings"), settings),
    ]


def _rows(found: Described) -> list[str]:
    counts = found.manifest["rows"]
    covered, outside = counts["covered"], counts["outside"]
    both = [("rows", "rows"), ("substituted", "substituted")]
    both += [(key, f"not substituted: {why}") for key, why in UNTOUCHED.items()]
    both += [("slowest_taken", "of the substituted: all were too fast to reach, the slowest was taken")]
    table = _table(
        ("", "in sessions that models learn from", "other rows"),
        ((words, f"{covered.get(key, 0):,}", f"{outside.get(key, 0):,}") for key, words in both),
    )
    withheld = counts["withheld"]
    missing = f"{withheld:,} rows without a candidate were left out of the release."
    genuine = "Rows without a candidate are in the release as they were."
    return [
        "Rows in sessions were substituted by the method; all others (rare venues, short sessions) by a random draw "
        "from the same candidates.",
        "",
        *table,
        "",
        missing if withheld else genuine,
    ]


def _plausibility(found: Described) -> list[str]:
    p, speed = found.manifest["plausibility"], found.manifest["speed"]
    steps, over = speed["steps"], speed["steps_over_limit"]
    share = f" ({_percent(over / steps)})" if steps else ""
    return [
        f"- {_percent(p['category_match'])} of the substitutes have the category of the venue they stand for.",
        f"- They lie {p['mean_km']:.2f} km away on average, 95% of them within {p['p95_km']:.2f} km; "
        f"{_percent(p['beyond_1km'])} are more than 1 km away.",
        f"- {over:,} of {steps:,} steps from check-in to check-in{share} imply more than {speed['limit_kmh']:g} km/h.",
    ]


def _audit(found: Described) -> list[str]:
    audit = found.manifest.get("audit")
    if not audit:
        return ["No audit was made of this release: what adversaries can still learn from it has not been measured."]
    clean = audit["clean"]["acc@1"]
    seeds = len(clean["seeds"])
    runs = f"{seeds} runs, mean ± standard deviation" if seeds > 1 else "one run, so no spread is known"
    rows = [("clean data", audit["clean"]), *((NAMES.get(a, a), f) for a, f in audit["adversaries"].items())]
    rows += [(f"control: {_control(c)}", figures) for c, figures in audit["controls"].items()]
    return [
        "A model was trained on what each adversary makes of the release, then tested on clean visits that it had not "
        f"seen: how often is its first guess of the next venue right (acc@1)? {runs}; protocol "
        f"{named(audit['protocol'])}; {_percent(audit['leak'])} of the training sessions are assumed leaked; "
        f"{audit['test_positions']:,} test positions; measured with ghostpoi {prose(audit['version'])}. The strongest "
        f"adversary was {named(audit['strongest'])}.",
        "",
        *_table(
            ("trained on", "acc@1", "clean accuracy gone", "visits restored"),
            ((prose(who), _figure(f["acc@1"]), _gone(f, clean), _restored(f)) for who, f in rows),
        ),
        "",
        *(f"- {named(who)} {prose(verdict)}." for who, verdict in audit["verdicts"].items()),
        "",
        "No defence can push an adversary below what the leaked sessions alone give, and none is worth more than a "
        "random draw unless it beats the random release.",
    ]


def _utility(found: Described) -> list[str]:
    utility = (found.manifest.get("audit") or {}).get("utility")
    if not utility:
        return ["Not measured: that is part of an audit."]
    return [
        "How far statistics drawn from the release are from those of the original, as single figures:",
        "",
        *_table(
            ("statistic", "figure", "if nothing had changed"),
            (
                (words, f"{utility[group][key]:.3f}", str(same))
                for group, key, words, same in UTILITY
                if key in utility.get(group, {})
            ),
        ),
        "",
        "Substitution changes no user, no time and no category.",
    ]


def _verify(found: Described) -> list[str]:
    return [
        "Compare the SHA-256 of the data, or let ghostpoi check that, the speed count and that nothing private is "
        "inside:",
        "",
        f"    {found.manifest['data']['sha256']}",
        "    ghostpoi verify RELEASE",
        "",
        "Whoever holds the original file can also check, with `--against FILE`, that rows are aligned, categories "
        "match and every substitute lies in its candidate set.",
    ]


def _columns(found: Described) -> list[str]:
    kinds = ((named(c.name), c.kind.removeprefix("sc:").lower(), c.description) for c in found.columns)
    return _table(("column", "type", "what it is"), kinds)


def _licence() -> list[str]:
    return [
        "The terms of use are the publisher's to state, here and in the first lines of this file; the tool that wrote "
        "it does not know them."
    ]


def _citation() -> list[str]:
    return ["The method:", "", f"    {CITATION}"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _control(control: str) -> str:
    method, plus, adversary = control.partition("+")
    return f"{NAMES.get(method, method)}, {adversary}" if plus else NAMES.get(control, control)


def _figure(value: dict[str, Any]) -> str:
    return f"{value['mean']:.4f}" + (f" ± {value['std']:.4f}" if len(value["seeds"]) > 1 else "")


def _gone(figures: dict[str, Any], clean: dict[str, Any]) -> str:
    shares = share_gone(clean["seeds"], figures["acc@1"]["seeds"])
    return _percent(sum(shares) / len(shares))


def _restored(figures: dict[str, Any]) -> str:
    return _percent(figures["restored"]["mean"]) if "restored" in figures else ""


def _percent(share: float) -> str:
    return f"{share:.1%}"
