"""The whole table: rows in sessions, rows outside sessions, and the candidate sets of both.

The order of a file must not decide draws. Rows are ordered by user, time and venue, by their ids.

Rows of one user and time whose venues draw from the same set are released at one venue: duplicates, and different
venues of a crowd. Several draws for one visit would reveal more than one draw. If only duplicates were released at one
venue, whether two venues differ would show.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data import sessions
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Checkins, Ints, Longs, Venues, by_user_and_time, stable_order
from ghostpoi.data.geo import over_limit
from ghostpoi.data.places import Places, hidden_venues, of_table, with_use
from ghostpoi.data.sessions import Dataset, Sessions
from ghostpoi.draw.crowds import LEARNED, by_hours, by_name, learned_name
from ghostpoi.draw.methods import AnyMethod
from ghostpoi.draw.methods.base import CATEGORY_HOURS, LEARNED_GROUPS
from ghostpoi.draw.noise import ByContent, hashed, plain
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.walks import Substitution, Trails, number_of_set
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.randomness import Seed
from ghostpoi.settings import FilterSettings

if TYPE_CHECKING:
    from ghostpoi.draw.catalogue import KeptCrowds


def user_order(table: Checkins) -> Longs:
    """Return the users of a table in the order of their ids, however these are written, (U,)."""
    return np.argsort(np.array([plain(str(name)) for name in table.user_ids], object), kind="stable")


def venue_order(ids: NDArray[np.object_]) -> Longs:
    """Return venues in the order of their ids, (V+1,). Row 0, which is padding, stays."""
    return np.append(0, np.argsort(ids[1:], kind="stable") + 1)


@dataclass(frozen=True)
class RowOrder:
    """The order of the rows of a table, and the row whose release each takes."""

    row: Longs  # (N,) rows by user, time, set and venue
    first: Longs  # (N,) of each row of the table: itself, or the one that decides for it

    @staticmethod
    def of(table: Checkins, sets: Candidates, decided: Bools) -> "RowOrder":
        """Order rows. `decided` (N,) marks those whose release is known before that of the others."""
        order = by_user_and_time(np.argsort(user_order(table)).astype(np.int32)[table.user], table.time)
        user, time = table.user[order], table.time[order]
        again = (user[1:] == user[:-1]) & (time[1:] == time[:-1])
        at = np.flatnonzero(np.append(again, False) | np.append(False, again))
        row, moment = order[at], np.cumsum(np.append(True, ~again))[at]
        venue_rank, category_rank = np.argsort(venue_order(table.venue_ids)), np.argsort(np.argsort(table.category_ids))
        place = venue_rank[number_of_set(sets)[table.venue[row]]]
        within = np.lexsort((
            category_rank[table.category[row]], table.lon[row], table.lat[row], venue_rank[table.venue[row]],
            ~decided[row], place, moment,
        ))  # fmt: skip
        order[at] = row = row[within]
        new = np.append(True, (np.diff(moment) != 0) | (np.diff(place[within]) != 0))[: len(row)]
        first = np.arange(len(order))
        first[row] = row[np.flatnonzero(new)][np.cumsum(new) - 1]
        return RowOrder(order, first)

    @property
    def leading(self) -> Longs:
        """The rows that take no other row's release, in order."""
        return self.row[self.first[self.row] == self.row]

    def arranged(self, found: Sessions) -> Sessions:
        """Return sessions with check-ins of equal times in this order."""
        place = np.empty(len(self.row), np.int64)
        place[self.row] = np.arange(len(self.row))
        at = np.lexsort((place[found.row], found.session_of()))
        return replace(found, poi=found.poi[at], time=found.time[at], row=found.row[at])

    def without_followers(self, found: Sessions) -> Sessions:
        """Return sessions without the check-ins that take another row's release."""
        own = self.first[found.row] == found.row
        if own.all():
            return found
        length = np.bincount(found.session_of()[own], minlength=len(found))
        some = length > 0
        start = np.append(0, np.cumsum(length[some]))
        return Sessions(found.user[some], start, found.poi[own], found.time[own], found.row[own])


def sessions_of(table: Checkins, settings: FilterSettings, may_be_empty: bool) -> Dataset:
    """Build the sessions of a table with users and venues in the order of their ids, not of the file."""
    users, venues = user_order(table), venue_order(table.venue_ids)
    user, venue = (np.argsort(order).astype(np.int32) for order in (users, venues))
    v = table.venues
    places = Venues(v.lat[venues], v.lon[venues], v.category[venues])
    found = sessions.build(
        replace(table, user=user[table.user], venue=venue[table.venue], user_ids=table.user_ids[users],
                venue_ids=table.venue_ids[venues], places=places),
        settings, may_be_empty,
    )  # fmt: skip
    parts = {
        name: replace(part := getattr(found, name), user=users[part.user].astype(np.int32))
        for name in ("train", "val", "test", "all")
    }
    vocabulary = replace(found.vocabulary, venue=venues[found.vocabulary.venue].astype(np.int32))
    return replace(found, vocabulary=vocabulary, **parts)


@dataclass(frozen=True)
class WholeTable:
    """A table with its sessions. Rows in sessions draw from the vocabulary, other rows from all venues."""

    table: Checkins
    data: Dataset  # users, venues and check-ins of equal times are in the order of their ids, not of the file
    session_sets: Candidates  # over the vocabulary
    venue_sets: Candidates  # over all venues
    crowds: "KeptCrowds | None" = None  # of the series to which the table belongs

    def _of_row(self, of: Callable[[Candidates], NDArray[Any]]) -> NDArray[Any]:
        """Return what is true of the set that applies to each row, (N,)."""
        found, s = of(self.venue_sets)[self.table.venue], self.data.all
        found[s.row] = of(self.session_sets)[s.poi]
        return found

    @property
    def set_size(self) -> Longs:
        """(N,) the size of the set that applies to a row."""
        return self._of_row(lambda sets: sets.size)

    @property
    def has_candidates(self) -> Bools:
        """(N,) whether the venue of a row has a candidate in the set that applies to the row."""
        return self.set_size > 0

    @property
    def hidden(self) -> Bools:
        """(V+1,) whether a venue is never released."""
        return self.venue_sets.is_hidden

    @property
    def borrows(self) -> Bools:
        """(N,) whether the venue of a row is hidden, and draws from the set of another venue."""
        return self._of_row(lambda sets: np.zeros(len(sets.poi), bool) if sets.borrows is None else sets.borrows)

    def shown(self, withhold: bool) -> Longs:
        """Return the released rows, (M,): not those of hidden venues without candidates, nor any others to withhold."""
        stays = ~self.hidden[self.table.venue] & (not withhold)
        return np.flatnonzero(self.has_candidates | stays)

    @property
    def in_session(self) -> Bools:
        """(N,) whether a row is in a session that models learn from."""
        mask = np.zeros(len(self.table), bool)
        mask[self.data.all.row] = True
        return mask

    @property
    def repeated(self) -> Bools:
        """(N,) whether a row repeats the draw of an earlier release of a series."""
        return np.zeros(len(self.table), bool) if self.crowds is None else self.crowds.repeated

    @cached_property
    def order(self) -> RowOrder:
        """The order of rows, and which of them are released at one venue."""
        return RowOrder.of(self.table, self.venue_sets, self.in_session | self.repeated)

    @cached_property
    def drawn_sessions(self) -> Sessions:
        """The check-ins in sessions that do not take another row's release."""
        return self.order.without_followers(self.order.arranged(self.data.all))

    @property
    def trails(self) -> Trails:
        """The rows of each user that take no other row's release."""
        table, venues, row = self.table, self.table.venues, self.order.leading
        trail = np.cumsum(np.diff(table.user[row], prepend=-1) != 0)
        return Trails(trail, table.time[row], table.venue[row], venues.lat, venues.lon, self.venue_sets)

    def noise(self, seed: Seed) -> ByContent:
        """Return the numbers that decide the draws of all rows."""
        table, number = self.table, number_of_set(self.venue_sets)
        place = hashed(list(map(str, table.venue_ids)), seed, "venues")[:, 0]
        place[np.bincount(number)[number] > 1] = 0
        return ByContent.of(table, seed, place[table.venue])


def prepare(
    table: Checkins, settings: Publication, whole_file: bool = True, crowds: "KeptCrowds | None" = None
) -> WholeTable:
    """Build sessions and candidate sets; refuse settings that fit no model and a table that cannot be protected.

    A table that is one region of many may have no sessions and no candidates. `crowds`: those of its series.
    """
    for name, model in (("surrogate", settings.surrogate), ("lm", settings.lm)):
        if model.dim % model.heads:
            raise InputError(
                f"{name}.dim={model.dim} is not a multiple of {name}.heads={model.heads}; change one of them with "
                f"{option('set')}"
            )
    whole = _build(table, settings, whole_file, crowds)
    if whole_file and whole.hidden[1:].all():
        raise InputError(
            "all venues are homes or others that are never released, so nothing is left to release; keep homes with "
            f"{option('set', 'hide.homes=false')}, or lower hide.min_visitors"
        )
    if whole_file and not whole.has_candidates.any():
        kept = settings.keeps_category
        of_it = {"exact": " of its category", "group": " of its group of categories", "any": ""}[kept]
        of_it = " that is used the same way" if settings.learned else of_it
        wider = "method.reach_km=100" if settings.method.own_sets else "candidates.radius_km=5"
        coarser = "" if kept == "any" else f" or map a coarser category with {option('map', 'category=COLUMN')}"
        coarser = " or lower candidates.plausibility" if settings.learned else coarser
        raise InputError(
            f"no venue has another{of_it} nearby, so nothing can be substituted; widen the search with "
            f"{option('set', wider)}{coarser}"
        )
    return whole


def _build(
    table: Checkins, settings: Publication, whole_file: bool = True, crowds: "KeptCrowds | None" = None
) -> WholeTable:
    if crowds is not None and crowds.method == settings.method:  # all rows draw from the sets of the series: no model
        data = sessions_of(table, FilterSettings(min_poi_checkins=len(table) + 1), may_be_empty=True)
        padding = crowds.sets.renumbered(np.arange(len(crowds.sets.poi)), np.zeros(1, np.int64))
        return WholeTable(table, data, padding, crowds.sets, crowds)
    data = sessions_of(table, settings.filters, may_be_empty=not whole_file)
    v, venues = data.vocabulary, places_of(table, settings)
    known = np.zeros(len(venues.lat), bool)
    known[v.venue[1:]] = True
    inside = _sets(venues.take(v.venue), table.venue_ids[v.venue], settings)
    return WholeTable(table, data, inside, _sets(venues, table.venue_ids, settings, known), crowds)


def places_of(table: Checkins, settings: Publication) -> Places:
    """Return the venues of a table, with how they are used or with groups of categories if the settings need them."""
    places, hidden = of_table(table), hidden_venues(table, settings.hide)
    places = replace(places, hidden=hidden, visits=np.where(hidden, 0, places.visits))
    if settings.learned:
        return with_use(places, table)
    if settings.keeps_category != "group":
        return places
    given = table.category_groups
    return replace(places, category_group=by_name(list(table.category_ids), given) if given else by_hours(places))


def check_category(table: Checkins, settings: Publication) -> None:
    """Refuse settings that follow categories for a file that has none, and those that have no effect."""
    followed = settings.candidates.category
    if followed != "exact" and settings.method.own_sets:
        raise InputError(
            f"candidates.category={followed} has no effect on a method that builds its own candidate sets; leave it "
            f"out, or use another method, such as {option('method', 'ghost')}"
        )
    if table.category_field or settings.keeps_category == "any":
        return
    learned = f"{option('set', 'candidates.category=learned')} or {option('method', 'crowd')}"
    coarser = option("set", "method.category=any") if hasattr(settings.method, "category") else learned
    raise InputError(
        f"{table.name} has no category, which the method follows; name its column with "
        f"{option('map', 'category=COLUMN')}, or use {coarser}"
    )


def grouped(table: Checkins, groups: Mapping[str, str], method: AnyMethod) -> Checkins:
    """Return the table with the groups of a taxonomy, which win over those of a column; refuse groups without use."""
    if not groups:
        return table
    if method.keeps_category != "group":
        raise InputError(
            f"{option('taxonomy')} has no effect unless crowds follow groups; add "
            f"{option('set', 'method.category=group')}"
        )
    if unknown := [str(name) for name in table.category_ids if name not in groups]:
        named = f"{unknown[0]!r} and {len(unknown) - 1} more" if len(unknown) > 1 else repr(unknown[0])
        raise InputError(f"{option('taxonomy')}: categories of {table.name} are missing ({named}); add a line for each")
    return replace(table, category_groups=groups)


def category_groups(whole: WholeTable, settings: Publication) -> list[list[str]]:
    """Return pairs of a category and its group, as the manifest lists them; none if the method does not use groups."""
    if settings.keeps_category != "group":
        return []
    table = whole.table
    given = table.category_groups
    if whole.crowds is not None and given:  # others are of venues that nobody sees
        drawn = table.venues.category[np.unique(whole.crowds.sets.poi)[1:]]
        given = {name: given[name] for name in table.category_ids[np.unique(drawn)].tolist()}
    number = places_of(table, settings).category_group
    learned = {str(name): learned_name(n) for name, n in zip(table.category_ids, number, strict=True)}
    return [[name, group] for name, group in sorted((given or learned).items())]


def published_aggregates(has_category: bool, groups: Mapping[str, str], settings: Publication) -> list[str]:
    """Return what draws and groups show about the whole file. Hours reveal nothing if there is no category."""
    shown = [text for text in settings.published_aggregates if has_category or text != CATEGORY_HOURS]
    # A series keeps groups under their names, whether they were given or learned.
    learned = settings.keeps_category == "group" and all(map(LEARNED.fullmatch, groups.values()))
    return [*shown, LEARNED_GROUPS] if learned else shown


def count_sets(table: Checkins, settings: Publication, whole_file: bool = True) -> Counter[str]:
    """Count the rows that have a set, and add up the sizes of these."""
    check_category(table, settings)
    whole = _build(table, settings, whole_file)
    has, inside, size = whole.has_candidates, whole.in_session, whole.set_size
    found = {"rows": len(has), "inside": inside.sum(), "has": has.sum(), "has_inside": (has & inside).sum()}
    return Counter({name: int(n) for name, n in (found | {"size": size[has].sum()}).items()})


def described_sets(n: Mapping[str, int], settings: Publication) -> dict[str, Any]:
    """Describe the sets of a table, or of all regions of a dataset, from what was counted."""
    outside = n["rows"] - n["inside"]
    return {
        "summary": settings.method.summary,
        "own_sets": settings.method.own_sets,
        "coverage": n["has"] / n["rows"],
        "coverage_in_sessions": n["has_inside"] / max(1, n["inside"]),
        "coverage_outside_sessions": (n["has"] - n["has_inside"]) / outside if outside else 1.0,
        "mean_size": n["size"] / max(1, n["has"]),
    }


def _sets(places: Places, ids: NDArray[np.object_], settings: Publication, known: Bools | None = None) -> Candidates:
    """Find the candidate sets with venues in the order of their ids, which decides between venues at one position.

    Their numbers must not decide: they reveal which venue was visited first.
    """
    order = venue_order(ids)
    number, places = np.argsort(order), places.take(order)
    found = settings.method.candidate_sets(places, settings.candidates, None if known is None else known[order])
    return found.without(places, None if known is None else known[order]).renumbered(order, number)


def has_donor(whole: WholeTable, released: Ints, method: AnyMethod, every: bool) -> Bools:
    """Mark the rows (N,) that get their venue fields from another row, given the released venues (N,).

    If the method draws from sets with the clean venue itself, a row that keeps its venue gets a donor, too: its own
    variant of the fields would mark it as genuine. With pseudonyms `every` row gets one: the variant may be the user's.
    """
    if every:
        return np.ones(len(whole.table), bool)
    return whole.has_candidates if method.own_sets else released != whole.table.venue


def donor_rows(whole: WholeTable, released: Substitution, method: AnyMethod, seed: Seed, every: bool = False) -> Longs:
    """Return, for every row, the row whose venue fields it gets: a random genuine row of the released venue, or itself.

    A donor must have the venue's usual category, by which the venue was chosen; some rows of a file may differ.
    """
    table, row = whole.table, whole.order.row
    donor = np.arange(len(table))
    drawn = np.flatnonzero(has_donor(whole, released.poi, method, every))
    usual = row[(table.category == table.venues.category[table.venue])[row]]
    by_venue = usual[stable_order(table.venue[usual])]
    count = np.bincount(table.venue[by_venue], minlength=len(table.venue_ids))
    first = np.cumsum(count) - count
    new, uniform = released.poi[drawn], whole.noise(seed).take(drawn).uniform("donor")
    donor[drawn] = by_venue[first[new] + np.minimum((uniform * count[new]).astype(np.int64), count[new] - 1)]
    return donor


def count_rows(whole: WholeTable, released: Substitution) -> dict[str, dict[str, int]]:
    """Count the substituted rows in and outside sessions, and the other rows by the reason why they were kept."""
    changed, has, emptied = released.poi != whole.table.venue, whole.has_candidates, released.mask_emptied
    groups = {"in_sessions": whole.in_session, "outside_sessions": ~whole.in_session}
    kinds = {
        "rows": has | ~has, "substituted": changed, "no_candidate": ~has, "kept_by_speed": has & ~changed & emptied,
        "kept_by_method": has & ~changed & ~emptied, "slowest_taken": changed & emptied,
    }  # fmt: skip
    return {name: {kind: int((group & of).sum()) for kind, of in kinds.items()} for name, group in groups.items()}


def hidden_rows(whole: WholeTable) -> dict[str, int]:
    """Count the visited venues that are never released, their rows, and those that borrow a set or have none."""
    table, at = whole.table, whole.hidden[whole.table.venue]
    return {
        "venues": len(np.unique(table.venue[at])), "rows": int(at.sum()), "borrowed": int(whole.borrows.sum()),
        "withheld": len(table) - len(whole.shown(withhold=False)),
    }  # fmt: skip


def genuine_rows(whole: WholeTable, method: AnyMethod, row: Longs, released: Ints | Longs) -> dict[str, int]:
    """Count the released rows (N,) that show their clean venue: left genuine, or drawn from a set that includes it.

    `released` (N,) is the venue of each in the numbering of the table. A row is left genuine if it has no candidate, or
    if the clean venue was kept and the method's sets do not include it. If they do, the draw does not depend on which
    venue of the set is the clean one, so a row that drew its own venue looks like one that did not.
    """
    same = released == whole.table.venue[row]
    chance = whole.has_candidates[row] if method.own_sets else np.zeros(len(row), bool)
    return {"left_genuine": int((same & ~chance).sum()), "drawn_own": int((same & chance).sum())}


def fast_steps(table: Checkins, limit_kmh: float, min_gap_s: float) -> dict[str, float]:
    """Count the steps from check-in to check-in of all users, and those that imply a speed over the limit."""
    order = by_user_and_time(table.user, table.time)
    venue, v = table.venue[order], table.venues
    same_user = np.diff(table.user[order]) == 0
    over = over_limit(v.lat[venue], v.lon[venue], table.time[order], limit_kmh, min_gap_s)[same_user]
    return {"limit_kmh": limit_kmh, "min_gap_s": min_gap_s, "steps": len(over), "steps_over_limit": int(over.sum())}
