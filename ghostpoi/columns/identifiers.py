"""Recognise columns that name people: emails, phone numbers, names, handles, ids of devices, cards and plates, IPs.

A rule looks at values, some only in columns whose names say what they hold. Like every such list, it misses what it
does not know; other tests look for columns that are constant per user.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import polars as pl

from ghostpoi.columns.traces import text_of
from ghostpoi.errors import InputError
from ghostpoi.formats import Columns
from ghostpoi.options import option

SAMPLE = 2000  # distinct values
FEWEST = 3  # values that a rule must recognise
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
GIVEN_NAMES = frozenset(NAMES.split())


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


def _has_given_name(text: str) -> bool:
    return not GIVEN_NAMES.isdisjoint(re.findall(r"[a-z]{2,}", text.lower()))


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
        return hits >= FEWEST and hits >= self.share * len(values)


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
    Rule("names of people", r"[^\W\d_][^\d_]{1,59}", check=_has_given_name, share=0.3),
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
    if refused := {name: what for name, what in found.items() if name not in keep}:
        drops, keeps = (option(flag, *refused, shown=quote) for flag in ("drop", "keep"))
        listed = ", ".join(f"{name!r} holds {what}" for name, what in refused.items())
        one = len(refused) == 1
        what, them = (f"the column {listed}, which identify people", "it") if one else (
            f"{len(refused)} columns identify people: {listed}", "them"
        )  # fmt: skip
        raise InputError(f"{path}: {what}; leave {them} out with {drops}, or keep {them} at your own risk with {keeps}")
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
