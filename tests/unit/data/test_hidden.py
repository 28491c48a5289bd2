"""Which venues a release hides, and the sets without them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Checkins
from ghostpoi.data.places import HOMES, Places, hidden_venues
from ghostpoi.settings import HideSettings

NOTHING = HideSettings(homes=False)


def table(categories: list[str], visits: list[tuple[int, int]], names: dict[str, str] | None = None) -> Checkins:
    """One venue per category; `visits` are pairs of a user and a venue, from 1."""
    user, venue = np.array(visits, np.int32).T
    place, zero = venue - 1, np.zeros(len(user))
    return Checkins(
        user, venue, place, zero, zero, np.arange(len(user)), np.array([f"u{n}" for n in range(9)], object),
        np.array(["", *(f"v{n}" for n in range(len(categories)))], object), np.array(categories, object),
        category_names=names or {},
    )  # fmt: skip


def places(hidden: list[bool], lat: list[float] | None = None) -> Places:
    zero = np.zeros(len(hidden), np.int32)
    north = np.array(lat if lat is not None else zero, float)
    return Places(north, zero.astype(float), zero, zero.astype(np.int64), zero[:, None].astype(np.int64), zero,
                  hidden=np.array(hidden))  # fmt: skip


@pytest.mark.parametrize(
    ("name", "home"),
    [
        *((name, True) for name in HOMES), ("HOME (Private)", True), ("home_private", True), ("Condo ", True),
        ("Furniture / Home Store", False), ("Funeral Home", False), ("Hotel", False), ("Neighborhood", False),
        ("", False), ("homeless shelter", False), ("Warehouse", False),
    ],
)  # fmt: skip
def test_what_counts_as_a_home(name: str, home: bool) -> None:
    here = table([name], [(0, 1)])
    assert hidden_venues(here, HideSettings())[1:].tolist() == [home]
    assert not hidden_venues(here, NOTHING).any()
    assert hidden_venues(table(["id 7"], [(0, 1)], {"id 7": name}), HideSettings())[1:].tolist() == [home]


def test_categories_can_be_named() -> None:
    here = table(["17", "Bar", "31"], [(0, 1), (0, 2), (0, 3)], {"31": "Clinic, private"})
    rule = HideSettings(homes=False, categories="17; clinic, PRIVATE;")
    assert hidden_venues(here, rule)[1:].tolist() == [True, False, True]


def test_one_row_that_calls_a_venue_a_home_hides_it() -> None:
    """Whether it is the first, the last or one of many."""
    for home in range(5):
        here = table(["Building", "Home (private)"], [(0, 1)] * 5 + [(0, 2)])
        here.category[:] = 0
        here.category[home] = 1
        assert hidden_venues(here, HideSettings()).tolist() == [False, True, False]
        assert not hidden_venues(here, NOTHING).any()


def test_venues_with_few_visitors() -> None:
    here = table(["a", "b", "Home"], [(0, 1), (0, 1), (0, 2), (1, 2), (0, 3), (1, 3)])
    assert hidden_venues(here, HideSettings(min_visitors=2)).tolist() == [False, True, False, True]
    assert hidden_venues(here, HideSettings(False, min_visitors=2)).tolist() == [False, True, False, False]
    assert hidden_venues(here, NOTHING).tolist() == [False] * 4


def test_sets_without_hidden_venues() -> None:
    """A crowd of 1, 2 and 3, of which 2 is hidden; one of 4 and 5, both hidden, nearest to 6, which is alone with 7."""
    poi = np.array([[0, 0, 0], *[[1, 2, 3]] * 3, *[[4, 5, 0]] * 2, *[[6, 7, 0]] * 2], np.int32)
    weight = np.array([[0, 0, 0], *[[1, 9, 2]] * 3, *[[5, 5, 0]] * 2, *[[3, 4, 8]] * 2], float)  # 8 is of padding
    hidden = [False, False, True, False, True, True, False, False]
    found = Candidates(poi, np.ones(8), weight).without(places(hidden, [np.nan, 0, 1, 2, 10, 20, 11, 25]))
    assert found.poi.tolist() == [[0, 0, 0], *[[1, 3, 0]] * 3, *[[6, 7, 0]] * 4]
    assert found.weight is not None
    assert found.weight.tolist() == [[0, 0, 0], *[[1, 2, 0]] * 3, *[[3, 4, 0]] * 4]
    assert found.is_hidden.tolist() == hidden
    assert found.borrows is not None
    assert found.borrows.tolist() == [False] * 4 + [True] * 2 + [False] * 2
    assert found.size.tolist() == [0, 2, 2, 2, 2, 2, 2, 2]


def test_a_hidden_crowd_borrows_as_one() -> None:
    """Crowds of 1 and 2 and of 5 and 6, whose second venues are nearer to another host than their first ones."""
    poi = np.array([[0, 0], [1, 2], [1, 2], [3, 0], [4, 0], [5, 6], [5, 6], [7, 0], [8, 0]], np.int32)
    hidden = [False, True, True, False, False, True, True, False, False]
    found = Candidates(poi, np.ones(9)).without(places(hidden, [np.nan, 5, 9, 4, 10, 20, 30, 19, 31]))
    assert found.poi[:, 0].tolist() == [0, 3, 3, 3, 4, 7, 7, 7, 8]
    assert not found.poi[:, 1].any()
    first = Candidates(np.array([[0], [1], [0]], np.int32), np.ones(3)).without(
        places([False, False, True], [np.nan, 0, 1])
    )
    assert first.poi.ravel().tolist() == [0, 1, 1]
    again = found.without(places(hidden, [np.nan, 5, 9, 4, 10, 20, 30, 19, 31]))
    assert again.borrows is not None
    assert again.borrows.tolist() == hidden


def test_where_nothing_is_hidden_sets_are_the_same_object() -> None:
    sets = Candidates(np.array([[0], [2], [1]], np.int32), np.ones(3))
    shown = places([False] * 3)
    assert sets.without(shown) is sets
    assert sets.without(replace(shown, hidden=None)) is sets
    assert sets.is_hidden.tolist() == [False] * 3


def test_known_venues_borrow_from_known_ones() -> None:
    poi = np.array([[0], [0], [2], [3]], np.int32)
    near, known = places([False, True, False, False], [np.nan, 0, 1, 2]), np.array([False, True, False, True])
    assert Candidates(poi, np.ones(4)).without(near).poi.ravel().tolist() == [0, 2, 2, 3]
    assert Candidates(poi, np.ones(4)).without(near, known).poi.ravel().tolist() == [0, 3, 2, 3]


def test_without_a_venue_that_may_appear_sets_are_empty() -> None:
    found = Candidates(np.array([[0, 0], [1, 2], [1, 2]], np.int32), np.ones(3)).without(places([False, True, True]))
    assert not found.size.any()


def test_a_method_that_draws_anywhere_releases_the_nearest_shown_venue() -> None:
    hidden, lat = [False, True, False, False], np.array([np.nan, 0, 3, 1])
    sets = Candidates.anywhere(4).without(places(hidden, lat.tolist()))
    assert sets.shown_for(lat, np.zeros(4)).tolist() == [0, 3, 2, 3]
    assert sets.size.tolist() == [0, 2, 2, 2]
    assert sets.poi.tolist() == [[0]] * 4
    assert Candidates.anywhere(4).without(places([False, False, True, False])).size.tolist() == [0, 2, 2, 2]
    assert Candidates.anywhere(4).size.tolist() == [0, 3, 3, 3]


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 4))
def test_no_set_holds_a_hidden_venue(flags: list[bool], size: int) -> None:
    hidden, crowd = [False, *flags], np.arange(len(flags)) // size
    poi = np.zeros((len(hidden), size), np.int32)
    for at, number in enumerate(crowd, 1):
        members = np.flatnonzero(crowd == number) + 1
        poi[at, : len(members)] = members
    found = Candidates(poi, np.ones(len(poi))).without(places(hidden, [np.nan, *range(len(flags))]))
    assert not found.is_hidden[found.poi].any()
    assert (found.size[1:] > 0).all() == (not all(flags))
    for number in crowd:  # members of a crowd have one set, so that a draw does not show which was visited
        assert len(np.unique(found.poi[1:][crowd == number], axis=0)) == 1
