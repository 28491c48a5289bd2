"""card.md: it says what the manifest says, in every state of a release, and shows names without interpreting them."""

import csv
import inspect
import io
import json
import re
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from croissant_files import ODD, rewritten, rich, table
from huggingface_hub import DatasetCard, DatasetCardData
from markdown_it import MarkdownIt
from markdown_it.token import Token
from sample_releases import AUDIT, copied
from small_city import SEED, Release, called, city, release, scratch

from ghostpoi.audits.controls import CONTROLS
from ghostpoi.draw.methods import METHODS
from ghostpoi.errors import InputError
from ghostpoi.reports.dataset_card import card, named, prose, quoted
from ghostpoi.reports.release_view import open_release
from ghostpoi.reports.texts import TEXTS, share, victim_label

SECTIONS = [
    "What this is", "How it was made", "What was substituted", "Plausibility", "What adversaries can still learn",
    "Utility", "What this release does not protect against", "How to verify it", "Columns", "Licence", "Citation",
]  # fmt: skip


def parsed(text: str) -> list[Token]:
    """The card's body as a hub reads it."""
    return MarkdownIt("commonmark").enable("table").parse(text.split("\n---\n", 1)[1])


def front(text: str) -> list[str]:
    lines = text.splitlines()
    assert lines[0] == "---"
    return lines[1 : lines.index("---", 1)]


def headings(text: str) -> list[str]:
    tokens = parsed(text)
    return [t.content for before, t in pairwise(tokens) if before.type == "heading_open"]


def shown(token: Token) -> str:
    """What a reader sees of a line."""
    return "".join(child.content for child in token.children or [])


def tables(text: str) -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    tokens = parsed(text)
    for before, token in zip([tokens[0], *tokens], tokens, strict=False):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif before.type in ("th_open", "td_open"):
            found[-1][-1].append(shown(token))
    return found


def section(text: str, title: str) -> str:
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


@cache
def audited() -> Release:
    """A release with a small audit in its manifest."""
    folder = scratch() / "audited-card"
    shutil.copytree(release("random").folder, folder)
    sets = [word for text in AUDIT for word in ("--set", text)]
    done = called(
        "audit", city(), folder, "--seeds", 2, "--adversaries", "none,frequency", "--no-naturalness", "--cache",
        scratch() / "audit", "--device", "cpu", "--victim", "markov", *sets,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return Release(folder, city(), done)


@pytest.mark.parametrize("kind", ["txt", "csv", "parquet"])
def test_every_section_stands_in_every_card(kind: str, tmp_path: Path) -> None:
    made = release("random", kind)
    folder = rewritten(tmp_path, made)
    text = card(open_release(folder))
    assert headings(text) == ["Protected check-ins", *SECTIONS]
    assert "has not been audited" in section(text, "What adversaries can still learn")
    assert "Not measured" in section(text, "Utility")
    assert made.manifest["data"]["sha256"] in section(text, "How to verify it")
    assert all(f"- {title} {limit}\n" in text for title, limit in open_release(folder).limits)
    assert f"- {TEXTS['limits'][0][0]} {TEXTS['limits'][0][1]}\n" in text
    assert tables(text)[-1][0] == ["column", "type", "description"]
    assert card(open_release(folder)) == text
    (folder / "card.md").write_text(text, "utf-8")
    assert called("verify", folder).returncode == 0


def test_numbers_are_those_of_the_manifest(tmp_path: Path) -> None:
    made = release("random")
    text = card(open_release(rewritten(tmp_path, made)))
    m = made.manifest
    rows = {row[0]: row[1:] for row in tables(text)[1]}
    groups = list(open_release(made.folder).row_counts.values())
    assert rows["substituted"] == [f"{g['substituted']:,}" for g in groups]
    assert rows["kept: no candidate nearby"] == [f"{g['no_candidate']:,}" for g in groups]
    assert f"{m['plausibility']['mean_km']:.2f} km" in section(text, "Plausibility")
    assert f"{m['speed']['steps']:,} steps" in section(text, "Plausibility")
    assert f"ghostpoi {m['tool']['version']}" in section(text, "How it was made")
    settings = {row[0]: row[1] for row in tables(text)[0]}
    for name, values in m["settings"].items():
        assert settings[name].split(", ") == [f"{key} {value}".strip() for key, value in values.items()]


def test_front_matter(tmp_path: Path) -> None:
    lines = front(card(open_release(rewritten(tmp_path, release("random")))))
    assert lines[0] == "license: unknown"
    assert '- "1K<n<10K"' in lines
    assert lines[lines.index("task_categories:") + 1] == "- other"
    assert lines[-2:] == ["- config_name: default", '  data_files: "checkins.txt"']
    pattern = re.compile(r'(  |- )?([a-z_]+:( [a-z]+| "[^"]*")?|[a-z]+|"[^"]*")')
    assert all(pattern.fullmatch(line) for line in lines)


def test_the_hub_reads_the_card(tmp_path: Path) -> None:
    """Through its own classes, which know the keys of the front matter and put others aside."""
    found = DatasetCard(card(open_release(rewritten(tmp_path, release("random"))))).data
    assert isinstance(found, DatasetCardData)
    known = set(inspect.signature(DatasetCardData).parameters)
    assert set(found.to_dict()) <= known - {"kwargs"} | {"configs", "tags"}
    assert (found.license, found.task_categories, found.size_categories) == ("unknown", ["other"], ["1K<n<10K"])
    assert found.tags == [*TEXTS["keywords"], "ghostpoi", "random"]
    assert found.to_dict()["configs"] == [{"config_name": "default", "data_files": "checkins.txt"}]
    assert DatasetCardData(**found.to_dict()).to_yaml() == found.to_yaml()


def test_the_hub_is_told_the_delimiter_and_the_encoding(tmp_path: Path) -> None:
    rows = rich()
    rows[1][6] = "café"
    lines = front(card(open_release(rewritten(tmp_path, release("random", "csv"), table(rows, ";").encode("latin-1")))))
    assert lines[-2:] == ['  sep: ";"', '  encoding: "latin-1"']


def test_withheld_rows_are_said(tmp_path: Path) -> None:
    made = release("random", "txt", "--no-candidate", "withhold")
    text = section(card(open_release(rewritten(tmp_path, made))), SECTIONS[2])
    assert f"leaves out {made.manifest['rows']['withheld']:,} rows without a candidate" in text
    assert "withheld: no candidate nearby" in text


def test_the_audit_stands_beside_its_controls(tmp_path: Path) -> None:
    made = audited()
    text = card(open_release(rewritten(tmp_path, made)))
    audit = made.manifest["audit"]
    learned = section(text, "What adversaries can still learn")
    for when, leak in (("Without a leak", "no_leak"), ("With the leak", "with_leak")):
        assert f"- {when}: {audit['gives_away'][leak]['verdict']}. " in learned
    measures = {row[0]: row[1:] for row in tables(text)[2]}
    assert len(measures) == 2 + len(audit["adversaries"]) + len(audit["controls"])
    acc = audit["adversaries"]["frequency"]
    assert measures[victim_label("frequency")] == [
        f"{acc['acc@1']['mean']:.4f} ± {acc['acc@1']['std']:.4f}",
        f"{acc['acc@1_moves']['mean']:.4f} ± {acc['acc@1_moves']['std']:.4f}",
        share(acc["accuracy_lost"]["mean"], 1),
        share(acc["restored"]["mean"], 1),
    ]
    assert {f"control: {CONTROLS[name]}" for name in ("leak-only", "random", "stay")} <= set(measures)
    alone = [victim_label(audit["gives_away"][leak]["control"]) for leak in ("no_leak", "with_leak")]
    assert f"Without the release, an adversary has {alone[0]} and, with the leak, {alone[1]}." in learned
    assert f"The strongest is {victim_label(audit['strongest'])}." in learned
    utility = {row[0]: row[2:] for row in tables(text)[4]}
    assert utility["Flows between 1 km squares"] == [f"{audit['utility']['flows']['common_part']:.3f}", "1"]


def test_nothing_clean_and_no_seed(tmp_path: Path) -> None:
    """Not even where a manifest holds statistics of clean data that an audit would not store."""

    def careless(manifest: dict[str, Any]) -> None:
        manifest["audit"]["utility"]["gyration"]["mean_km_before"] = 98765.4321
        manifest["audit"]["plausibility"]["speed_violations_clean"] = 98765.4321

    text = card(open_release(rewritten(tmp_path, audited(), change=careless)))
    assert "98765" not in text
    assert all(form not in text for form in (str(SEED), f"{SEED:x}", f"{SEED:X}"))
    for line in city().read_text("latin-1").splitlines():
        assert not any(field in text for field in line.split("\t")[1:3])


def test_names_from_the_data_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    evil = [
        *ODD, "`code`", "[a](http://b.c)", "www.evil.example", "![x](y)", "seed: 7", "---", "\\|", "&lt;", "*b*", "_i_",
        "$x$", "\u202egnp", "",
    ]  # fmt: skip
    head, *rows = rich()
    wide = [[*head, *evil], *([*row, *("x" * len(evil))] for row in rows)]
    folder = rewritten(tmp_path, release("random", "csv"), table(wide).encode())
    text = card(open_release(folder))
    (folder / "card.md").write_text(text, "utf-8")
    assert headings(text) == ["Protected check-ins", *SECTIONS]
    columns = [row[0] for row in tables(text)[-1][1:]]
    assert columns == [*head, *evil[:-2], "gnp", "(no name)"]
    assert all(len(row) == 3 for row in tables(text)[-1])
    kinds = {child.type for token in parsed(text) for child in token.children or []}
    assert kinds <= {"text", "code_inline", "text_special"}
    assert not {t.type for t in parsed(text)} & {"html_block", "fence"}
    assert "<script" not in text
    assert not re.search(r"(?<!`)www\.|http://", section(text, "Columns"))
    assert "pass  nothing private" in called("verify", folder).stdout


def test_odd_extension(tmp_path: Path) -> None:
    made = release("random")
    name = 'checkins.a "b" <i>|é\n---\nlicense: mit'

    def rename(manifest: dict[str, Any]) -> None:
        manifest["data"]["file"] = name

    folder = rewritten(tmp_path, made, change=rename)
    (folder / made.data.name).rename(folder / name)
    text = card(open_release(folder))
    (folder / "card.md").write_text(text, "utf-8")
    assert [line for line in front(text) if "license" in line] == ["license: unknown", front(text)[-1]]
    assert json.loads(front(text)[-1].removeprefix("  data_files: ")) == name
    assert headings(text) == ["Protected check-ins", *SECTIONS]
    assert called("verify", folder).returncode == 0


@pytest.mark.parametrize("text", ["", "a", "\x00\x85\u2028", "\ud800", "🗽", '"\\', "\n- x: y"])
def test_quoted_stays_on_its_line(text: str) -> None:
    line = quoted(text)
    assert line.isprintable()
    assert line.startswith('"')
    assert line.endswith('"')
    short = re.sub(r"\\U0000(....)", r"\\u\1", line)  # YAML's form as JSON's
    assert json.loads(short) == text


def test_named_and_prose() -> None:
    assert named("venue_id") == "`venue_id`"
    assert named("a|b") == "a&#124;b"
    assert named("  ") == "(no name)"
    assert prose("1 < 2 | [x]") == "1 &#60; 2 &#124; &#91;x&#93;"
    assert next(csv.reader(io.StringIO(prose("a\nb")))) == ["a b"]


@pytest.mark.parametrize("part", ["plausibility", "protocol", "tool"])
def test_a_manifest_without_a_part(part: str, tmp_path: Path) -> None:
    folder = rewritten(tmp_path, release("random"), change=lambda m: m.pop(part))
    with pytest.raises(InputError, match=rf"is not a manifest of ghostpoi \({part} is missing") as refused:
        open_release(folder)
    assert "\n" not in str(refused.value)


def test_an_audit_of_another_shape(tmp_path: Path) -> None:
    folder = rewritten(tmp_path, release("random"), change=lambda m: m.update(audit={"clean": 7}))
    with pytest.raises(InputError, match="run ghostpoi audit again"):
        open_release(folder)


@pytest.mark.parametrize(
    ("method", "cites_paper"), [("ghost", True), ("pgd", True), ("crowd", False), ("random", False)]
)
def test_the_card_describes_and_cites_the_method_that_made_the_release(
    method: str, cites_paper: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "r"
    shutil.copytree(release(method).folder, folder)
    assert called("report", folder).returncode == 0
    text = (folder / "card.md").read_text("utf-8")
    p = release(method).manifest["plausibility"]
    what = section(text, "What this is")
    assert f"What the method does: {prose(METHODS[method].summary)}" in what
    assert f"{p['mean_km']:.2f} km away on average and up to {p['p95_km']:.2f} km in 95% of these rows" in what
    assert "nearby" not in what
    cited = re.findall(r"    @\w+\{(\w+),", section(text, "Citation"))
    assert cited == ["ghostpoi", "ghost"][: 1 + cites_paper]
    described = json.loads((folder / "croissant.json").read_text("utf-8"))
    assert ("GHOST" in described["citeAs"]) == cites_paper
    assert "@software{ghostpoi," in described["citeAs"]
    assert METHODS[method].summary in described["description"]
    assert f"{p['mean_km']:.2f} km away on average" in described["description"]
    assert "nearby" not in described["description"]


def test_figures_say_over_which_rows_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(release("random").folder, folder)
    assert called("report", folder).returncode == 0
    steps = f"{release('random').manifest['speed']['steps']:,}"
    card_text, page = (folder / "card.md").read_text("utf-8"), (folder / "report.html").read_text("utf-8")
    for part in (
        "of the substituted rows keep the category",
        "mean displacement of the substituted rows",
        "of all rows of the original file were substituted",
        f"of the {steps} steps between the released rows of a user exceed 60 km/h",
    ):
        assert part in page
    for part in (
        "of the substituted rows keep the category",
        "The mean displacement of the substituted rows is",
        f"{steps} steps between the released rows of a user, in and outside sessions",
    ):
        assert part in section(card_text, "Plausibility")


@pytest.mark.parametrize(
    ("more", "says", "column"),
    [
        (
            ("method.category=exact", "method.draw=even", "hide.homes=false"),
            "Every substitute has the category of the clean venue, as the paper on GHOST demands.",
            "the same for every",
        ),
        (("method.category=exact", "method.draw=even"), "demands. Venues that the release never shows", "changes with"),
        (
            ("method.category=group", "method.draw=even"),
            "The manifest lists the groups. Venues that the release never shows",
            "changes with",
        ),
        ((), "A substitute may have any category.", "changes with the venue"),
    ],
)
def test_card_and_report_say_what_happens_to_categories(
    more: tuple[str, ...], says: str, column: str, tmp_path: Path
) -> None:
    flags = [word for text in more for word in ("--set", text)]
    made = copied(release("crowd", "txt", *flags), tmp_path)
    assert called("report", made).returncode == 0
    text, page = (" ".join((made / name).read_text().split()) for name in ("card.md", "report.html"))
    assert says in text
    assert says in page
    assert ("an exception: their substitutes may have any category" in text) == ("never shows" in says)
    assert f"Category of the venue; {column}" in text
    assert ("thereby publishes, aggregates of the clean file" in text) == ("method.category=exact" not in more)
