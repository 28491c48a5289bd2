"""The page on RecBole shows what results/recbole.json holds, and the script that measures it measures that."""

import json
import shutil
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch
from conftest import ROOT
from findings import prose

from docs import rerun_recbole as rerun

GOLDEN = ROOT / "tests" / "golden" / "recbole-private"
PAGE = prose("results/third-party.md")
RELEASED = ("clean", "random", "ghost", "crowd-halves")
MEASURED = sorted({run["model"] for run in json.loads(rerun.RESULTS.read_text())["runs"]})


def test_each_model_was_trained_on_each_release() -> None:
    found = json.loads(rerun.RESULTS.read_text())
    for model in MEASURED:
        trained = {run["trained_on"] for run in found["runs"] if run["model"] == model}
        assert trained == set(RELEASED)


def means(model: str, key: str) -> dict[str, float]:
    runs = [run for run in json.loads(rerun.RESULTS.read_text())["runs"] if run["model"] == model]
    return {what: mean(run[key] for run in runs if run["trained_on"] == what) for what in RELEASED}


@pytest.mark.parametrize("model", MEASURED)
def test_what_the_page_says_about_the_results_holds(model: str) -> None:
    moves, five = means(model, "acc@1_moves"), means(model, "acc@5")
    highest = max(moves[what] for what in RELEASED if what != "clean")
    assert f"from {short(moves['clean'])} to {short(highest)} or less ({model})" in PAGE
    for other in ("random", "ghost"):
        assert means(model, "acc@1")[other] < means(model, "acc@1")["crowd-halves"]
        assert five[other] < five["crowd-halves"]


def test_sasrec_gets_slightly_above_the_floor_from_crowds_of_earlier_versions() -> None:
    found = json.loads(rerun.RESULTS.read_text())
    stay, by = found["floors"]["stay"]["acc@1"], means("SASRec", "acc@1")
    seeds = [run["acc@1"] for run in found["runs"] if (run["trained_on"], run["model"]) == ("crowd-halves", "SASRec")]
    assert f"({short(by['crowd-halves'])} ± {short(stdev(seeds))} against {short(stay)})" in PAGE
    assert 0 < by["crowd-halves"] - stay < 0.01
    assert max(abs(by[what] - stay) for what in ("random", "ghost")) < 0.003


def short(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def test_floors_count_steps(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "city")
    test = [("a", "a"), ("a", "b"), ("b", "b"), ("b", "c"), ("c", "d")]
    clean = [("x", "c"), ("x", "c"), ("a", "b"), ("x", "a")]
    for part, steps in (("test", test), ("clean", clean)):
        lines = [f"u\tz {now}\t{target}\t0\n" for now, target in steps]
        (tmp_path / "city" / f"city.{part}.inter").write_text("head\n" + "".join(lines))
    assert rerun.floors(tmp_path / "city") == {
        "test_steps": 5,
        "moves": 3,
        "stay": {"acc@1": 0.4, "acc@1_moves": 0.0, "acc@5": 0.8},
        "popularity": {"acc@1": 0.2, "acc@1_moves": round(1 / 3, 4), "acc@5": 0.8},
        "Markov": {"acc@1": 0.4, "acc@1_moves": round(2 / 3, 4), "acc@5": 0.8},
    }


def test_exports_of_different_files_are_not_compared(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        for path in GOLDEN.iterdir():
            shutil.copy(path, folder / path.name.replace("city", folder.name))
    assert rerun.parts(folders) == [(folders[0], "clean"), (folders[0], "train"), (folders[1], "train")]
    (folders[1] / "two.test.inter").write_text("other\n")
    with pytest.raises(SystemExit, match="export releases of one file"):
        rerun.parts(folders)


def test_padding_does_not_change_what_a_model_says() -> None:
    torch.manual_seed(0)
    embedding, gru = torch.nn.Embedding(9, 4, padding_idx=0), torch.nn.GRU(4, 6, batch_first=True)
    length = torch.tensor([1, 7, 3, 2, 7, 5, 1, 4, 6, 2])
    items = torch.randint(1, 9, (10, 7)) * (torch.arange(7) < length[:, None])
    widths = []

    def forward(items: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        widths.append(items.shape[1])
        return gru(embedding(items))[0][torch.arange(len(items)), length - 1]

    whole, grouped = forward(items, length), rerun.without_padding(forward)(items, length)
    assert torch.allclose(grouped, whole, atol=1e-6)
    assert widths == [7, 2, 4, 6, 7]


def test_a_mean_is_over_seeds_and_a_missing_run_stays_empty() -> None:
    runs = [
        {
            "trained_on": "clean",
            "model": model,
            "seed": seed,
            "acc@1": 0.1 + 0.1 * seed,
            "acc@1_moves": 0.1,
            "acc@5": 0.4,
        }
        for model, seed in (("GRU4Rec", 0), ("GRU4Rec", 1), ("SASRec", 0))
    ]
    runs.append({"trained_on": "mine", "model": "SASRec", "seed": 0, "acc@1": 0.01, "acc@1_moves": 0.02, "acc@5": 0.3})
    floors = {name: {"acc@1": 0.5, "acc@1_moves": 0.25, "acc@5": 0.6} for name in ("stay", "popularity")}
    assert rerun.table({"runs": runs, "floors": floors}).splitlines()[2:] == [
        "clean | 0.150 ± 0.071 | 0.100 | 0.400 | 0.100 | 0.100 | 0.400",
        "`mine` |  |  |  | 0.010 | 0.020 | 0.300",
        "counting: stay | 0.500 | 0.250 | 0.600 | 0.500 | 0.250 | 0.600",
        "counting: popularity | 0.500 | 0.250 | 0.600 | 0.500 | 0.250 | 0.600",
    ]
