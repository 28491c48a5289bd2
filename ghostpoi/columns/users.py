"""Test what a kept column reveals about users: of people, by what its values are, and of those behind pseudonyms.

Columns with emails, phone numbers, names, handles, ids of devices, cards and plates, or IPs name people. A rule looks
at values, some only in columns whose names say what they hold. Like every such list, it misses what it does not know.

Rows of one user under two pseudonyms should look like rows of two users. For each pseudonym, the next pseudonym of the
same user is compared with a pseudonym of another user that begins about the same time, so that both have equal values
in columns that follow from the time. A column identifies users if its values agree, or are close, more often within
one user.

Filters and vectors of visits are recognised by their likeness: users with similar values of such a column visit similar
venues. A value is taken apart into bits, numbers or words, and two users are similar if these agree. The control is
the same values, shuffled among the users.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from ghostpoi.columns.dependence import FEWEST, TOKEN, codes, tokens, value_codes
from ghostpoi.columns.related import ERRORS, TELLS, Finding, RelatedVenues, beyond_chance, refused, strongest
from ghostpoi.columns.traces import numbers, readings, text_of
from ghostpoi.data.checkins import Bools, Floats, Longs
from ghostpoi.errors import InputError
from ghostpoi.formats import Columns
from ghostpoi.options import option

SAMPLE = 2000  # distinct values
RECOGNISED = 3  # values that a rule must recognise
NAMES = """
    aaron abdul adam ahmed alan albert alex alexander alexandra ali alice amanda amy ana andrea andrew angela anita
    anna anne antonio barbara ben benjamin brian camille carl carla carlos carol caroline catherine charles charlotte
    chen chloe chris christian christine claire claudia daniel david deborah denise diana diego dmitri dorothy edward
    elena elizabeth emily emma eric erik eva evelyn fatima felix fernando francesco frank gabriel george giulia grace
    hannah hans harry hassan heather helen henry hiroshi ibrahim ingrid irene isabel ivan jack jacob james jane
    jason jean jennifer jessica jesus joan john jonas jose joseph juan julia julie karen karl kate kevin kim klaus
    laura lauren lea leo leon lina linda lisa louis louise lucas lucia luis lukas maria mariam marie mark marta martin
    mary matthew max maximilian mia michael miguel mohamed mohammed monica natalia nathan nicole noah nina olga oliver
    olivia omar oscar otto pablo patricia patrick paul pedro peter petra philip pierre priya rachel raj rebecca
    richard robert rosa ruth ryan samuel sandra sara sarah sergei simon sofia sophia sophie stefan stephen steven susan
    tanaka teresa thomas tim tom ursula valentina vera victor vladimir walter wei wilhelm william yuki yusuf zoe
    """
GIVEN_NAMES, WORD = frozenset(NAMES.split()), re.compile(r"[a-z]{2,}")


def _is_card(text: str) -> bool:
    """Return whether the last digit checks the others (Luhn), as in the numbers of cards and of phones (IMEI)."""
    digits = [int(c) for c in reversed(re.sub(r"\D", "", text))]
    doubled = (sum(divmod(2 * d, 10)) for d in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


def _is_account(text: str) -> bool:
    """Return whether an IBAN has the right check digits."""
    plain = text.replace(" ", "").upper()
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def _is_ip(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _is_phone(text: str) -> bool:
    return 7 <= sum(map(str.isdigit, text)) <= 15


@dataclass(frozen=True)
class Rule:
    """What the values of a column may be. `named` is what its name says, in small letters and digits."""

    what: str
    value: str
    named: str = ""
    check: Callable[[str], bool] = bool
    share: float = 0.5  # of distinct values
    anywhere: bool = False  # in a longer text

    def recognises(self, name: str, values: Sequence[str]) -> bool:
        """Return whether a column with this name and these distinct values is of the kind."""
        if self.named and not re.search(self.named, re.sub(r"[^a-z0-9]", "", name.lower())):
            return False
        pattern = re.compile(self.value, re.IGNORECASE)
        match = pattern.search if self.anywhere else pattern.fullmatch
        hits = sum(1 for text in values if (found := match(text)) and self.check(found[0]))
        return hits >= RECOGNISED and hits >= self.share * len(values)


PERSON = r"(first|given|fore|last|family|sur|full|middle|person|customer|contact|passenger|rider|driver|patient)name"
DEVICE = r"device|idfa|gaid|aaid|advertisingid|adid$|imei|imsi|iccid|udid|androidid|serialn|cookie|fingerprint"
CONTACTS = (
    Rule("email addresses", r"[\w.+%-]+@[\w-]+(\.[\w-]+)+", share=0.02, anywhere=True),
    Rule("phone numbers", r"(?<![\w.+-])\+[1-9][\d ().-]{6,17}\d(?![\w.])", check=_is_phone, share=0.05, anywhere=True),
    Rule("phone numbers", r"(1[ .-])?\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}"),
    Rule("phone numbers", r"[\d +().\/-]+", r"phone|mobile|msisdn|^tel|cell(number|no|$)|^fax", _is_phone),
)
RULES = (
    *CONTACTS,
    Rule("handles", r"@\w{2,30}"),
    Rule("handles", r"[\w.@-]{3,30}", r"handle$|user_?name|screenname|nickname|twitter|instagram|telegram|^login"),
    Rule("IP addresses", r"[\d.]{7,15}|[0-9a-f:.]*:[0-9a-f:.]*", check=_is_ip),
    Rule("device addresses", r"([0-9a-f]{2}[:-]){5}[0-9a-f]{2}"),
    Rule("ids of devices", r"(?=.*\d)[\w:-]{8,64}", DEVICE),
    Rule("numbers of cards or phones", r"\d{13,19}|(\d{4}[ -]){3}\d{1,7}", check=_is_card, share=0.8),
    Rule("bank accounts", r"[a-z]{2}\d\d ?([a-z0-9]{4} ?){2,7}[a-z0-9]{0,4}", check=_is_account),
    Rule("social security numbers", r"\d{3}-\d\d-\d{4}"),
    Rule("number plates", r"(?=.*\d)[a-z0-9 -]{4,11}", r"plate|vehiclereg|registrationn|kennzeichen|matricula"),
    Rule("names of people", r"[^\W\d_][^\d_]{1,59}", PERSON),
    Rule(
        "names of people",
        r"[^\W\d_][^\d_]{1,59}",
        check=lambda text: not GIVEN_NAMES.isdisjoint(WORD.findall(text.lower())),
        share=0.3,
    ),
)


def identifier(column: pl.Series, rules: Sequence[Rule] = RULES) -> str | None:
    """Return what a column holds that identifies people, or None."""
    if column.dtype.is_nested() or column.dtype.is_temporal() or column.dtype in (pl.Binary, pl.Object, pl.Boolean):
        return None
    distinct = column.drop_nulls().unique(maintain_order=True).head(SAMPLE).to_list()
    texts = [str(one).removesuffix(".0") if isinstance(one, float) else text_of(one) for one in distinct]
    values = [text.strip() for text in texts if text.strip()]
    return next((rule.what for rule in rules if rule.recognises(column.name, values)), None)


def check_identifiers(rows: Columns, names: Sequence[str], path: Path | str, keep: Sequence[str]) -> Iterator[str]:
    """Yield warnings about kept columns that identify people; refuse those that are not kept on request."""
    found = {name: what for name in names if (what := identifier(rows.get_column(name).alias(name)))}
    if wrong := {name: f"holds {what}" for name, what in found.items() if name not in keep}:
        raise refused(path, wrong, ", which identify people", "identify people")
    yield from (f"the column {name!r}, which {option('keep')} names, holds {what}" for name, what in found.items())


def check_user_ids(rows: Columns, mapping: Mapping[str, str], path: Path | str, keep: Sequence[str]) -> None:
    """Refuse to release email addresses and phone numbers as user ids."""
    name = mapping["user"]
    if name not in keep and (what := identifier(rows.get_column(name).alias(name), CONTACTS)):
        raise InputError(
            f"{path}: the user ids in the column {name!r} are {what}, which identify people; replace them by random "
            f"ids with {option('pseudonyms', 'file')}, or keep them at your own risk with "
            f"{option('keep', name, shown=quote)}"
        )


AGREE = 0.02  # largest allowed excess of pairs of a user that agree
CLOSER = 0.05  # largest allowed excess of pairs of a user that are closer than the control
LONG_ID = 4  # an id of at least so many characters is searched anywhere in a text
STEPS = 8  # largest distance of a pseudonym from its control, in the order of time
DRAWS = 8  # rows of each pseudonym
FEWEST_OF_VALUE = 5  # pairs with a value; fewer prove nothing about it
CLEARLY = 0.5  # excess of pairs of a user that agree above which a value counts as identifying
OWN = 0.5  # values per user above which a column is another id of the user
ROWS = 4000  # in which ids are searched
LINKS = "links the pseudonyms of a user"
GAPS = {"previous": "the time since the user's previous pseudonym", "next": "the time until the user's next pseudonym"}

# Of the test by likeness:
USERS = 400  # with the most rows
FEWEST_USERS = 40
SHUFFLES = 20
ALIKE = 0.1  # largest allowed correlation of the two likenesses
SURE = 6.0  # standard deviations of the control
FEW = 4  # users with the same value, on average
PARTS = 3  # fewer do not describe visits
HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{8,})")
BITS = re.compile(r"[01]{8,}")
NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")


class UserTests:
    """The tests of one file. `pseudonym` (N,) numbers the pseudonyms of its rows."""

    def __init__(self, related: RelatedVenues, pseudonym: Longs) -> None:
        self.related, self.pseudonym = related, pseudonym
        self.random, self.adjacent = _pairs(related, pseudonym)

    def finding(self, kind: str, column: pl.Series, offsets: Longs | None) -> Finding | None:
        """Return what a column of this kind reveals about users, or None. `offsets` are those of a column of times."""
        if kind == "constant":
            return None
        if int(self.pseudonym.max()) < len(self.related.table.user_ids):  # nobody has several pseudonyms
            own = kind == "user" and column.n_unique() > OWN * len(self.related.table.user_ids)
            return self._names_user(column) or (Finding(1.0, "has a value of its own for most users") if own else None)
        if kind == "user":
            return Finding(1.0, "is the same in all rows of a user")
        if found := self._gap(column):
            return found
        if kind == "time":
            column = pl.Series(np.zeros(len(column), np.int64) if offsets is None else offsets)
            found = self.agreement([value_codes(column)])
        else:
            parts = tokens(column) if column.dtype == pl.String else ()
            found = self._names_user(column) or self.agreement([*codes(column), *parts])
            found = found or self._closeness(column)
        rare = self.rare_values(column)
        return found or (rare if rare and rare.share > TELLS else None)

    def agreement(self, numberings: Iterable[Longs]) -> Finding | None:
        """Return how much more often values agree within a user, for the numbering (N,) where it is clearest."""
        one, same, other = self.random
        agrees = ((code[one] == code[same]).astype(float) - (code[one] == code[other]) for code in numberings)
        return strongest([Finding(_gain(each, AGREE), LINKS, "more pairs agree") for each in agrees])

    def rare_values(self, column: pl.Series) -> Finding | None:
        """Return the share of rows with a value that few users have and that links their pseudonyms, or None."""
        code = value_codes(column)
        one, same, other = code[self.random][:, :, 0]
        counts = np.maximum(np.bincount(one, minlength=int(code.max()) + 1), 1)
        within, chance = (np.bincount(one[one == two], minlength=len(counts)) / counts for two in (same, other))
        links = (counts >= FEWEST_OF_VALUE) & (within - chance > CLEARLY)
        share = float(links[code].mean())
        return Finding(share, "has rare values that link the pseudonyms of a user") if share else None

    def _closeness(self, column: pl.Series) -> Finding | None:
        """Compare differences of numbers: the values of a counter never agree, but are close."""
        value = numbers(column)
        one, same, other = (value[rows] for rows in self.random)
        close = _gain(np.sign(np.abs(one - other) - np.abs(one - same)), CLOSER)
        last, first, control = (value[rows] for rows in self.adjacent)
        steps, counts = np.unique((first - last)[np.isfinite(first - last)], return_counts=True)
        usual = steps[counts.argmax()] if len(steps) else np.nan
        counted = _gain((first - last == usual).astype(float) - (control - last == usual), AGREE)
        found = {"more pairs are close": close, "more pairs are in sequence": counted}
        return strongest([Finding(gain, LINKS, what) for what, gain in found.items()])

    def _gap(self, column: pl.Series) -> Finding | None:
        """Look for the time between rows with different pseudonyms."""
        value = numbers(column)
        for name, other in (("previous", self.related.previous_row), ("next", self.related.next_row)):
            rows = np.flatnonzero((other >= 0) & (self.pseudonym != self.pseudonym[other]) & np.isfinite(value))
            pause = self.related.pauses[name][rows]
            hits = [np.abs(value[rows] * unit - pause) < max(unit, 1) for unit in (1e-3, 1, 60, 3600)]
            share = max(float(hit.mean()) for hit in hits) if len(rows) else 0.0
            if share > 0.5:
                return Finding(share, f"holds {GAPS[name]}")
        return None

    def _names_user(self, column: pl.Series) -> Finding | None:
        """Look for the user id in texts."""
        table = self.related.table
        rows = np.random.default_rng(0).permutation(len(table))[:ROWS]
        texts = [readings(value) for value in column.gather(rows).to_list()]
        words = [set(re.findall(TOKEN, text)) for text in texts]

        def named(rows: Longs) -> Bools:
            each = zip(table.user_ids[table.user[rows]], words, texts, strict=True)
            return np.array([i in own or (len(i) >= LONG_ID and i in text) for i, own, text in each])

        share = beyond_chance(named(rows), named(np.roll(rows, len(rows) // 2)))
        return Finding(share, "contains the user id") if share else None


def _pairs(related: RelatedVenues, pseudonym: Longs) -> tuple[Longs, Longs]:
    """Return rows under a pseudonym, the same user's next pseudonym, and another user's of that time.

    (3, n, DRAWS) are any rows; (3, n) are the last row of the first pseudonym and the first rows of the others.
    """
    table, draw = related.table, np.random.default_rng(0)
    by_time = related.order[np.argsort(pseudonym[related.order], kind="stable")]
    size = np.bincount(pseudonym)
    begin = np.cumsum(size) - size  # of each pseudonym in `by_time`
    first, last = by_time[begin], by_time[begin + size - 1]
    user, time = table.user[first], table.time[first]
    order = np.lexsort((time, user))
    follows = np.flatnonzero(np.diff(user[order]) == 0)
    one, same = order[follows], order[follows + 1]
    in_time = np.argsort(time[same], kind="stable")  # only pseudonyms that follow another may serve as controls
    one, same = one[in_time], same[in_time]
    here, side = np.arange(len(same)), draw.choice((-1, 1), len(same))
    other = np.full(len(same), -1)
    for step in range(1, STEPS + 1):
        for direction in (side, -side):
            at = here + direction * step
            at = np.where((at >= 0) & (at < len(same)), at, here)
            other = np.where((other < 0) & (user[same[at]] != user[same]), same[at], other)
    which = np.stack([one, same, other])[:, other >= 0]  # (3, n)
    place = draw.random((*which.shape, DRAWS)) * size[which][..., None]
    adjacent = np.stack([last[which[0]], first[which[1]], first[which[2]]])
    return by_time[begin[which][..., None] + place.astype(np.int64)], adjacent


def _gain(difference: Floats, least: float) -> float:
    """Return the mean of a difference per pair, (n, ...), NaN counted as none; 0 if it is not clearly above `least`."""
    if len(difference) < FEWEST:
        return 0.0
    each = np.nan_to_num(difference).reshape(len(difference), -1).mean(axis=1)
    gain, error = float(each.mean()), float(each.std() / np.sqrt(len(each)))
    return gain if gain > max(least, ERRORS * error) else 0.0


def likeness(values: pl.Series, related: RelatedVenues) -> Finding | None:
    """Return how well the likeness of values, one per user, predicts that of the users' visits; None if it does not."""
    table = related.table
    rows = np.bincount(table.user, minlength=len(values))
    some = np.argsort(-rows, kind="stable")[:USERS]
    parts = _parts([text_of(value) for value in values.gather(some).to_list()])
    if parts is None or len(some) < FEWEST_USERS:
        return None
    pairs = np.triu_indices(len(some), 1)
    of_values, draw, found = _alike(parts), np.random.default_rng(0), 0.0
    for place in (table.venue, table.category):
        visits = csr_matrix((np.ones(len(table)), (table.user, place))).toarray()[some]
        visits /= visits.sum(axis=1, keepdims=True)
        of_visits = _alike(np.sqrt(visits))[pairs]
        if not (np.ptp(of_values[pairs]) and np.ptp(of_visits)):  # as all users are where no categories are known
            continue
        orders = [np.arange(len(some)), *(draw.permutation(len(some)) for _ in range(SHUFFLES))]
        first, *control = [float(np.corrcoef(of_values[np.ix_(o, o)][pairs], of_visits)[0, 1]) for o in orders]
        if first > max(ALIKE, SURE * float(np.std(control))):
            found = max(found, first)
    return Finding(found, "is similar for users who visit the same venues", "correlation") if found else None


def _parts(texts: list[str]) -> Floats | None:
    """Take texts apart into bits, numbers or words, (users, parts); None if they have too few."""
    if all(BITS.fullmatch(text) for text in texts) and len({len(text) for text in texts}) == 1:
        return np.array([[int(bit) for bit in text] for text in texts], float)
    digits = [found[1] for text in texts if (found := HEX.fullmatch(text))]
    if len(digits) == len(texts) and len({len(text) for text in texts}) == 1:
        data = [bytes.fromhex(text.zfill(len(text) + len(text) % 2)) for text in digits]
        return np.unpackbits(np.array([list(one) for one in data], np.uint8), axis=1).astype(float)
    each = [NUMBERS.findall(text) for text in texts]
    if len({len(one) for one in each}) == 1 and len(each[0]) >= PARTS:
        return np.array(each, float)
    if len(set(texts)) <= len(texts) / FEW:
        return np.eye(len(texts))[np.unique(texts, return_inverse=True)[1]]
    words = pl.Series([list(dict.fromkeys(re.findall(r"\w+", text))) for text in texts], dtype=pl.List(pl.String))
    if not words.list.len().mean() or words.list.len().mean() < PARTS:  # type: ignore[operator]
        return None
    user = np.repeat(np.arange(len(texts)), words.list.len().to_numpy())
    word = words.explode().cast(pl.Categorical).to_physical().to_numpy()[: len(user)]
    return np.asarray(csr_matrix((np.ones(len(user)), (user, word))).toarray())


def _alike(parts: Floats) -> Floats:
    """Return the correlation of each two rows, after the usual value of each part is taken away, (n, n)."""
    centred = parts - parts.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    centred = centred / np.where(length > 0, length, 1)
    return centred @ centred.T
