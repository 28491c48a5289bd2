"""Audits of small releases: what must come out exactly, what is stored and what not, resuming, and every refusal."""

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from round_city import CLEAN, LM, POIS, TINY, run, text
from small_city import called, sentence

from ghostpoi import verify
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims.base import train_each
from ghostpoi.audits import grid
from ghostpoi.audits.audit import audit
from ghostpoi.audits.controls import ALONE, CONTROLS, default_adversaries, parse_adversaries
from ghostpoi.audits.match import align, public_rule, publisher_of, read_pair
from ghostpoi.audits.measures.gaps import accuracy_lost, against, differs
from ghostpoi.audits.request import AuditRequest, parse_victims
from ghostpoi.audits.stored import public
from ghostpoi.audits.verdicts import SEVERITY
from ghostpoi.draw.methods import METHODS
from ghostpoi.draw.publication import publication
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.progress import no_report
from ghostpoi.randomness import Seed
from ghostpoi.regions.protect import make_release
from ghostpoi.release.manifest import MANIFEST, release_identity
from ghostpoi.release.private_folder import ReleaseRequest
from ghostpoi.reports.texts import victim_label
from ghostpoi.settings import override

QUICK = default_adversaries()
pytestmark = pytest.mark.usefixtures("one_window")


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str], tuple[Path, Path]]:
    """The clean file and a release with this content."""

    def write(release: str) -> tuple[Path, Path]:
        (tmp_path / "clean.csv").write_text(text(CLEAN))
        (tmp_path / "release.csv").write_text(release)
        return tmp_path / "clean.csv", tmp_path / "release.csv"

    return write


def released(folder: Path, withhold: bool = False, method: str = "random", *more: str) -> tuple[Path, Path]:
    """A clean file and our release of it."""
    file, release = folder / "clean.csv", folder / "rel"
    # A lone venue of its category has no candidate.
    lone = [(u, 99 if i % 40 == 7 else p, t) for i, (u, p, t) in enumerate(CLEAN)] if withhold else CLEAN
    file.write_text(text(lone).replace("v99,c1", "v99,lonely"))
    settings = override(publication(method), ["candidates.radius_km=2", *more])
    request = ReleaseRequest(
        file=Source(file), release=release, private=folder / "rel.private", settings=settings, method=method,
        protocol="strong", device=torch.device("cpu"), mapping={}, withhold=withhold, seed=Seed(5),
    )  # fmt: skip
    make_release(request, None, lambda text: None, no_report)
    return file, release


def test_json_of_the_command_has_every_key(tmp_path: Path) -> None:
    file, release = released(tmp_path)
    sets = [word for setting in LM for word in ("--set", setting)]
    words = ("audit", file, release, "--victim", "markov", "--seeds", 2, "--device", "cpu", *sets)
    done = called(*words, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"clean", "adversaries", "controls", "gaps", "strongest", "plausibility", "naturalness"} <= set(found)
    assert set(found["adversaries"]) == set(QUICK)
    assert found["limits"] is None
    assert found["verdict"] in SEVERITY
    for name in ("within_1km", "far_moves_within_1km"):
        near = found["distance"][name]
        stay = found["controls"]["stay"]["distance"][name]["mean"]
        assert stay <= near["no_leak"]["share"] <= near["with_leak"]["share"]  # who holds a leak can ignore it
    for leak in ("no_leak", "with_leak"):
        given = found["gives_away"][leak]
        assert given["low"] <= given["mean"] <= given["high"]
        assert given["adversary"] in {*found["adversaries"], "leak-mixed"}
        assert given["control"] in found["controls"]
        assert found["worst_case"][leak]["acc@1"] >= found["controls"][given["control"]]["acc@1"]["mean"]
    assert {"none", "frequency", "bigram", "per-user", "deconvolution", "habits", "habits+leak", "hidden-markov"} <= {
        *QUICK
    }
    assert {"popularity", "stay", "markov", "markov_on_release", "leak-only", "leak-mixed", "random"} <= set(
        found["controls"]
    )
    reached = found["adversaries"] | {name: found["controls"][name] for name in ("leak-mixed", *ALONE)}
    assert found["strongest"] == max(reached, key=lambda name: reached[name]["acc@1"]["mean"])
    assert found["worst_case"]["with_leak"]["name"] == found["strongest"]
    assert set(found["gaps"]) == {"prot", "surv", "mean", "worst", "worst_all"}
    for measures in [found["clean"], *found["adversaries"].values(), *found["controls"].values()]:
        for name in ("acc@1", "acc@1_moves", "acc@5", "mrr", "accuracy_lost"):
            assert set(measures[name]) == {"mean", "std", "seeds"}
            assert len(measures[name]["seeds"]) == 2
    assert all("restored" in measures for measures in found["adversaries"].values())
    assert found["controls"]["stay"]["acc@1_moves"]["seeds"] == [0.0, 0.0]
    cache = tmp_path / "rel.private" / "audit"
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert verify(release, against=file).passed
    again = called(*words)
    assert again.returncode == 0, again.stderr
    said = " ".join(again.stdout.split())
    assert said.startswith(f"{release}: ")
    assert said.split(" (default adversaries) ")[1].startswith(f"strongest {victim_label(found['strongest'])}: acc@1 ")
    for leak, words in (("no_leak", "without a leak"), ("with_leak", "with the leak")):
        assert f"{words}: {found['gives_away'][leak]['verdict']}: " in said


def test_the_file_itself_denies_nothing(files: Callable[[str], tuple[Path, Path]]) -> None:
    found = run(*files(text(CLEAN)), seeds=2)
    assert found["gaps"]["prot"]["seeds"] == [0.0, 0.0]
    assert found["adversaries"]["none"]["restored"]["mean"] == 1.0
    assert found["plausibility"]["substitution_rate"] == 0.0
    assert found["gives_away"]["no_leak"]["headroom"]["mean"] > 0


def test_a_fixed_permutation_falls_to_the_frequency_table(files: Callable[[str], tuple[Path, Path]]) -> None:
    other = np.random.default_rng(1).permutation(POIS)
    file, release = files(text([(u, int(other[p]), t) for u, p, t in CLEAN]))
    before = release.read_bytes()
    found = run(file, release, leak=0.5)
    assert found["adversaries"]["frequency"]["restored"]["mean"] == 1.0
    assert found["adversaries"]["frequency"]["acc@1"] == found["clean"]["acc@1"]
    assert found["adversaries"]["none"]["acc@1"]["mean"] < found["clean"]["acc@1"]["mean"] / 2
    assert found["strongest"] == "frequency"
    assert release.read_bytes() == before


def test_new_venue_ids_of_another_tool_are_learned_back(files: Callable[[str], tuple[Path, Path]]) -> None:
    found = run(*files(text(CLEAN, mark="w")), leak=0.5)
    assert found["adversaries"]["none"]["acc@1"]["mean"] == 0.0
    assert found["adversaries"]["frequency"]["restored"]["mean"] == 1.0


def test_the_manifest_gets_public_figures_alone(tmp_path: Path) -> None:
    file, release = released(tmp_path)
    seen = json.loads((release / MANIFEST).read_text())
    found = run(file, release, naturalness=True)
    manifest = json.loads((release / MANIFEST).read_text())
    stored = manifest.pop("audit")
    assert manifest == seen
    assert stored == json.loads(json.dumps(public(found) | {"of": release_identity(seen)}))
    assert verify(release, against=file).passed
    assert sorted(p.name for p in release.iterdir()) == ["checkins.csv", MANIFEST, "manifest.sig"]
    names = set(_keys(stored))
    assert "speed_violations_clean" in found["plausibility"]
    assert "clean" in found["naturalness"]
    assert not [n for n in names if n.endswith(("_before", "_clean", "wasserstein_km"))]
    assert set(stored["naturalness"]) == {"released"}
    assert not names & {"settings", "sessions", "distributions", "poi_visits"}


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _keys(inner)


def test_no_store_leaves_the_manifest(tmp_path: Path) -> None:
    file, release = released(tmp_path)
    before = (release / MANIFEST).read_bytes()
    run(file, release, adversaries=("none",), store=False)
    assert (release / MANIFEST).read_bytes() == before


def test_withheld_rows_are_told_apart(tmp_path: Path) -> None:
    file, release = released(tmp_path, withhold=True)
    assert json.loads((release / MANIFEST).read_text())["rows"]["withheld"] > 0
    found = run(file, release, adversaries=("none",))
    assert found["plausibility"]["substitution_rate"] > 0.9


def test_an_interrupted_audit_goes_on(
    files: Callable[[str], tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = files(text([(u, (p + 5) % POIS, t) for u, p, t in CLEAN]))
    whole = run(*pair, cache=pair[0].parent / "other")
    trained: list[str] = []

    def counting(*arguments: Any) -> Iterator[Any]:
        for number, result in train_each(*arguments):
            trained.append(result.name)
            yield number, result
            if len(trained) == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(grid, "train_each", counting)
    with pytest.raises(KeyboardInterrupt):
        run(*pair)
    first = list(trained)
    assert run(*pair) == whole
    assert len(first) == 3
    assert not set(first) & set(trained[3:])
    count = len(trained)
    assert run(*pair) == whole
    assert len(trained) == count


def test_progress_adds_up_to_the_whole(files: Callable[[str], tuple[Path, Path]]) -> None:
    file, release = files(text([(u, (p + 5) % POIS, t) for u, p, t in CLEAN]))
    request = AuditRequest(
        file=Source(file), release=Source(release), adversaries=parse_adversaries("frequency"),
        victims=("transformer",), seeds=1, set=TINY, cache=file.parent / "cache", all_controls=True,
    )  # fmt: skip
    done: list[float] = []
    audit(request, None, None, lambda text: None, lambda label, units: done.append(units))
    assert sum(done) == pytest.approx(request.work())


STRANGE = {
    "other rows": (text([(u, p, t + 60) for u, p, t in CLEAN]), r"row 1 of \S+ is user u0 at .+give a release of the"),
    "missing rows": (text(CLEAN[:-3]), r"has 1,197 rows and \S+ 1,200; give a release of all its rows"),
    "shuffled rows": (text(CLEAN[::-1]), "in another order, from row 1 on; put them"),
    "other users": (text([("x" + u, p, t) for u, p, t in CLEAN]), "users that .+ lacks, for example 'xu0'; give"),
    "a different city": (text(CLEAN, 35.6, "w"), "another city than .+ km away and has no venue in common; give"),
    "other columns": (text(CLEAN).replace("category", "cat"), "does not have the columns of .+; give a release in"),
    "no release": ("hello\n", "no column looks like the user|no check-ins"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_no_release_of_the_file_is_refused(name: str, files: Callable[[str], tuple[Path, Path]]) -> None:
    content, says = STRANGE[name]
    with pytest.raises(InputError, match=says) as refusal:
        run(*files(content))
    assert "\n" not in str(refusal.value)


def test_other_refusals(tmp_path: Path, files: Callable[[str], tuple[Path, Path]]) -> None:
    file, release = files(text(CLEAN))
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        run(file, tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        run(file, tmp_path / "nowhere")
    with pytest.raises(InputError, match="leaves nothing of 1,200 check-ins"):
        run(file, release, set=("filters.min_poi_checkins=9999",))
    with pytest.raises(InputError, match="the filters leave no validation sessions"):
        run(file, release, set=("filters.val_share=0",))
    with pytest.raises(InputError, match="--leak 0: give a share above 0"):
        run(file, release, leak=0.0)
    with pytest.raises(InputError, match="--adversaries ghost: unknown adversary; choose from none, bridge"):
        parse_adversaries("none,ghost")
    with pytest.raises(InputError, match=r"cannot be used .+; choose another with --cache"):
        run(file, release, cache=file / "inside")


def test_who_runs_by_default_and_with_all() -> None:
    assert parse_adversaries(None) == QUICK
    every = parse_adversaries(None, everybody=True)
    assert set(every) == {
        name for name, a in ADVERSARIES.items() if not (a.many_releases or a.needs_columns or a.needs_pseudonyms)
    }
    bridges = {"bridge", "bridge-augmented", "bridge-natural", "paired-bridge"}
    slow = bridges | {"posterior-learned", "posterior-learned-no-leak"}  # they train
    informed = {"posterior-informed", "posterior-informed-no-leak"}  # they know the city from outside
    assert set(every) - set(QUICK) == slow | informed
    said = sentence(called("audit", "file", "release", "--all", "--adversaries", "none"))
    assert said == "--all and --adversaries none contradict each other; give one of them"


def test_who_knows_the_rule_restores_more(tmp_path: Path) -> None:
    file, release = released(tmp_path)
    found = run(file, release, adversaries=("none", "habits", "habits+leak"))["adversaries"]
    assert found["habits"]["restored"]["mean"] > found["none"]["restored"]["mean"]
    assert found["habits+leak"]["restored"]["mean"] > found["none"]["restored"]["mean"]


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("random", ()),
        ("crowd", ("method.size=4", "method.category=exact", "method.draw=even")),
        ("crowd", ("method.size=4", "method.category=exact", "method.draw=popular")),
        ("crowd", ("method.size=4", "method.category=exact", "method.draw=even", "method.beta=0.5")),
    ],
)
def test_adversaries_are_told_the_publishers_own_rule(tmp_path: Path, method: str, more: tuple[str, ...]) -> None:
    file, release = released(tmp_path, False, method, "speed.limit_kmh=9999", *more)
    pair = read_pair(file, release, {})
    chosen = AuditRequest(file=Source(file), release=Source(release)).settings_for(pair.manifest)
    data = align(pair, chosen.filters)
    methods = (publisher_of(pair.manifest), METHODS["random"])
    ours, random = (public_rule(pair, data.vocabulary, chosen, m) for m in methods)
    assert ours.exact
    assert random.exact
    assert (ours.channel.find(data.train.poi, data.released) >= 0).all()
    assert (ours.popularity_power > 0) == bool({"method.beta=0.5", "method.draw=popular"} & {*more})
    assert (ours.candidates.weight is not None) == ("method.draw=popular" in more)
    if method == "crowd":  # its sets are its own, in the size that the manifest gives
        assert (random.channel.find(data.train.poi, data.released) < 0).any()
        assert ours.candidates.size[1:].max() < 8


def test_of_another_tool_no_rule_is_known(files: Callable[[str], tuple[Path, Path]]) -> None:
    file, release = files(text(CLEAN, mark="w"))  # with venues that the clean file lacks
    pair = read_pair(file, release, {})
    chosen = AuditRequest(file=Source(file), release=Source(release)).settings_for(None)
    data = align(pair, chosen.filters)
    rule = public_rule(pair, data.vocabulary, chosen, publisher_of(pair.manifest))
    assert not rule.exact
    assert len(rule.candidates.poi) == len(data.vocabulary)
    assert not rule.candidates.size[data.vocabulary.venue > POIS].any()


def test_a_changed_release_and_a_cache_inside_it_are_refused(tmp_path: Path) -> None:
    file, release = released(tmp_path)
    with pytest.raises(InputError, match="lies inside the release"):
        run(file, release, cache=release / "cache")
    with (release / "checkins.csv").open("a") as out:
        out.write("u0,v1,c1,40.7,-74,1333400000\n")
    with pytest.raises(InputError, match="differs from the manifest; make the release again"):
        run(file, release)


def test_bad_input_is_one_sentence_and_exit_code_2(files: Callable[[str], tuple[Path, Path]]) -> None:
    done = called("audit", *files(text(CLEAN[::-1])))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("ghostpoi: ")


N = 10_000


def test_a_difference_inside_the_spread_is_none() -> None:
    assert differs([0.20, 0.10], [0.10, 0.20], N) == 0
    assert differs([0.14, 0.20], [0.10, 0.10], N) == 0
    assert differs([0.20, 0.21], [0.10, 0.11], N) == 1
    assert differs([0.10], [0.20], N) == -1
    assert differs([0.20], [0.21], 100) == 0
    assert differs([0.20], [0.20], N) == 0


def test_a_clear_difference_by_hand() -> None:
    # Over three seeds the 95% interval is the mean ± 4.303 s / sqrt(3); here s = 0.01, so the half is 0.0248.
    clear, unclear = against([0.13, 0.14, 0.15], [0.1] * 3), against([0.11, 0.12, 0.13], [0.1] * 3)
    assert clear is not None
    assert unclear is not None
    assert (clear.sign, unclear.sign) == (1, 0)
    assert (clear.difference["mean"], clear.difference["std"]) == pytest.approx((0.04, 0.01))
    assert (unclear.difference["mean"], unclear.difference["std"]) == pytest.approx((0.02, 0.01))
    # Twice the sampling error of 100 positions is 2 sqrt((.14 * .86 + .1 * .9) / 100) = 0.092.
    assert differs([0.13, 0.14, 0.15], [0.1] * 3, 100) == 0
    assert differs([0.2], [0.1]) == 0  # one seed, and the size of the sample is not known
    assert against(None, [0.1]) is against([0.1], [0.1, 0.2]) is None


def test_accuracy_lost_is_per_seed() -> None:
    assert accuracy_lost([0.2, 0.1], [0.05, 0.1]) == pytest.approx([0.75, 0.0])
    assert accuracy_lost([0.0], [0.1]) == [0.0]


def test_any_victim(files: Callable[[str], tuple[Path, Path]]) -> None:
    pair = files(text([(u, (p + 5) % POIS, t) for u, p, t in CLEAN]))
    found = run(*pair, seeds=2)
    assert found["victims"] == ["markov"]
    seeds = found["clean"]["acc@1"]["seeds"]
    assert seeds[0] == seeds[1] > 0.5  # counting depends on no seed, and everybody goes round the circle
    assert found["adversaries"]["none"]["acc@1"]["seeds"] == seeds  # a rotated circle is followed just as well
    with pytest.raises(InputError, match=r"--victim gru; leave them out"):
        run(*pair, victims=("gru",), set=TINY)
    with pytest.raises(InputError, match=r"--victim oracle: .+ choose from transformer, markov"):
        parse_victims("markov, oracle")
    with pytest.raises(InputError, match=r"--victim , names no victim"):
        parse_victims(",")
    assert parse_victims("gru, markov,gru") == ("gru", "markov")
    assert parse_victims(None, everybody=True) == (*parse_victims(None), "transformer")


def test_everything_in_the_table_has_a_label() -> None:
    assert victim_label("random+habits+leak") == f"{CONTROLS['random']}, {victim_label('habits+leak')}"
    assert [victim_label(name) for name in CONTROLS] == list(CONTROLS.values())
