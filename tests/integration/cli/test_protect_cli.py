"""The commands protect and verify: error messages, output, and dry runs that write nothing."""

import json
import re
from pathlib import Path

import pytest
import torch
from conftest import ghostpoi
from small_city import RICH, SEED, SETS, called, city, release, rich_csv, rich_frame, sentence

HERE = ("-o", "OUT", *SETS)
BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown method": (("--method", "gost"), r"there is no method 'gost'; did you mean ghost\?"),
    "unheard-of method": (("--method", "xyzzy"), r"there is no method 'xyzzy'; choose one of ghost, ghost-sym, .+"),
    "unknown protocol": (("--protocol", "weak"), r"there is no protocol 'weak'; choose one of strong, paper"),
    "unknown device": (("--device", "tpu"), r"--device tpu: unknown device; use auto, cpu or cuda"),
    "bad set": (("--set", "method.alpha"), r"--set 'method.alpha' is not of the form .+"),
    "unknown section": (("--set", "methods.alpha=1"), r".+there is no section 'methods'; sections are .+"),
    "another method's setting": (("--method", "pgd", "--set", "method.alpha=1"), r".+has no setting 'alpha'; .+"),
    "a word for a number": (("--set", "rounds.outer=many"), r".+rounds.outer must be a whole number, not 'many'"),
    "too few rounds": (("--set", "rounds.outer=0"), r".+rounds.outer must be at least 1, not 0"),
    "heads": (
        ("--method", "pgd", "--set", "surrogate.heads=3"),
        r"surrogate.dim=16 is not a multiple of surrogate.heads=3; change .+",
    ),
    "heads of the LM": (("--method", "ghost", "--set", "lm.heads=3"), r"lm.dim=16 is not a multiple of lm.heads=3; .+"),
    "bogus no-candidate": (("--no-candidate", "bogus"), r"--no-candidate bogus: use keep or withhold"),
    "unknown column to keep": (("--keep", "nope"), r"--keep nope: .+ has no column 'nope'; its columns are .+"),
    "venue to keep": (("--keep", "latitude"), r"--keep latitude: this column describes the venue .+"),
    "negative seed": (("--seed", "-1"), r"Invalid value for '--seed'.+"),
    "no number for a seed": (("--seed", "abc"), r"Invalid value for '--seed'.+"),
    "nothing to train on": (("--set", "filters.min_poi_checkins=999999"), r".+leaves nothing of [\d,]+ check-ins.+"),
    "nothing substitutable": (
        ("--set", "method.reach_km=0.1", "--set", "method.category=exact", "--map", "category=venue_id"),
        r"no venue has another of its category nearby, .+; widen the search with --set method.reach_km=100 or map .+",
    ),
    "nothing substitutable by the candidate rule": (
        ("--method", "random", "--set", "candidates.radius_km=1e-6", "--map", "category=venue_id"),
        r"no venue has another of its category nearby, .+; widen the search with --set candidates.radius_km=5 or .+",
    ),
    "diverging": (
        ("--set", "training.learning_rate=1e30", "--set", "rounds.inner=3", "--method", "pgd"),
        r".+diverged; .+",
    ),
    "diverging LM": (
        ("--method", "ghost", "--set", "lm_training.learning_rate=1e30", "--set", "lm_training.epochs=3"),
        r"the trajectory LM's .+ diverged; .+",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_usage_is_one_sentence_and_leaves_nothing(case: str, tmp_path: Path) -> None:
    more, says = BAD[case]
    done = called("protect", city(), "-o", tmp_path / "r", *SETS, *more)
    assert re.fullmatch(says, sentence(done)), done.stderr
    assert not done.stdout
    assert not (tmp_path / "r").exists()
    if "diverging" not in case:
        assert not list(tmp_path.iterdir())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA card")
def test_cuda_where_there_is_none(tmp_path: Path) -> None:
    done = called("protect", city(), "-o", tmp_path / "r", "--method", "ghost", "--device", "cuda")
    assert sentence(done) == "--device cuda: torch finds no CUDA card here; use --device cpu or auto"
    assert not list(tmp_path.iterdir())


def test_missing_arguments() -> None:
    assert "Missing option" in sentence(called("protect", city()))
    assert "Missing argument" in sentence(called("protect", "-o", "x"))
    assert "Missing argument" in sentence(called("verify"))


@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_odd_output_folders(folder: str) -> None:
    said = sentence(called("protect", city(), "-o", folder, *SETS))
    assert "exists already" in said or "would be inside the release" in said


@pytest.mark.parametrize("method", ["ghost", "random"])
def test_a_dry_run_writes_nothing_and_estimates(method: str, tmp_path: Path) -> None:
    command = ("protect", city(), "-o", tmp_path / "r", "--method", method, *SETS, "--dry-run")
    done = called(*command, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    estimate = json.loads(done.stdout)
    manifest = release("random").manifest
    assert estimate["rows"] == manifest["data"]["rows"]
    assert estimate["rows_in_sessions"] == manifest["rows"]["in_sessions"]["rows"]
    assert estimate["seconds"] == pytest.approx(sum(estimate["steps"].values()))
    assert all(seconds > 0 for seconds in estimate["steps"].values())
    assert estimate["peak_bytes"] > 10**7
    assert (estimate["rounds"], estimate["epochs"]) == ((2, 3) if method == "ghost" else (1, 0))
    shown = called(*command)
    assert (shown.returncode, shown.stderr) == (0, "")
    for word in ("about ", "memory about ", "substitutes about ", " keep their clean venue: "):
        assert word in shown.stdout
    assert not list(tmp_path.iterdir())


def test_json_is_one_object_on_stdout_and_the_rest_on_stderr(tmp_path: Path) -> None:
    short = ("--seed", 7, "--allow-short-seed")
    done = ghostpoi("protect", city(), "-o", tmp_path / "r", "--method", "random", *short, *SETS, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert done.stderr.startswith("warning: ")
    report = ghostpoi("verify", tmp_path / "r", "--against", city(), "--json")
    assert (report.returncode, report.stderr) == (0, "")
    assert json.loads(report.stdout)["passed"] is True


def test_what_a_person_reads() -> None:
    done = release("random").done
    assert (done.returncode, done.stderr) == (0, "")
    for word in (
        "rows released with random",
        "in sessions",
        "outside sessions",
        "category match 0.888",
        "signed by key ",
        "never publish them",
    ):
        assert word in done.stdout
    assert "\x1b" not in done.stdout


def test_a_trace_of_the_venue_is_refused_and_kept_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    lines = rich_csv().read_text().splitlines()
    near = [f"{lat + i % 9 * 1e-5:.6f}" for i, lat in enumerate(rich_frame()["lat"])]
    path.write_text("\n".join(f"{line},{value}" for line, value in zip(lines, ["near", *near], strict=True)) + "\n")
    command = ("protect", path, "-o", tmp_path / "r", "--method", "random", *RICH, *SETS)
    assert sentence(called(*command)) == (
        f"{path}: the column 'near' holds a coordinate of the clean venue (96.7% of rows), so it could reveal clean "
        "venues; leave it out with --drop near, or keep it at your own risk with --keep near"
    )
    assert not (tmp_path / "r").exists()
    assert called(*command, "--keep", "near").returncode == 0
    kept = [line.rsplit(",", 1)[1] for line in (tmp_path / "r" / "checkins.csv").read_text().splitlines()]
    assert kept == ["near", *near]
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["columns"]["kept"] == [
        "gender",
        "mood",
        "checkin",
        "near",
    ]


def test_the_paper_protocol_ignores_the_mask_where_it_leaves_nothing(tmp_path: Path) -> None:
    command = (
        "protect",
        city(),
        "-o",
        tmp_path / "r",
        "--method",
        "random",
        "--seed",
        SEED,
        *SETS,
        "--protocol",
        "paper",
    )
    assert called(*command, "--set", "speed.limit_kmh=2").returncode == 0
    rows = json.loads((tmp_path / "r" / "manifest.json").read_text())["rows"]
    for group in ("in_sessions", "outside_sessions"):
        assert rows[group]["kept_by_speed"] == 0
        assert rows[group]["substituted"] == rows[group]["rows"] - rows[group]["no_candidate"]
    assert rows["in_sessions"]["slowest_taken"] > 0
    strict = ("protect", city(), "-o", tmp_path / "s", "--method", "random", "--seed", SEED, *SETS)
    assert called(*strict, "--set", "speed.limit_kmh=2").returncode == 0
    rows = json.loads((tmp_path / "s" / "manifest.json").read_text())["rows"]
    assert rows["in_sessions"]["kept_by_speed"] > 0
    for folder in ("r", "s"):
        assert called("verify", tmp_path / folder, "--against", city()).returncode == 0
