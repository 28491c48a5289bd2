"""What an audit may claim: partial audits, merged runs, tests that say too little, and figures that reveal counts."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_releases
import small_city
from small_city import SEED, called, scratch, sentence

from ghostpoi import formats
from ghostpoi.attack.evidence import rule_of
from ghostpoi.audits.controls import default_adversaries
from ghostpoi.audits.match import align, matched_draw, matched_rule, public_rule, publisher_of, read_pair
from ghostpoi.audits.measures.accuracy import step
from ghostpoi.audits.request import AuditRequest
from ghostpoi.audits.verdicts import SEVERITY
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.draw.methods import METHODS
from ghostpoi.draw.whole_table import fast_steps
from ghostpoi.randomness import Seed
from ghostpoi.release.manifest import release_identity
from ghostpoi.reports.texts import victim_label

QUICK = ("--victim", "markov", "--seeds", 1, "--no-naturalness", "--device", "cpu")


@cache
def city() -> Path:
    """A city in which a victim can learn something."""
    path = scratch() / "verdicts.txt"
    write_city(path, 100, 250, 90, 3)
    return path


@cache
def made(method: str) -> Path:
    small = ("--set", "method.size=12") if method == "crowd" else ()  # few venues behind each visit
    asked = ("--method", method, "--seed", SEED, *small)
    return small_city.protect(city(), scratch() / f"verdicts-{method}", *asked).folder


@cache
def whole_crowd() -> Path:
    """A crowd release of the city with a full audit, made once."""
    release = scratch() / "audited" / "release"
    shutil.copytree(made("crowd"), release)
    done = ask(release)
    assert done.returncode == 0, done.stderr
    return release


def ask(release: Path, *more: object) -> small_city.Done:
    return called("audit", city(), release, "--cache", scratch() / "verdict-cache", *QUICK, *more)


def stored(release: Path) -> dict[str, Any]:
    audit: dict[str, Any] = json.loads((release / "manifest.json").read_text())["audit"]
    return audit


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A crowd release without an audit."""
    return Path(shutil.copytree(made("crowd"), tmp_path / "release"))


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    """A crowd release with a full audit."""
    return Path(shutil.copytree(whole_crowd(), tmp_path / "release"))


def headlines(release: Path, done: small_city.Done) -> list[str]:
    """The headline on the terminal, in the card and on the page."""
    assert called("report", release).returncode == 0
    card, page = ((release / name).read_text("utf-8") for name in ("card.md", "report.html"))
    text = " ".join(line.strip() for line in done.stdout.splitlines())  # the terminal wraps lines
    first = text.removeprefix(f"{release}: ").split(" strongest ")[0].split(" one seed, so")[0]
    bold = next(line for line in card.splitlines() if line.startswith("**"))
    verdict = page.split('id="verdict">')[1].split("</p>")[0]
    assert verdict.startswith(first)  # it adds how a random release fares
    return [first, bold.strip("*").rstrip("."), verdict[: len(first)]]


class TestPartial:
    def test_a_partial_audit_is_called_partial_everywhere(self, release: Path) -> None:
        done = ask(release, "--adversaries", "none,frequency")
        assert done.returncode == 0, done.stderr
        left = [name for name in default_adversaries() if name not in ("none", "frequency")]
        assert stored(release)["not_run"] == left
        audit = stored(release)
        words = [audit["gives_away"][leak]["verdict"] for leak in ("no_leak", "with_leak")]
        bad = max(SEVERITY[word] for word in words)
        assert audit["verdict"] == ("cannot tell" if not bad else max(words, key=SEVERITY.__getitem__))
        said = headlines(release, done)
        assert said == [said[0]] * 3
        assert said[0].endswith(f"(partial audit; not run: {', '.join(left)})")
        assert said[0].startswith("Cannot tell what it gives away") == (not bad)

    def test_a_partial_audit_never_replaces_a_fuller_one(self, audited: Path) -> None:
        before = stored(audited)
        assert before["not_run"] == []
        done = ask(audited, "--adversaries", "none")
        assert done.returncode == 0, done.stderr
        assert "merged with the stored audit, which has the same settings and also ran frequency, " in done.stderr
        assert stored(audited) == before
        assert f"strongest {victim_label(before['strongest'])}: " in done.stdout

    def test_runs_add_up_to_the_full_audit(self, release: Path) -> None:
        every = default_adversaries()
        for some in (("habits+leak", "bigram"), every[:4], every[4:]):
            assert ask(release, "--adversaries", ",".join(some)).returncode == 0
        merged, full = stored(release), stored(whole_crowd())
        assert list(merged["adversaries"]) == list(every)
        for key in ("adversaries", "strongest", "worst_case", "gaps", "not_run", "over", "clean", "of"):
            assert merged[key] == full[key], key
        # What is given away is the worst that one of the runs found, and each found its own strongest adversary.
        for leak in ("no_leak", "with_leak"):
            one, other = (run["gives_away"][leak] for run in (merged, full))
            assert SEVERITY[one["verdict"]] >= SEVERITY[other["verdict"]]
            assert one["control"] == other["control"]
        assert full["controls"].items() <= merged["controls"].items()

    def test_other_settings_do_not_replace_a_fuller_audit(self, audited: Path) -> None:
        before = stored(audited)
        for more, says in (
            (("--adversaries", "none", "--leak", "0.1"), "(leak), and this one lacks frequency, bigram, "),
            (("--leak", "0.01"), "(leak), and this one has a smaller leak (0.01 against 0.05); --replace stores"),
            (("--adversaries", "none", "--set", "filters.train_share=0.6"), "(--set or --config), and this one lacks"),
        ):
            done = ask(audited, *more)
            assert done.returncode == 0, done.stderr
            assert done.stderr.startswith("the stored audit stays: it has other settings ")
            assert says in done.stderr
            assert done.stderr.count("\n") == 1
            assert stored(audited) == before

    def test_a_fuller_audit_or_replace_replaces(self, audited: Path) -> None:
        assert ask(audited, "--adversaries", "none", "--leak", "0.1", "--replace").returncode == 0
        assert list(stored(audited)["adversaries"]) == ["none"]
        done = ask(audited, "--leak", "0.2", "--adversaries", "none,frequency")
        assert "replaced the stored audit, which has other settings (leak)" in done.stderr
        assert stored(audited)["leak"] == 0.2
        assert "contradict" in sentence(ask(audited, "--replace", "--no-store"))

    def test_an_audit_knows_its_release(self, audited: Path, tmp_path: Path) -> None:
        manifest = json.loads((audited / "manifest.json").read_text())
        assert manifest["audit"]["of"] == release_identity(manifest)
        assert manifest["audit"]["of"]["data_sha256"] == manifest["data"]["sha256"]
        other = Path(shutil.copytree(made("random"), tmp_path / "other"))
        changed = json.loads((other / "manifest.json").read_text()) | {"audit": manifest["audit"]}
        sample_releases.put_manifest(other, changed)
        assert "belongs to other data or settings; run ghostpoi audit again" in sentence(called("report", other))
        done = ask(other, "--adversaries", "none")
        assert "replaced the stored audit, which belongs to other data" in done.stderr
        assert list(stored(other)["adversaries"]) == ["none"]

    @pytest.mark.parametrize("key", ["not_run", "over", "gives_away", "verdict"])
    def test_an_audit_that_may_be_partial_without_saying_so_is_of_another_version(
        self, release: Path, key: str
    ) -> None:
        sample_releases.put_audit(release, sample_releases.audit())
        assert called("report", release).returncode == 0
        old = {name: value for name, value in sample_releases.audit().items() if name != key}
        sample_releases.put_audit(release, old)
        assert "of another version; run ghostpoi audit again" in sentence(called("report", release))

    def test_a_partial_audit_may_say_much(self, release: Path) -> None:
        sample_releases.put_audit(release, sample_releases.audit(not_run=["bigram", "habits"], over="part"))
        assert called("report", release).returncode == 0
        words = "Cannot tell without a leak; gives away much with a 5% leak"
        said = f"{words} (partial audit; not run: bigram, habits)"
        page = (release / "report.html").read_text("utf-8")
        assert 'class="headline much">Gives away much</h2>' in page
        assert f'id="verdict">{said}.' in page

    def test_an_audit_without_accuracy_on_moves_is_of_another_version(self, audited: Path) -> None:
        old = stored(audited)
        for measures in old["controls"].values():
            del measures["acc@1_moves"]
        sample_releases.put_audit(audited, old)
        assert "of another version; run ghostpoi audit again" in sentence(called("report", audited))
        done = ask(audited, "--adversaries", "none")
        assert "replaced the stored audit, which is damaged or of another version" in done.stderr
        assert list(stored(audited)["adversaries"]) == ["none"]


class TestCannotTell:
    def test_few_test_users_cannot_tell(self, release: Path) -> None:
        done = ask(release, "--set", "filters.min_user_checkins=120")
        assert done.returncode == 0, done.stderr
        self.it_cannot_be_told(release, done)
        assert stored(release)["gives_away"]["no_leak"]["positions_needed"] > stored(release)["test_positions"]

    def test_a_victim_that_learns_nothing_from_clean_data_cannot_tell(self, release: Path) -> None:
        tiny = ("victim.dim=16", "victim.heads=2", "victim.feed_forward=16", "victim.layers=1", "training.epochs=1")
        sets = [word for text in (*tiny, "filters.train_share=0.5") for word in ("--set", text)]
        done = ask(release, "--victim", "transformer", "--adversaries", "none", *sets)
        assert done.returncode == 0, done.stderr
        self.it_cannot_be_told(release, done)
        assert stored(release)["gives_away"]["no_leak"]["headroom"]["low"] <= 0

    def it_cannot_be_told(self, release: Path, done: small_city.Done) -> None:
        audit = stored(release)
        assert audit["verdict"] == "cannot tell"
        assert [audit["gives_away"][leak]["verdict"] for leak in ("no_leak", "with_leak")] == ["cannot tell"] * 2
        said = headlines(release, done)
        assert said == [said[0]] * 3
        assert said[0].startswith("Cannot tell")


class TestLimits:
    @pytest.mark.parametrize(
        ("limit", "verdict", "code"), [("0.9", "within your limits", 0), ("0", "beyond your limits", 1)]
    )
    def test_the_exit_code_says_whether_a_release_keeps_to_them(
        self, audited: Path, tmp_path: Path, limit: str, verdict: str, code: int
    ) -> None:
        """Against the clean file, which gives away much; nothing is decided without limits."""
        config = tmp_path / "limits.toml"
        config.write_text(f"[limits]\naccuracy_no_leak = {limit}\nfar_within_1km = 0.99\n")
        shared = ("--cache", scratch() / "verdict-cache", *QUICK, "--json")
        done = called("audit", city(), city(), "--config", config, *shared)
        assert done.returncode == code, done.stderr
        limits = json.loads(done.stdout)["limits"]
        assert limits["no_leak"] == {"limit": float(limit), "verdict": verdict}
        assert limits["far_within_1km"]["verdict"] == "within your limits"
        assert limits["decision"] == verdict
        assert called("audit", city(), city(), *shared).returncode == 0

    def test_the_bound_of_a_release_by_crowds_is_stored_and_shown(self, audited: Path) -> None:
        bound = stored(audited)["bound"]
        assert bound["nothing_vulnerability"] <= bound["habits_vulnerability"] <= 1
        assert bound["nothing_guesses"] >= bound["habits_guesses"] >= 1
        assert called("report", audited).returncode == 0
        for text in (
            ask(audited).stdout,
            *((audited / name).read_text("utf-8") for name in ("card.md", "report.html")),
        ):
            assert "The first guess of a clean venue is right for at most " in " ".join(text.split())
        shutil.copytree(made("random"), audited.parent / "random")
        ask(audited.parent / "random", "--adversaries", "none")
        assert stored(audited.parent / "random")["bound"] is None

    def test_people_who_are_singled_out_count(self, audited: Path) -> None:
        done = ask(audited, "--set", "limits.persons=0.1")
        assert done.returncode == 1
        assert "people singled out, at most 0.1: beyond your limits" in done.stdout
        assert stored(audited)["limits"]["decision"] == "beyond your limits"

    def test_they_are_stored_and_shown(self, audited: Path) -> None:
        done = ask(audited, "--set", "limits.accuracy_with_leak=0.9")
        assert "accuracy given away with the leak, at most 0.9: within your limits" in " ".join(done.stdout.split())
        assert stored(audited)["limits"]["decision"] == "within your limits"
        assert called("report", audited).returncode == 0
        for name in ("card.md", "report.html"):
            assert "within your limits" in (audited / name).read_text("utf-8")


class TestMatchedControl:
    def test_it_stands_beside_the_papers_in_every_place(self, audited: Path) -> None:
        audit = stored(audited)
        top = next(name.partition("+")[2] for name in audit["controls"] if name.startswith("random-matched+"))
        assert {"random", "random-matched", f"random+{top}", f"random-matched+{top}"} <= set(audit["controls"])
        done = ask(audited)
        for text in (
            "matched random release  ",
            victim_label("random"),
        ):
            assert text in done.stdout
        assert called("report", audited).returncode == 0
        card, page = ((audited / name).read_text("utf-8") for name in ("card.md", "report.html"))
        name = victim_label(f"random-matched+{top}")
        assert name == f"matched random release, {victim_label(top)}"
        assert f"| control: {name} |" in card
        assert f'<th scope="row">{name}</th><td>control</td>' in page
        assert ". A random release protects " in page.split('id="verdict">')[1][:400]
        assert "matched random release" in page

    def test_it_has_the_rate_of_the_method(self, audited: Path) -> None:
        found = stored(audited)
        rate = {name: found["controls"][name]["restored"]["mean"] for name in ("random", "random-matched")}
        as_released = found["adversaries"]["none"]["restored"]["mean"]
        assert rate["random-matched"] == as_released  # the same rows are genuine
        assert rate["random"] != as_released

    def test_it_draws_from_the_methods_own_sets_where_the_release_substitutes(self) -> None:
        pair = read_pair(city(), made("crowd"), {})
        chosen = AuditRequest(file=formats.Source(city()), release=formats.Source(made("crowd"))).settings_for(
            pair.manifest
        )
        data = align(pair, chosen.filters)
        method = publisher_of(pair.manifest)
        assert method is not None
        rule, clean = public_rule(pair, data.vocabulary, chosen, method), data.train.poi
        one, two = (matched_draw(rule, clean, data.released, Seed(number)) for number in (1, 2))
        own = matched_rule(method, rule, clean, data.released)
        for drawn in (one, two):
            assert np.array_equal(drawn != clean, data.released != clean)
            assert (own.channel.find(clean, drawn) >= 0).all()
        assert (one != two).any()
        assert (public_rule(pair, data.vocabulary, chosen, METHODS["random"]).channel.find(clean, one) < 0).any()

    def test_a_method_without_own_sets_is_matched_in_its_rate(self) -> None:
        sets = Candidates(np.array([[0, 0], [2, 3], [1, 0], [0, 0]], np.int32), np.ones(4))
        clean, released = np.array([1, 1, 1, 1, 2, 3], np.int32), np.array([1, 2, 2, 3, 1, 3], np.int32)
        rule = matched_rule(METHODS["ghost"], rule_of(METHODS["ghost"], sets), clean, released)
        known = {(int(p), int(q)): k for p, q, k in zip(rule.channel.clean, rule.channel.released,
                                                        rule.channel.probability, strict=True)}  # fmt: skip
        assert known == pytest.approx({(1, 1): 0.2, (1, 2): 0.4, (1, 3): 0.4, (2, 2): 0.2, (2, 1): 0.8, (3, 3): 1.0})

    def test_a_random_release_needs_no_second_one(self, tmp_path: Path) -> None:
        release = Path(shutil.copytree(made("random"), tmp_path / "release"))
        assert ask(release, "--adversaries", "none").returncode == 0
        assert not [name for name in stored(release)["controls"] if name.startswith("random-matched")]


def test_protect_and_audit_measure_the_same_rows(release: Path) -> None:
    manifest = json.loads((release / "manifest.json").read_text())
    done = ask(release, "--adversaries", "none", "--json")
    found = json.loads(done.stdout)["plausibility"]
    assert {key: stored(release)["plausibility"][key] for key in manifest["plausibility"]} == manifest["plausibility"]
    counted = manifest["speed"]
    assert found["speed_violations_released"] == counted["steps_over_limit"] / counted["steps"]
    clean = fast_steps(formats.read(city()).table, counted["limit_kmh"], counted["min_gap_s"])
    assert found["speed_violations_clean"] == clean["steps_over_limit"] / clean["steps"]
    assert "plausibility of all rows: " in ask(release, "--adversaries", "none").stdout


def test_no_count_of_clean_visits_can_be_computed_from_a_manifest(audited: Path) -> None:
    """An accuracy times the public number of positions must not single out a count."""
    audit = stored(audited)
    positions = audit["test_positions"]
    size = step(positions)
    assert size * positions >= 5
    victims = [audit["clean"], *audit["adversaries"].values(), *audit["controls"].values()]
    victims += [one for victim in victims for one in victim.pop("by_victim", {}).values()]
    for measures in victims:
        for name in ("victim", "distance"):
            measures.pop(name, None)
        assert set(measures) <= {"acc@1", "acc@1_moves", "acc@5", "mrr", "accuracy_lost", "restored"}
        for name in ("acc@1", "acc@5", "mrr"):
            for value in measures[name]["seeds"]:
                assert value / size == pytest.approx(round(value / size), abs=1e-6)
        for value in measures["acc@1_moves"]["seeds"]:  # fewer steps: the step is at least as large
            assert value / size == pytest.approx(round(value / size), abs=1e-6)
        lost = 1 - measures["acc@1"]["mean"] / audit["clean"]["acc@1"]["mean"]
        assert measures["accuracy_lost"]["mean"] == pytest.approx(lost)  # follows from rounded values alone


def test_steps_of_the_rounding() -> None:
    assert [step(n) for n in (42, 100, 3_184, 5_000, 20_000)] == pytest.approx([0.2, 0.05, 0.002, 0.001, 0.0005])
    assert np.isfinite(step(0))
