"""Fresh user ids have the form of the old ones."""

import re
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.errors import InputError
from ghostpoi.release.identity import form_of, fresh_ids


def test_the_form_of_a_single_id_tells_nothing_of_it() -> None:
    letters, digits = [string.ascii_lowercase] * 12, ["123456789", *[string.digits] * 7]
    assert [form_of([i]) for i in ("alice_smith42", "Bo", "u42", "0a-1f")] == [letters] * 4
    assert [form_of([i, i]) for i in ("42", "70314159265", "007")] == [digits] * 3
    assert form_of(["42.0"]) == [*digits, ".", "0"]
    assert form_of(["u41", "u42"])[0] == "u"


def drawn(ids: list[str], count: int, most: int | None = None) -> list[str]:
    found: list[str] = fresh_ids(ids, count, np.random.default_rng(0), most).tolist()
    assert len(set(found)) == count
    assert not set(found) & set(ids)
    return found


@pytest.mark.parametrize(
    ("ids", "form"),
    [
        (["1", "2", "1083"], r"[1-9]\d{3}"),
        (["0001", "0002"], r"\d{4}"),
        (["user_7", "user_12"], r"user_[1-9]\d"),
        (["U12.0", "U14.0"], r"U[1-9]\d\.0"),
        (["3fd66200", "4b5bf4ce"], r"[0-9a-f]{8}"),
        (["3FD66200", "4B5BF4CE"], r"[0-9A-F]{8}"),
        (["550e8400-e29b", "650e8400-e29c"], r"[0-9a-f]{8}-[0-9a-f]{4}"),
        (["anna.k@x", "otto.b@y"], r"[a-z]{4}\.[a-z]@[a-z]"),
        (["Ab1", "C2d"], r"[A-Z][a-z0-9][a-z0-9]"),
        (["Zoë", "Åsa", "Bob"], r"[A-Z][a-z]{2}"),
        (["a b", "c d"], r"[a-z]{3}"),
        (['a"b', 'c"d'], r"[a-z]{3}"),
        (["Anna", "Bernhardine", "Otto"], r"[A-Z][a-z]{3}"),
    ],
)
def test_the_form_is_that_of_the_file(ids: list[str], form: str) -> None:
    for new in drawn(ids, 5):
        assert re.fullmatch(form, new), new


@pytest.mark.parametrize(
    ("ids", "count", "form"),
    [
        (["1", "2"], 100, r"[1-9]\d{2}"),
        (["a", "b"], 100, r"[a-z]{2}"),
        (["u1x", "u2y"], 4000, r"[a-z]\d[a-z]{2}"),
        (["--", "++"], 3, r"[+-]{2}[+-]*\d*"),
    ],
)
def test_a_form_with_too_few_ids_is_lengthened(ids: list[str], count: int, form: str) -> None:
    for new in drawn(ids, count):
        assert re.fullmatch(form, new), new


def test_numbers_fit_their_type() -> None:
    assert all(100 <= int(i) <= 127 for i in drawn(["100", "-101"], 10, 127))
    assert all(10**18 <= int(i) < 2**63 for i in drawn([str(2**63 - 1), "1"], 1000, 2**63 - 1))
    assert all(10**4 <= int(i) < 2**15 for i in drawn(["7"], 100, 2**15 - 1))
    assert all(100 <= int(i) <= 127 for i in drawn(["7"], 5, 127))
    with pytest.raises(InputError, match="too few values for 200 pseudonyms; store user ids as 64-bit integers"):
        drawn(["1", "2"], 200, 127)


@given(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=8, unique=True), st.integers(1, 60))
def test_ids_are_new_and_distinct_whatever_the_form(ids: list[str], count: int) -> None:
    found = drawn(ids, count)
    assert len({len(i) for i in found}) == 1  # a length of its own would reveal something about a user
    assert all(i == i.strip() and i.isprintable() and '"' not in i for i in found)


def test_a_form_belongs_to_nobody() -> None:
    """Neither the order of the users nor who has an unusual id changes the form."""
    ids = ["u1", "v2", "w33"]
    assert form_of(ids) == form_of(ids[::-1]) == form_of(["x9", "y8", "z77"])


def test_no_id_reads_as_a_missing_value() -> None:
    found = {i for seed in range(8) for i in fresh_ids(["XY", "AB"], 330, np.random.default_rng(seed)).tolist()}
    assert {"MA", "NB"} <= found  # all ids of two letters that are no such word are drawn at some time
    assert "NA" not in found


def test_no_id_is_one_of_the_file_or_reads_as_a_missing_value() -> None:
    """A fifth of the form are ids of the file; NA is one of 676."""
    known = [str(number) for number in range(100, 300)]
    assert not set(drawn(known, 100)) & set(known)
    for seed in range(20):
        assert "na" not in fresh_ids(["ab", "cd"], 300, np.random.default_rng(seed), None)
