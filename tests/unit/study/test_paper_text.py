"""Sentences of the paper against its own tables: exact figures, and other tables would give other answers."""

import math

import pytest

from ghostpoi.study import paper, paper_text
from ghostpoi.study.paper_text import BelowUniform, Rise


def test_table_vi_rises_from_two_to_three_bits() -> None:
    assert paper_text.rises() == [
        Rise("mean", (2.0, 3.0), (0.0685, 0.0688)),
        Rise("worst", (2.0, 3.0), (0.0641, 0.0651)),
    ]


def test_a_falling_table_has_no_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {0: 0.4, 1: 0.3, 2: 0.3, 3: 0.2}
    table = {f"ghost method.eta={eta}.0": dict.fromkeys(paper_text.GAPS, (value,)) for eta, value in scores.items()}
    monkeypatch.setattr(paper_text, "section", lambda city, name: table)
    assert paper_text.rises() == []
    table["ghost method.eta=3.0"]["prot"] = (0.31,)
    assert paper_text.rises() == [Rise("prot", (2.0, 3.0), (0.3, 0.31))]


def test_all_printed_releases_of_nyc_are_less_likely_than_an_even_draw() -> None:
    found = paper_text.below_uniform()
    assert [(f.city, f.method) for f in found] == [
        ("nyc", "ghost"), ("nyc", "ts-ue"), ("nyc", "em"), ("nyc", "pgd"), ("tky", "ghost"), ("tky", "pgd"),
    ]  # fmt: skip
    assert found[0] == BelowUniform("nyc", "ghost", -10.0208, math.log(1 / 5135))
    assert all(f.printed < f.uniform for f in found)


def test_most_substitutes_exceed_the_papers_own_limit() -> None:
    assert paper_text.beyond_limit("nyc") == (0.6130, 0.6464)
    assert paper_text.beyond_limit("tky") == (0.3936, 0.4434)


def test_not_every_position_is_perturbed() -> None:
    assert paper_text.left_alone("nyc") == pytest.approx((0.139, 0.251))


def test_em_is_not_the_most_natural() -> None:
    assert paper_text.naturalness_order("nyc") == ["ghost", "ts-ue", "em", "pgd"]
    assert paper_text.naturalness_order("tky") == ["ts-ue", "em", "ghost", "pgd"]
    assert "clean" in paper.section("nyc", "naturalness")  # a reference, not a method
