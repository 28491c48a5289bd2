"""Train Flashback (RNN, IJCAI 2020) by its own public code on releases, and test it on clean rows.

    git clone https://github.com/eXascaleInfolab/Flashback_code
    python docs/rerun_flashback.py nyc.npz Flashback_code --epochs 25 [--only clean random ghost crowd]

writes results/flashback.json; runs that it holds already are not repeated. The releases are those of our studies.
Flashback trains on the oldest 80% of a user's rows: released training rows stand there, and clean later rows behind
them. Today's torch refuses that gradients flow through a step of the optimizer, so hidden states are detached between
batches. That is the only change to its code.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from ghostpoi.audits.cache import Cache
from ghostpoi.audits.controls import CLEAN
from ghostpoi.data.checkins import Ints
from ghostpoi.data.prepared import Prepared, load
from ghostpoi.models.devices import device as find_device
from ghostpoi.study.run import Releases, commit, hardware
from ghostpoi.study.store import WORK

RESULTS = Path(__file__).parent.parent / "results"
LENGTH = 20  # of Flashback's sequences
LEAST, MOST = LENGTH + 1, 5 * LENGTH  # test rows of a user; four times as many train
FOUND = re.compile(r"^(recall@\d+|MAP):? (\d\.\d+)", re.MULTILINE)
BEFORE, AFTER = "t, s, y, y_t, y_s, h, active_users)", "t, s, y, y_t, y_s, h.detach(), active_users)"


def rows_of(data: Prepared, released: Ints) -> list[tuple[int, Ints, Ints]]:
    """Return user, times and venues, oldest first, of everybody with enough rows: released, then clean."""
    parts = (data.train, data.val, data.test)
    user, when, clean = (
        np.concatenate(each)
        for each in zip(*((np.repeat(s.user, s.length), s.time, s.poi) for s in parts), strict=True)
    )
    shown = np.concatenate([released, clean[len(released) :]])
    learns = np.arange(len(clean)) < len(released)
    found = []
    for one in np.unique(user):
        at = np.flatnonzero(user == one)
        at = at[np.argsort(when[at], kind="stable")]
        train, later = at[learns[at]], at[~learns[at]]
        count = min(len(later), len(train) // 4, MOST)
        if count >= LEAST:
            kept = np.concatenate([train[-4 * count :], later[:count]])
            found.append((int(one), when[kept], shown[kept]))
    return sorted(found, key=lambda each: -len(each[1]))


def staying(rows: list[tuple[int, Ints, Ints]]) -> float:
    """Return how often a user stays in the steps that Flashback tests."""
    hits = []
    for _, _, venues in rows:
        count = len(venues) // 5
        steps = venues[4 * count - 1 :][: count // LENGTH * LENGTH + 1]
        hits.append(steps[1:] == steps[:-1])
    return float(np.concatenate(hits).mean())


def text_of(data: Prepared, rows: list[tuple[int, Ints, Ints]]) -> str:
    """Write Flashback's input: each user's rows from the newest to the oldest."""
    lat, lon = data.vocabulary.lat, data.vocabulary.lon
    lines = []
    for user, times, venues in rows:
        stamps = np.datetime_as_string(times[::-1].astype("datetime64[s]")).tolist()
        for when, v in zip(stamps, venues[::-1].tolist(), strict=True):
            lines.append(f"{user}\t{when}Z\t{lat[v]}\t{lon[v]}\t{v}\n")
    return "".join(lines)


def train(code: Path, text: str, epochs: int, seed: int, batch: int) -> dict[str, float]:
    """Run Flashback's train.py and return what its evaluation prints at the end."""
    script = (code / "train.py").read_text("utf-8")
    if script.count(BEFORE) != 1:
        raise SystemExit(f"{code}/train.py is not the one that this script knows; check out 519a446")
    with TemporaryDirectory() as folder:
        place = Path(folder)
        for module in code.glob("*.py"):
            (place / module.name).write_text(module.read_text("utf-8"), "utf-8")
        seeded = f"import random, torch\nrandom.seed({seed})\ntorch.manual_seed({seed})\n"
        (place / "train.py").write_text(seeded + script.replace(BEFORE, AFTER), "utf-8")
        (place / "data").mkdir()
        (place / "data" / "rows.txt").write_text(text, "utf-8")
        gpu = ["--gpu", "0"] if torch.cuda.is_available() else []
        sizes = ["--epochs", str(epochs), "--validate-epoch", str(epochs), "--batch-size", str(batch)]
        command = [sys.executable, "train.py", "--dataset", "rows.txt", *sizes, *gpu]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return {name: round(float(value), 4) for name, value in FOUND.findall(done.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the paper's NYC, as ghostpoi prepare wrote it")
    parser.add_argument("code", type=Path, help="a clone of Flashback's repository")
    parser.add_argument("--only", nargs="+", default=[CLEAN, "random", "ghost", "crowd"], metavar="NAME")
    parser.add_argument("--epochs", type=int, default=25, help="Flashback's default is 100")
    parser.add_argument("--batch", type=int, default=100, help="users in a batch; Flashback's default is 200")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    data, device, path = load(given.data), find_device(given.device), RESULTS / "flashback.json"
    releases = Releases(data, "strong", device, Cache(RESULTS / WORK), print)
    for name in given.only:
        found = json.loads(path.read_text("utf-8")) if path.exists() else {"runs": []}
        what = {"trained_on": name, "seed": given.seed, "epochs": given.epochs, "batch": given.batch}
        if any(what.items() <= run.items() for run in found["runs"]):
            continue
        begin = time.monotonic()
        rows = rows_of(data, data.train.poi if name == CLEAN else releases.published(name, given.seed).poi)
        measured: dict[str, Any] = train(given.code, text_of(data, rows), given.epochs, given.seed, given.batch)
        about = {"hardware": hardware(device), "commit": commit(), "seconds": round(time.monotonic() - begin)}
        run = what | measured | {"users": len(rows), "rows": sum(len(times) for _, times, _ in rows)} | about
        found["stay"] = round(staying(rows_of(data, data.train.poi)), 4)
        found = json.loads(path.read_text("utf-8")) | {"stay": found["stay"]} if path.exists() else found
        found["runs"].append(run)
        path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        print(run, flush=True)


def table(found: dict[str, Any]) -> str:
    """One row for what Flashback was trained on."""
    lines = [["trained on", "acc@1", "acc@5", "acc@10"], ["---"] * 4]
    for run in found["runs"]:
        keys = ("recall@1", "recall@5", "recall@10")
        lines.append([run["trained_on"], *(f"{run[key]:.3f}".lstrip("0") for key in keys)])
    lines.append(["counting: stay", f"{found['stay']:.3f}".lstrip("0"), "", ""])
    return "".join(f"|{'|'.join(line)}|\n" for line in lines)


if __name__ == "__main__":
    main()
