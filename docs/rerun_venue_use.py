"""Compare what separates venues of one category from others while categories are hidden: their use, or the LM.

    python docs/rerun_venue_use.py nyc.npz

`ghostpoi prepare` writes the file. Of all pairs of POIs within 1 km, the most similar 1%, 3% and 10% are accepted; each
line shows how many of them have the same category. The LM learns the training sessions, which takes two minutes on a
CPU.
"""

import sys
from pathlib import Path

import numpy as np
import scipy

from ghostpoi.data.checkins import Bools, Floats
from ghostpoi.data.geo import chord, unit_sphere
from ghostpoi.data.places import of_sessions, with_use
from ghostpoi.data.prepared import Prepared, load

ACCEPTED = (0.01, 0.03, 0.1)
REACH_KM, AROUND = 1.0, 50  # AROUND: the nearest POIs, whose mean embedding shows where a POI is


def pairs_of(data: Prepared) -> tuple[Floats, Bools]:
    """All pairs of POIs within reach, (M, 2), and whether both have the same category."""
    v = data.vocabulary
    tree = scipy.spatial.cKDTree(unit_sphere(v.lat[1:], v.lon[1:]))
    pairs = tree.query_pairs(chord(REACH_KM), output_type="ndarray") + 1
    return pairs, v.category[pairs[:, 0]] == v.category[pairs[:, 1]]


def precision(vectors: Floats, pairs: Floats, same: Bools) -> list[float]:
    """The share of pairs with the same category among those that are accepted by the cosine of their vectors."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    order = np.argsort(-(unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(axis=1), kind="stable")
    return [float(same[order[: max(1, int(share * len(order)))]].mean()) for share in ACCEPTED]


def embedding(data: Prepared) -> Floats:
    """The centred embedding of the POIs in the trajectory LM."""
    from ghostpoi.models import trajectory_lm
    from ghostpoi.models.devices import device
    from ghostpoi.randomness import Seed
    from ghostpoi.settings import TrajectoryLM

    model = trajectory_lm.pretrain(data.train, len(data.vocabulary), TrajectoryLM(), Seed(0), device("auto"))
    found: Floats = model.embedding.detach().cpu().numpy().astype(float)
    return found - found[1:].mean(axis=0)


def without_position(vectors: Floats, data: Prepared) -> Floats:
    """The vectors minus the mean of the POIs around, which are similar because they are near."""
    point = unit_sphere(data.vocabulary.lat[1:], data.vocabulary.lon[1:])
    near = scipy.spatial.cKDTree(point).query(point, k=AROUND + 1)[1][:, 1:] + 1
    return np.vstack([vectors[:1], vectors[1:] - vectors[near].mean(axis=1)])


def main() -> None:
    """Print a table."""
    data = load(Path(sys.argv[1]))
    pairs, same = pairs_of(data)
    use, lm = with_use(of_sessions(data.train, data.vocabulary), data.train).use, embedding(data)
    assert use is not None
    rows = {"use": use, "LM": lm, "LM without position": without_position(lm, data)}
    print("accepted" + " " * 14, *(f"{share:7.0%}" for share in ACCEPTED), f"   all: {same.mean():.1%}")
    for name, vectors in rows.items():
        print(f"{name:22}", *(f"{found:7.1%}" for found in precision(vectors, pairs, same)))


if __name__ == "__main__":
    main()
