"""Train models of RecBole on exported releases, and test them on clean rows.

    ghostpoi export RELEASE --to recbole -o NAME --private RELEASE.private     # once per release
    python docs/rerun_recbole.py NAME... --seeds 0 1 2

runs in an environment of its own (see docs/results/third-party.md); it does not import ghostpoi. One training takes
two to four minutes on a GPU and up to an hour on a core. Runs that results/recbole.json holds already are not repeated.
`make pages` then writes the table on docs/results/third-party.md.
"""

import argparse
import json
import logging
import os
import platform
import statistics
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "recbole.json"
MODELS = ("GRU4Rec", "SASRec")
CLEAN = "clean"
PACKAGES = ("recbole", "torch", "numpy", "pandas", "scipy")
SETTINGS = {  # all others are RecBole's defaults
    "epochs": 60, "stopping_step": 3, "train_batch_size": 128, "topk": [1, 5, 10], "metrics": ["Hit", "MRR"],
    "show_progress": False,
}  # fmt: skip
GROUPS = 4  # of sequences of similar length, in a batch on a CPU; a GPU takes the whole batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="NAME", help="folders that ghostpoi export wrote")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="train on these releases, or on `clean`; default: all"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # RecBole's epochs
    found = json.loads(given.results.read_text()) if given.results.exists() else {"runs": []}
    found |= {"floors": floors(given.folders[0])}
    given.results.write_text(json.dumps(found, indent=1) + "\n")
    for seed in given.seeds:
        for model in given.models:
            for folder, part in parts(given.folders):
                what = {"trained_on": CLEAN if part == CLEAN else folder.name, "model": model, "seed": seed}
                if given.only and what["trained_on"] not in given.only:
                    continue
                if any(what.items() <= run.items() for run in found["runs"]):
                    continue
                run = what | train(folder, part, model, seed)
                print(run, flush=True)
                found = json.loads(given.results.read_text()) if given.results.exists() else found
                found |= {
                    "settings": SETTINGS,
                    "versions": {name: version(name) for name in PACKAGES} | {"python": platform.python_version()},
                    "runs": [*found["runs"], run],
                }
                given.results.write_text(json.dumps(found, indent=1) + "\n")


def parts(folders: list[Path]) -> list[tuple[Path, str]]:
    """What to train on: the clean sessions, which are the same for every release of a file, and each release."""
    for folder in folders[1:]:
        for part in (CLEAN, "valid", "test"):
            one, other = (f / f"{f.name}.{part}.inter" for f in (folders[0], folder))
            if one.read_bytes() != other.read_bytes():
                raise SystemExit(f"{one} and {other} differ; export releases of one file")
    return [*((folder, CLEAN) for folder in folders[:1]), *((folder, "train") for folder in folders)]


def train(folder: Path, part: str, name: str, seed: int) -> dict[str, Any]:
    """Train one model on a part and return its figures on the clean test steps."""
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # RecBole stores its settings with the weights
    import torch
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.utils import get_model, get_trainer, init_seed

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    began = time.monotonic()
    own = {"data_path": str(folder.parent), "benchmark_filename": [part, "valid", "test"], "seed": seed}
    config = Config(name, folder.name, [str(folder / f"{folder.name}.yaml")], SETTINGS | own)
    init_seed(seed, True)
    training, validation, test = data_preparation(config, create_dataset(config))
    init_seed(seed, True)
    model = get_model(name)(config, training._dataset).to(config["device"])
    torch.autograd.set_detect_anomaly(False)  # importing one of RecBole's models turns it on, which triples the time
    model.forward = without_padding(model.forward)
    trainer = get_trainer(config["MODEL_TYPE"], name)(config, model)
    trainer.saved_model_file = trainer.saved_model_file.replace(name, f"{name}-{folder.name}-{part}-{seed}")
    trainer.fit(training, validation, show_progress=False)
    theirs = trainer.evaluate(test, show_progress=False)
    epochs = len(trainer.train_loss_dict)
    found = ranks(trainer, test)
    if abs(found["acc@1"] - theirs["hit@1"]) > 1e-3:  # ours needs the present venue, for moves
        raise RuntimeError(f"RecBole's hit@1 is {theirs['hit@1']}, and ours {found['acc@1']}")
    Path(trainer.saved_model_file).unlink()
    return found | {"epochs": epochs, "seconds": round(time.monotonic() - began), "device": str(config["device"])}


def without_padding(forward: Any) -> Any:
    """Call the model on groups of sequences of similar length, each cut to its longest.

    Every output depends on its own sequence alone, and RecBole pads on the right, so that outputs stay the same. It
    takes a quarter of the time.
    """
    import torch

    def grouped(items: Any, length: Any) -> Any:
        order = length.argsort()
        chunks = [chunk for chunk in order.tensor_split(1 if order.is_cuda else GROUPS) if len(chunk)]
        outputs = [forward(items[chunk, : int(length[chunk].max())], length[chunk]) for chunk in chunks]
        return torch.cat(outputs)[order.argsort()]

    return grouped


def ranks(trainer: Any, test: Any) -> dict[str, float]:
    """The rank of every next venue among all venues. A move is a step to another venue than the present one."""
    import torch

    model, rank, moved = trainer.model.eval(), [], []
    with torch.no_grad():
        for batch in test:
            steps = batch[0].to(trainer.device)
            items, length, target = steps[model.ITEM_SEQ], steps[model.ITEM_SEQ_LEN], steps[model.ITEM_ID]
            scores = model.full_sort_predict(steps)
            scores[:, 0] = -torch.inf  # padding
            rank.append((scores > scores.gather(1, target[:, None])).sum(1) + 1)
            moved.append(items.gather(1, length[:, None] - 1)[:, 0] != target)
    place, moves = torch.cat(rank).cpu().double(), torch.cat(moved).cpu()
    figures = {
        "acc@1": place == 1, "acc@1_moves": place[moves] == 1, "acc@5": place <= 5, "mrr": 1 / place,
    }  # fmt: skip
    return {key: round(float(values.double().mean()), 4) for key, values in figures.items()}


def floors(folder: Path) -> dict[str, Any]:
    """What counting the clean training steps predicts: staying, the most visited venues, what followed most often.

    Further guesses of `stay` and `Markov` are the most visited venues.
    """
    test, steps = _steps(folder, "test"), _steps(folder, CLEAN)
    top = [venue for venue, _ in Counter(target for _, target in steps).most_common(10)]
    after: dict[str, Counter[str]] = {}
    for now, target in steps:
        after.setdefault(now, Counter())[target] += 1
    next_after = {now: [venue for venue, _ in found.most_common(5)] for now, found in after.items()}
    guesses = {
        "stay": [[now, *(venue for venue in top if venue != now)] for now, _ in test],
        "popularity": [top for _ in test],
        "Markov": [list(dict.fromkeys([*next_after.get(now, []), *top])) for now, _ in test],
    }
    moves = sum(now != target for now, target in test)
    found: dict[str, Any] = {"test_steps": len(test), "moves": moves}
    for name, ranked in guesses.items():
        hits = [(now != target, target in guess[:1], target in guess[:5])
                for (now, target), guess in zip(test, ranked, strict=True)]  # fmt: skip
        found[name] = {
            "acc@1": round(sum(first for _, first, _ in hits) / len(test), 4),
            "acc@1_moves": round(sum(moved and first for moved, first, _ in hits) / moves, 4),
            "acc@5": round(sum(five for *_, five in hits) / len(test), 4),
        }
    return found


def _steps(folder: Path, part: str) -> list[tuple[str, str]]:
    """The present and the next venue of each step."""
    rows = (folder / f"{folder.name}.{part}.inter").read_text("utf-8").splitlines()[1:]
    return [(before.rsplit(" ", 1)[-1], target) for _, before, target, _ in (row.split("\t") for row in rows)]


def table(found: dict[str, Any]) -> str:
    """Mean accuracies and, at acc@1, their spread over seeds. One row for what was trained on."""
    names = {"acc@1": "{}", "acc@1_moves": "on moves", "acc@5": "acc@5"}
    models = dict.fromkeys(run["model"] for run in found["runs"])
    columns = [(model, key) for model in models for key in names]
    lines = [["trained on", *(names[key].format(model) for model, key in columns)], ["---"] * (len(columns) + 1)]
    for what in dict.fromkeys(run["trained_on"] for run in found["runs"]):
        cells = []
        for model, key in columns:
            values = [run[key] for run in found["runs"] if (run["trained_on"], run["model"]) == (what, model)]
            spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 and key == "acc@1" else ""
            cells.append(f"{statistics.mean(values):.3f}{spread}" if values else "")
        lines.append([what if what == CLEAN else f"`{what}`", *cells])
    for name in (name for name, value in found["floors"].items() if isinstance(value, dict)):
        lines.append([f"counting: {name}", *(f"{found['floors'][name][key]:.3f}" for _, key in columns)])
    return "".join(f"{' | '.join(line)}\n" for line in lines)


if __name__ == "__main__":
    main()
