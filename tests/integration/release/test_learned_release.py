"""Methods with candidate sets on a file without categories: candidates.category=learned, on the command line."""

import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from small_city import MAP, SEED, Release, called, protect, release, rich_frame, scratch, sentence
from written_as import snap

from ghostpoi.draw.methods.base import VENUE_USE
from ghostpoi.study.plan import Variant
from ghostpoi.study.store import short_hash

LEARNED = ["--set", "candidates.category=learned"]
SPLIT = ("--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2")
AUDIT = ["--victim", "markov", "--no-naturalness", "--seeds", "1", "--leak", "0.3", *SPLIT]


@cache
def released(method: str, *more: str) -> Release:
    return protect(snap(), scratch() / f"learned-{method}{len(more)}", "--method", method, *LEARNED, *more)


@pytest.mark.parametrize("method", ["ghost", "pgd", "em", "random"])
def test_a_file_without_a_category_is_protected(method: str) -> None:
    made = released(method)
    clean, out = (path.read_text().splitlines() for path in (snap(), made.data))
    assert [line.split("\t")[:2] for line in out] == [line.split("\t")[:2] for line in clean]
    assert sum(a != b for a, b in zip(clean, out, strict=True)) > len(clean) / 2
    done = called("verify", made.folder, "--against", snap())
    assert done.returncode == 0, done.stdout
    assert "substitutes are in their candidate set" in done.stdout


def test_the_manifest_states_the_rule_and_what_it_shows() -> None:
    manifest = released("ghost").manifest
    found = manifest["settings"]["candidates"]
    assert (found["category"], found["plausibility"]) == ("learned", 0.6)
    assert manifest["disclosure"] == {"category": "none", "category_groups": [], "aggregates": [VENUE_USE]}


def test_audit_and_report_work(tmp_path: Path) -> None:
    for name in (released("random").folder, released("random").private):
        shutil.copytree(name, tmp_path / name.name)
    folder = tmp_path / released("random").folder.name
    done = called("audit", snap(), folder, *AUDIT, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["adversaries"]
    # An adversary that knows the rule gets the true sets: it restores more than the rows that were left alone.
    assert found["habits"]["restored"]["mean"] > found["none"]["restored"]["mean"] + 0.05
    assert called("report", folder).returncode == 0
    page = (folder / "report.html").read_text()
    assert VENUE_USE in page
    assert "Candidates per venue" not in page  # the release alone does not reveal the sets
    assert called("verify", folder).returncode == 0


@pytest.mark.parametrize(("category", "of"), [("exact", " of the same category"), ("any", "")])
def test_the_report_states_the_candidate_rule(category: str, of: str, tmp_path: Path) -> None:
    made = release("random", "txt", "--set", f"candidates.category={category}")
    assert called("report", made.folder, "-o", tmp_path / "page.html").returncode == 0
    assert f"A candidate set holds the venues{of} within 1 km" in (tmp_path / "page.html").read_text()


def test_a_strict_threshold_leaves_more_rows_without_a_candidate() -> None:
    strict = released("random", "--set", "candidates.plausibility=0.95").manifest["rows"]
    loose = released("random").manifest["rows"]
    assert strict["in_sessions"]["no_candidate"] > loose["in_sessions"]["no_candidate"]


def test_a_threshold_that_nothing_reaches_is_refused(tmp_path: Path) -> None:
    strict = ["--set", "candidates.plausibility=1", "--set", "candidates.radius_km=0.000001"]
    said = sentence(called("protect", snap(), "-o", tmp_path / "r", "--method", "random", *LEARNED, *strict))
    assert said.startswith("no venue has another that is used the same way nearby, so nothing can be substituted; ")
    assert said.endswith("or lower candidates.plausibility")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("category", ["learned", "any"])
def test_categories_do_not_matter(category: str, tmp_path: Path) -> None:
    spots = rich_frame()["spot"].unique().sort()
    kinds = dict(zip(spots, np.random.default_rng(0).integers(0, 9, len(spots)).tolist(), strict=True))
    mixed = rich_frame().with_columns(catid=pl.Series([f"c{kinds[s]}" for s in rich_frame()["spot"]]))
    found = []
    for name, frame in {"own": rich_frame(), "mixed": mixed, "hidden": rich_frame().drop("catid")}.items():
        path = tmp_path / f"{name}.csv"
        frame.drop("checkin", "address", "title").write_csv(path)
        follow = ["--method", "random", "--set", f"candidates.category={category}"]
        made = protect(path, tmp_path / name, *follow, "--seed", SEED, *MAP)
        done = called("verify", made.folder, "--against", path)
        assert done.returncode == 0, done.stdout
        found.append(pl.read_csv(made.data)["spot"].to_list())
        assert made.manifest["disclosure"]["category"] == ("none" if name == "hidden" else "any")
    assert found[0] == found[1] == found[2] != rich_frame()["spot"].to_list()


@pytest.mark.parametrize(
    "words",
    [["protect", "-o", "OUT"], ["protect", "-o", "OUT", "--dry-run"], ["inspect"], ["choose", "-o", "OUT.html"]],
)
def test_a_method_with_its_own_sets_refuses_the_setting(words: list[str], tmp_path: Path) -> None:
    command, *more = (word.replace("OUT", str(tmp_path / "out")) for word in words)
    said = sentence(called(command, snap(), *more, *LEARNED))
    assert said.startswith("candidates.category=learned has no effect on a method that builds its own ")
    assert "ghost" in said


@pytest.mark.parametrize(
    ("method", "setting", "kind"),
    [
        ("crowd", "candidates.radius_km=2.0", "that builds its own candidate sets"),
        ("k-anonymous", "candidates.max_candidates=5", "that builds its own candidate sets"),
        ("geo-indistinguishability", "speed.limit_kmh=90.0", "that may release any venue"),
        ("crowd", "rounds.outer=3", "without models"),
        ("random", "surrogate.dim=16", "without a surrogate"),
        ("k-anonymous", "training.epochs=7", "without a surrogate"),
        ("pgd", "lm.dim=16", "without a trajectory LM"),
        ("em", "lm_training.epochs=2", "without a trajectory LM"),
    ],
)
def test_a_setting_that_the_method_does_not_read_is_refused(
    method: str, setting: str, kind: str, tmp_path: Path
) -> None:
    words = ("protect", snap(), "-o", tmp_path / "out", "--method", method)
    said = sentence(called(*words, "--set", setting))
    assert said.startswith(
        f"{setting} has no effect on a method {kind}; leave it out, or choose a method that reads it"
    )
    assert " with --method: ghost, " in said
    assert f" {method}" not in said.split(": ")[1]
    section, _, rest = setting.partition(".")
    key, _, value = rest.partition("=")
    (tmp_path / "s.toml").write_text(f"[{section}]\n{key} = {value}\n")
    if section in ("candidates", "speed"):  # the others may be for another method, or for audits
        assert sentence(called(*words, "--config", tmp_path / "s.toml")) == said
        assert called(*words, "--protocol", "paper", "--dry-run").returncode == 0


def test_the_plausibility_of_learned_sets_is_refused_without_them(tmp_path: Path) -> None:
    words = ("protect", snap(), "-o", tmp_path / "out", "--method", "random", "--set", "candidates.plausibility=0.5")
    assert sentence(called(*words)) == (
        "candidates.plausibility=0.5 has no effect without learned candidate sets; leave it out, or add "
        "--set candidates.category=learned"
    )


def test_inspect_and_prepare_tell_about_learned_sets(tmp_path: Path) -> None:
    def sets(*more: str) -> dict[str, float]:
        found: dict[str, float] = json.loads(called("inspect", snap(), "--method", "random", *more, "--json").stdout)[
            "candidates"
        ]
        return found

    loose, strict = sets(*LEARNED), sets(*LEARNED, "--set", "candidates.plausibility=0.7")
    assert loose["mean_size"] > strict["mean_size"] > 0
    assert called("prepare", snap(), "-o", tmp_path / "x.npz", *LEARNED).returncode == 0
    with np.load(tmp_path / "x.npz") as z:
        assert z["candidates"].any()


def test_cells_without_the_setting_keep_their_identity() -> None:
    known = json.loads((ROOT / "results" / "settings.json").read_text())
    hashes = [short_hash(Variant(name).recorded("strong")) for name in ("ghost", "random")]
    assert {*hashes} <= {*known}
    learned = Variant("ghost candidates.category=learned").recorded("strong")["candidates"]
    assert (learned["category"], learned["plausibility"]) == ("learned", 0.6)
