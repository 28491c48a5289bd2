"""What a release and the clean file say about single people, each figure with its control.

The control are people who are not in the release: a tenth of them is held out, and the rest is protected again with
the same public settings and a seed of the audit. What an outsider finds out about them is false or common knowledge.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.audits.cache import Cache, Record
from ghostpoi.audits.match import TablePair, joint_venues, publisher_of
from ghostpoi.audits.measures import persons as measure
from ghostpoi.audits.measures.accuracy import step
from ghostpoi.audits.measures.persons import Matcher, Parts, Visits
from ghostpoi.data import pseudonyms
from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, Venues, renumber
from ghostpoi.data.geo import DEGREE_KM, haversine_km, unit_sphere
from ghostpoi.data.places import called, is_hidden
from ghostpoi.draw.methods.crowd import CrowdDraw
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.table import DRAW_VERSION, protect_table
from ghostpoi.draw.walks import number_of_set
from ghostpoi.draw.whole_table import WholeTable, prepare
from ghostpoi.randomness import Seed
from ghostpoi.release.manifest import settings_of
from ghostpoi.settings import FilterSettings, HideSettings, Section, key_of, setting

if TYPE_CHECKING:
    import torch

HELD_OUT = 0.1  # of the people
FEWEST = 20  # people: of fewer, nothing is measured or published
MOST_PEOPLE, DRAWS = 1000, 10  # how many people are looked for, and how often each
MOST_GROUPS = 5000  # sessions or ids that are assigned
CUTS = (1, 2, 3)  # quarters of each person's sessions that come before a next release
HOME_VISITS = 5  # that make a venue somebody's home
TWIN_POINTS = 4  # known check-ins by which a person who is held out is looked for
WIDE = 0.95  # of the displacements, where places are squares
NEAR_KM = 1.0
WEEK_S = 7 * 86_400
AGAIN = "protected again without them"
RELEASE, CLEAN = SIDES = ("release", "clean")
CONTROLS = {RELEASE: "control", CLEAN: "clean_control"}
ANYBODY = "anybody"  # the share of all people who make such visits, which needs no release
PUBLISHED = ("mean", "low", "high", "median", "p95")  # of each figure; the most exposed person stays private
TOPICS = ("health", "worship", "nightlife", "other")
Name = tuple[str, ...]  # of a tally, e.g. ("unicity", "hour", "4", "release")


@dataclass(frozen=True)
class PersonSettings(Section):
    """The categories that audits of persons look for: words in their names, separated by commas."""

    home: str = setting("", "categories of homes in addition to those that hide.homes knows")
    health: str = setting(
        "hospital, doctor, dentist, clinic, medical, emergency room, pharmacy, rehab, mental health, maternity",
        "sensitive categories: health",
    )
    worship: str = setting(
        "church, mosque, synagogue, temple, shrine, monastery, spiritual, cathedral, chapel, prayer",
        "sensitive categories: worship",
    )
    nightlife: str = setting(
        "bar, pub, nightclub, club, strip club, nightlife, cocktail, lounge, brewery, speakeasy, casino",
        "sensitive categories: nightlife",
    )
    other: str = setting("", "further sensitive categories")

    def marks(self, topic: str, called: Sequence[Iterable[str]]) -> Bools:
        """Mark the categories, (C,), with a word of a topic in their id or name; for `home`, all kinds of homes."""
        words = [re.escape(word.strip().lower()) for word in getattr(self, topic).split(",") if word.strip()]
        pattern = re.compile(rf"(?<!\w)({'|'.join(words)})(s|es)?(?!\w)") if words else None
        homes = HideSettings(homes=topic == "home")
        found = (is_hidden(one, homes) or (pattern and pattern.search(" ".join(one).lower())) for one in called)
        return np.array([bool(one) for one in found], bool)


@dataclass(frozen=True)
class Persons:
    """What was measured about the people of a release or of a region: tallies, (P, 2), by measure and side."""

    tallies: dict[Name, Floats]
    control: str | None  # how it was made; None: another tool's release has none
    place_km: float  # how wide the places are that an outsider compares
    rows: int


@dataclass(frozen=True)
class Again:
    """Protects the people who are not held out again: where models run, and the cache of what they drew."""

    device: "torch.device | None" = None
    cache: Cache | None = None

    def drawn(self, whole: WholeTable, settings: Publication) -> Ints:
        """Return the venue of each row of a table, (N,), under a seed of the audit."""

        def draw() -> Record:
            folder = None if self.cache is None else self.cache.folder / "trajectory_lm"
            seed = Seed(Seed(0).derive("persons", "again"))
            return Record({}, protect_table(whole, settings, seed, self.device, cache=folder).poi)

        if self.cache is None or not settings.method.needs_torch:
            return draw().poi
        rows = (getattr(whole.table, name) for name in ("user", "venue", "category", "lat", "lon", "time"))
        key = key_of("persons", DRAW_VERSION, settings.method.version, self.device, settings, *rows)
        return self.cache.get("releases", key, draw).poi


def measured(
    pair: TablePair, filters: FilterSettings, chosen: PersonSettings, again: Again | None = None
) -> Persons | None:
    """Measure what a release says about people; None if it has too few of them."""
    if len(np.unique(pair.clean.user[pair.clean_row])) < FEWEST:
        return None
    scene = Scene.of(pair, filters, chosen, again or Again())
    everybody, found = np.arange(scene.people), dict[Name, Floats]()
    for topic, (_, truth) in scene.topics.items():
        found["sensitive", topic, ANYBODY] = measure.tally(everybody, truth, scene.people)
    for end, view in scene.views.items():
        before = {name[:-1]: counts for name, counts in found.items() if name[-1] == RELEASE}
        found |= {(*name, end): counts for name, counts in scene.measures(view, before)}
    for side in SIDES:
        found |= scene.linkage(side)
    return Persons(found, scene.control, scene.views[RELEASE].division.km, len(scene.session))


def joined(each: Sequence[Persons | None]) -> Persons | None:
    """Join what was measured in several regions. People who are in two of them count in each."""
    some = [one for one in each if one is not None]
    if not some:
        return None
    rows, names = [one.rows for one in some], dict.fromkeys(name for one in some for name in one.tallies)
    tallies = {name: np.concatenate([one.tallies[name] for one in some if name in one.tallies]) for name in names}
    km = float(np.average([one.place_km for one in some], weights=rows))
    return Persons(tallies, some[0].control, km, sum(rows))


def summary(persons: Persons | None) -> dict[str, Any] | None:
    """Return the figures of an audit, nested by measure: each with its interval and its spread over people."""
    if persons is None:
        return None
    return {"control": persons.control, "place_km": round(persons.place_km, 1)} | nested(_better(persons.tallies))


def nested(tallies: Mapping[Name, Floats]) -> dict[str, Any]:
    """Return the figures of some tallies, by the parts of their names; None of fewer than 20 people."""
    out = dict[str, Any]()
    for name, counts in tallies.items():
        people = int((counts[:, 1] > 0).sum())
        at = out
        for part in name[:-1]:
            at = at.setdefault(part, {})
        at[name[-1]] = measure.interval(counts, step(people)) if people >= FEWEST else None
    return out


def public(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the figures that a manifest may state: no number of people, and nobody who is the most exposed."""
    if found is None:
        return None
    if "mean" in found:
        # The 95th percentile of few people is one of them.
        shown = [name for name in PUBLISHED if name != "p95" or found["people"] >= FEWEST / (1 - WIDE)]
        return {name: found[name] for name in shown if name in found}
    return {name: public(one) if isinstance(one, Mapping) else one for name, one in found.items()}


def _better(tallies: Mapping[Name, Floats]) -> dict[Name, Floats]:
    """Keep the attack on homes that finds more in the release."""

    def right(attack: str) -> float:
        tried = tallies.get(("home", attack, "exact", RELEASE), np.zeros((1, 2))).sum(axis=0)
        return float(tried[0] / max(1.0, tried[1]))

    best = max(("counts", "frequent"), key=right)
    attack = {RELEASE: best, CONTROLS[RELEASE]: best}
    kept = (name for name in tallies if name[0] != "home" or name[1] == attack.get(name[-1], "frequent"))
    return {name if name[0] != "home" else ("home", *name[2:]): tallies[name] for name in kept}


@dataclass(frozen=True)
class Division:
    """The places that an outsider can tell apart: crowds, or squares of which the neighbours fit, too."""

    cell: Longs  # (V+1,) of each venue
    around: tuple[int, ...]
    km: float

    @staticmethod
    def crowds(whole: WholeTable, venues: Venues) -> "Division":
        """Return the crowds of a table, whose venues are the first of all."""
        cell, count = _crowds(whole, venues, np.arange(len(whole.table.venue_ids))), len(venues.lat)
        members = np.maximum(np.bincount(cell[1:], minlength=count), 1)
        lat, lon = (np.bincount(cell[1:], axis[1:], count) / members for axis in (venues.lat, venues.lon))
        away = haversine_km(venues.lat[1:], venues.lon[1:], lat[cell[1:]], lon[cell[1:]])
        widest = np.zeros(count)
        np.maximum.at(widest, cell[1:], away)
        return Division(cell, (0,), 2 * float(np.median(widest[cell[1:]])))

    @staticmethod
    def squares(venues: Venues, km: float) -> "Division":
        lat, lon = venues.lat[1:], venues.lon[1:]
        size = km / DEGREE_KM
        y = np.floor((lat - lat.min()) / size).astype(np.int64) + 1
        x = np.floor((lon - lon.min()) * np.cos(np.radians(np.mean(lat))) / size).astype(np.int64) + 1
        width = int(x.max()) + 2
        around = tuple(int(dy * width + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
        return Division(np.append(0, y * width + x), around, 2 * km)


def _crowds(whole: WholeTable, venues: Venues, number: Longs) -> Longs:
    """Return the crowd of each venue, (V+1,); one that the table lacks is in that of the nearest.

    `number` (T+1,) is that of the table's venues among all.
    """
    cell, known = np.zeros(len(venues.lat), np.int64), number[1:]
    cell[known] = number_of_set(replace(whole.venue_sets, weight=None))[1:]
    lacking = np.setdiff1d(np.arange(1, len(cell)), known)
    if len(lacking):
        tree = scipy.spatial.cKDTree(unit_sphere(venues.lat[known], venues.lon[known]))
        cell[lacking] = cell[known[tree.query(unit_sphere(venues.lat[lacking], venues.lon[lacking]))[1]]]
    return cell


@dataclass(frozen=True)
class View:
    """What a release or a clean file shows, or the control, and what an outsider knows about its rows.

    The control shows the rows of the others, and the outsider knows those of the people who are held out.
    """

    side: str
    shown: Visits
    known: Visits
    division: Division
    asked: Bools  # (P,) people about whom the outsider asks: all, or those who are held out

    @property
    def control(self) -> bool:
        return not self.asked.all()

    @cached_property
    def drawn(self) -> Longs:
        return measure.draws(self.known.person, MOST_PEOPLE, DRAWS, measure.MOST_KNOWN, _generator("draws"))

    @cached_property
    def twin(self) -> Longs:
        """Who stands in for each person, (P,): for those who are held out, the one who fits most that is known."""
        if not self.control:
            return np.arange(len(self.asked))
        matcher, twin = Matcher(self.shown, measure.HOUR_S, self.division.around), np.full(len(self.asked), -1)
        twin[self.known.person[self.drawn[:, 0]]] = measure.twins(matcher, self.known, self.drawn[:, :TWIN_POINTS])
        return twin


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A release next to its clean rows, and who is held out; arrays are (N,) unless stated."""

    views: dict[str, View]
    control: str | None
    shown_time: Longs  # which outsiders may be unable to compare
    venues: Venues
    kinds: dict[str, Bools]  # (V+1,) which venues are homes, and which of each sensitive topic
    session: Longs
    least_session: int
    held: Bools  # (P,)
    in_crowds: bool

    @staticmethod
    def of(pair: TablePair, filters: FilterSettings, chosen: PersonSettings, again: Again) -> "Scene":
        """Match the rows, hold people out, and protect the others again."""
        clean, released, venues = joint_venues(pair)
        person = np.unique(pair.clean.user[pair.clean_row], return_inverse=True)[1].astype(np.int64)
        unit = person if pair.pseudonym is None else np.unique(pair.pseudonym, return_inverse=True)[1].astype(np.int64)
        publisher, settings = publisher_of(pair.manifest), settings_of(pair.manifest) if pair.manifest else None
        held, in_crowds = held_out(int(person.max()) + 1), isinstance(publisher, CrowdDraw)
        if in_crowds and settings is not None:
            whole = prepare(pair.clean, settings, whole_file=False, crowds=pair.crowds)
            division = Division.crowds(whole, venues)
        else:
            km = haversine_km(venues.lat[clean], venues.lon[clean], venues.lat[released], venues.lon[released])
            division = Division.squares(venues, max(0.5, float(np.quantile(km, WIDE))))
        changing = settings is not None and settings.identity.pseudonyms in pseudonyms.CHANGING
        cut = pseudonyms.of_rows(pair.clean, "session", filters.session_gap_s)[pair.clean_row]
        moved = settings is not None and settings.identity.times == "shift"  # then weeks cannot be compared
        time = pair.released.time % WEEK_S if moved else pair.released.time

        def view(venue: Longs, division: Division) -> View:
            cell = division.cell[venue]
            shown = Visits(person, unit, time, cell, cell if in_crowds else venue, venue)
            return View(RELEASE, shown, replace(shown, cell=division.cell[clean]), division, np.ones_like(held))

        true = Visits(person, person, pair.clean.time[pair.clean_row], division.cell[clean], clean, clean)
        views = {RELEASE: view(released, division), CLEAN: View(CLEAN, true, true, division, np.ones_like(held))}
        controls, out = {CLEAN: views[CLEAN]}, held[person]
        if settings is not None and publisher is not None:
            controls[RELEASE] = view(*_protected_again(pair, settings, out, division, venues, again))
        for side, one in controls.items():
            views[CONTROLS[side]] = replace(one, shown=one.shown.take(~out), known=one.known.take(out), asked=held)
        known = set(pair.clean.category_ids)
        names = [*called(pair.clean), *(one for one in called(pair.released) if one[0] not in known)]
        kinds = {
            topic: np.append(False, chosen.marks(topic, names))[venues.category + 1] for topic in ("home", *TOPICS)
        }
        return Scene(
            views=views, control=AGAIN if RELEASE in controls else None, shown_time=pair.released.time, venues=venues,
            kinds=kinds, session=np.unique(unit if changing else cut, return_inverse=True)[1],
            least_session=filters.min_session_length, held=held, in_crowds=in_crowds,
        )  # fmt: skip

    @property
    def people(self) -> int:
        return len(self.held)

    @cached_property
    def topics(self) -> dict[str, tuple[Bools, Bools]]:
        """The venues, (V+1,), of each topic and who visits one, (P,), if anybody does."""
        true, people = self.views[CLEAN].shown, dict[str, tuple[Bools, Bools]]()
        for topic in TOPICS:
            kind = self.kinds[topic]
            people[topic] = kind, np.bincount(true.person, kind[true.venue], self.people) > 0
        return {topic: both for topic, both in people.items() if both[1].any()}

    def measures(self, view: View, before: Mapping[Name, Floats]) -> Iterator[tuple[Name, Floats]]:
        """Yield the tallies of a side or of its control; `before`: those of the release."""
        alike = ("unit", "time", "cell")
        ours, theirs = ([getattr(one.shown, name) for name in alike] for one in (self.views[RELEASE], view))
        if view is self.views[CLEAN] and all(map(np.array_equal, ours, theirs)):
            yield from (found for found in before.items() if found[0][0] == "unicity")
        else:
            yield from self._unicity(view)
            yield from self._gaps(view)
        yield from self.homes(view)
        shown = np.bincount(view.shown.person, minlength=self.people) > 0
        for topic, (kind, truth) in self.topics.items():
            if truth[shown].any():
                sure = measure.likelihood(view.shown, kind, self.people)
                least = measure.flagged(sure, truth, shown)
                some = np.flatnonzero(view.asked & (np.where(view.twin >= 0, sure[view.twin], -np.inf) >= least))
                yield ("sensitive", topic), measure.tally(some, truth[some], self.people)

    def _unicity(self, view: View) -> Iterator[tuple[Name, Floats]]:
        for place, around in (("", ()), ("_place", view.division.around)):
            found = list[Floats]()
            for name, seconds in measure.RESOLUTIONS.items():
                if not found or (view.shown.time % seconds).any():  # else it is as coarse as it was
                    found = measure.unicity(Matcher(view.shown, seconds, around), view.known, view.drawn, self.people)
                yield from ((("unicity", name + place, str(k + 1)), one) for k, one in enumerate(found))

    def _gaps(self, view: View) -> Iterator[tuple[Name, Floats]]:
        visits = self.views[view.side].shown
        visits = visits if view.side == CLEAN else replace(visits, time=self.shown_time)
        out = view.asked[visits.person] & view.control
        for name in ("second", "hour"):
            found = measure.gaps(visits, ~out, measure.RESOLUTIONS[name], measure.MOST_KNOWN - 1, self.people)
            yield from (
                (("unicity", f"gaps_{name}", str(k + 1)), one * view.asked[:, None]) for k, one in enumerate(found)
            )

    def linkage(self, side: str) -> Iterator[tuple[Name, Floats]]:
        """Yield the tallies of later sessions, of all that one id shows in a next release, and of the controls."""
        clean, visits = (self.views[one].shown for one in (CLEAN, side))
        one_each = np.array_equal(visits.unit, visits.person)
        for test, what, group, cuts, least in (
            ("linkage", "sessions", self.session, (2,), self.least_session),
            ("next_release", "ids", visits.unit, CUTS, 1),
        ):
            parts = []
            for quarters in cuts:
                later = measure.later(clean.person, self.session, clean.time, quarters)
                tested = np.flatnonzero(np.bincount(group, later) >= least)
                tested = _generator("sessions").permutation(tested)[:MOST_GROUPS]
                parts.append(Parts(visits, group, later, tested, self.held, one_each and what == "ids"))
            if any(len(one.tested) for one in parts):
                for end, tallies in zip((side, CONTROLS[side]), measure.linkage(what, parts, self.people), strict=True):
                    yield from (((test, name, end), counts) for name, counts in tallies.items())

    def homes(self, view: View) -> Iterator[tuple[Name, Floats]]:
        """Yield the tallies of homes that are found."""
        true, often = measure.most_frequent(*self._at_home(self.views[CLEAN].shown), self.people)
        at_home, eligible = self._at_home(view.shown)
        who = np.flatnonzero((often >= HOME_VISITS) & view.asked)
        guesses = {"frequent": measure.most_frequent(at_home, eligible, self.people)[0]}
        if self.in_crowds and view.side == RELEASE:
            guesses["counts"] = measure.by_counts(at_home, eligible, view.division.cell, self.people)
        for attack, venue in guesses.items():
            guess = np.where(view.twin[who] >= 0, venue[view.twin[who]], 0)
            lat, lon, home = self.venues.lat, self.venues.lon, true[who]
            km = haversine_km(lat[guess], lon[guess], lat[home], lon[home])
            for name, right in (("exact", guess == home), ("within_1km", (guess > 0) & (km <= NEAR_KM))):
                yield ("home", attack, name), measure.tally(who, right, self.people)

    def _at_home(self, visits: Visits) -> tuple[Visits, Bools]:
        """Return the visits among which homes are looked for, and the venues: any at night if no category is named."""
        if (named := self.kinds["home"]).any():
            return visits, named
        return visits.take(measure.night(visits.time)), np.arange(len(named)) > 0


def held_out(people: int) -> Bools:
    """Mark the people, (P,), who serve as control."""
    held, out = np.zeros(people, bool), max(round(HELD_OUT * people), min(2 * FEWEST, people // 2))
    held[_generator("held out").permutation(people)[:out]] = True  # of too few, no figure is shown
    return held


def _generator(stage: str) -> np.random.Generator:
    return Seed(0).generator("persons", stage)


def _protected_again(
    pair: TablePair, settings: Publication, out: Bools, division: Division, venues: Venues, again: Again
) -> tuple[Longs, Division]:
    """Return the venue that each row of the others gets, (N,), 0 for the held-out, and the places of that release."""
    rows, clean = pair.clean_row[~out], pair.clean
    table = replace(
        clean, **{name: getattr(clean, name)[rows] for name in ("user", "venue", "category", "lat", "lon", "time")},
        crossing=None if clean.crossing is None else clean.crossing[rows],
    )  # fmt: skip
    back, crowds = np.arange(len(clean.venue_ids)), pair.crowds
    if crowds is None:
        table, back = _without_unused(table)
    else:  # a series keeps its crowds, whoever leaves
        crowds = replace(crowds, repeated=np.zeros(len(rows), bool))
    whole = prepare(table, settings, whole_file=False, crowds=crowds)
    shown = np.zeros(len(out), np.int64)
    shown[~out] = back[again.drawn(whole, settings)]
    if crowds is not None or not isinstance(settings.method, CrowdDraw):
        return shown, division
    return shown, replace(division, cell=_crowds(whole, venues, back))


def _without_unused(table: Checkins) -> tuple[Checkins, Longs]:
    """Return a table without the users, venues and categories that no row has; and what each venue was before."""
    fields = dict[str, Any]()
    for field in ("user", "venue", "category"):
        raw, ids = getattr(table, field), getattr(table, f"{field}_ids")
        fields[field], fields[f"{field}_ids"] = renumber(raw, np.unique(raw), ids[np.unique(raw)])
    fields["venue"], fields["venue_ids"] = fields["venue"] + np.int32(1), np.append("", fields["venue_ids"])
    back = np.zeros(len(fields["venue_ids"]), np.int64)
    back[fields["venue"]] = table.venue
    return replace(table, **fields, places=None), back
