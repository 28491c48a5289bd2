"""A series of releases, in whatever files its rows come."""

from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import settings as tests
from hypothesis import strategies as st
from monthly_city import audited, clean_rows, days, release_in, released_rows


def id_of(row: dict[str, str]) -> tuple[str, str, str]:
    return row["user"], row["utc_time"], row["venue_id"]


spans = st.tuples(st.integers(0, 80), st.integers(10, 30)).map(lambda span: (span[0], sum(span)))


@tests(max_examples=30)
@given(st.lists(spans, min_size=2, max_size=4))
def test_every_row_has_one_draw_in_whatever_files_it_comes(chosen: list[tuple[int, int]]) -> None:
    with TemporaryDirectory() as folder:
        draws: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        for n, span in enumerate(chosen):
            made = release_in(Path(folder) / "series", days(*span), Path(folder) / f"release-{n}")
            for clean, shown in zip(clean_rows(made.file), released_rows(made), strict=True):
                draws[id_of(clean)].add(shown["venue_id"])
        assert {len(venues) for venues in draws.values()} == {1}


def test_crowds_of_one_category_reveal_habits_only_without_a_series() -> None:
    small = ("--set", "method.category=exact", "--set", "method.size=4", "--set", "method.reach_km=2")
    series, alone = (audited(kind, *small) for kind in ("series", "alone"))
    for measure in ("restored", "pinned"):
        assert not series[measure]["gain"]["clear"]
        assert alone[measure]["gain"]["mean"] > 0.05
    assert series["verdict"].startswith("Gives away nothing measurable beyond one release (12 releases): ")
    assert alone["verdict"].startswith("Gives away more than one release (12 releases): ")
