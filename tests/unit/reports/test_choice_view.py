"""What the page and the command say of the settings that were tried."""

from sample_releases import choice, trial

from ghostpoi.reports.choice_view import arguments, warnings, without


def test_each_limit_says_what_lies_beyond_it() -> None:
    distance, trips, popularity = arguments(choice())
    assert distance == (
        "Mean distance moved, at most 2 km: with 3.2 km instead, crowds of 48 venues within 5 km, any category, by "
        "popularity has 0.5 points given away with 55% of trips, instead of 1.5 points given away with 80% of trips."
    )
    assert trips == "Trips that survive, at least 50%: without it, no setting that was tried protects better."
    assert popularity.startswith("Change of the venues' popularity, at most 0.1 bits: without it, no setting")


def test_where_nothing_keeps_all_each_limit_says_what_would() -> None:
    tried = [trial(8, 0.09, 0.4, 0.5), trial(48, 0.05, 0.9, 3.2)]
    found = choice(tried=tried, recommended=None, nearest=tried[0])
    distance, trips, _ = arguments(found)
    assert distance.endswith("with 3.2 km instead, crowds of 48 venues within 5 km, any category, by popularity has "
                             "0.5 points given away with 90% of trips.")  # fmt: skip
    assert "with 40% instead, crowds of 8 venues" in trips


def test_a_category_that_must_stay_is_a_limit_too() -> None:
    wishes = choice()["wishes"] | {"keep_category": "exact"}
    assert arguments(choice(wishes=wishes))[-1] == "Category, exact: settings that let it change were not tried."


def test_genuine_rows_and_small_files_are_warned_of() -> None:
    assert warnings(choice()) == []
    poor = trial(8, 0.06, 0.9, 0.5, left_genuine=0.042, test_positions=900)
    genuine, small = warnings(choice(recommended=poor))
    assert genuine.startswith("4.2% of the rows stay genuine: ")
    assert "900 test steps cannot tell settings apart that differ by less than 0.7 points" in small


def test_the_floor_is_the_best_that_needs_no_release() -> None:
    assert without(choice()) == ("leaked steps and staying, no release", 0.045)
