"""Columns that name people are recognised by their values, some by their names too."""

import polars as pl
import pytest

from ghostpoi.columns.users import CONTACTS, identifier

LIKE_PEOPLE = {
    "email addresses": [
        ("mail", ["ada@example.org", "b.c+x@mail.example.co.uk", "d_e@x.io"]),
        ("note", ["write to ada@example.org", "lunch", "call bob@x.io", "eve@x.io!"]),
    ],
    "phone numbers": [
        ("contact", ["+44 20 7946 0958", "+1 (212) 555-0100", "+49 30 901820"]),
        ("contact", ["(212) 555-0100", "212.555.0101", "1 212-555-0199"]),
        ("Phone", ["2125550100", "2125550101", "2125550102"]),
        ("cell_number", ["020 7946 0958", "020 7946 0959", "020 7946 0951"]),
    ],
    "handles": [("who", ["@ada", "@bob_b", "@eve99"]), ("user_name", ["ada1", "bob.b", "eve-e"])],
    "IP addresses": [
        ("host", ["192.168.0.1", "8.8.8.8", "203.0.113.9"]),
        ("host", ["2001:db8::1", "fe80::1ff:fe23:4567:890a", "::1"]),
    ],
    "device addresses": [("station", ["00:1A:2b:3c:4d:5e", "aa-bb-cc-dd-ee-ff", "00:00:5e:00:53:af"])],
    "ids of devices": [
        ("idfa", ["6d92078a-8246-4ba4-ae5b-76104861e7dc", "6d92078a-8246-4ba4-ae5b-76104861e7dd", "3f2504e0-4f89-0"]),
    ],
    "numbers of cards or phones": [
        ("paid_with", ["4111 1111 1111 1111", "5500-0000-0000-0004", "340000000000009"]),
        ("number", ["490154203237518", "356938035643809", "352099001761481"]),  # IMEI
    ],
    "bank accounts": [
        ("account", ["GB82 WEST 1234 5698 7654 32", "DE89370400440532013000", "FR1420041010050500013M02606"]),
    ],
    "social security numbers": [("code", ["078-05-1120", "219-09-9999", "457-55-5462"])],
    "number plates": [("licence_plate", ["B AB 1234", "LR-33-TEE", "7ABC123"])],
    "names of people": [
        ("surname", ["Lovelace", "O'Brien", "Müller-Lüdenscheidt"]),
        ("booked_by", ["Ada Lovelace", "Maria Rossi", "Peter Jones", "John"]),
    ],
}  # fmt: skip
HARMLESS = {
    "mood": ["good", "bad", "fine", "so so"],
    "phone": ["ios", "android", "other"],
    "device": ["phone 1", "phone 7", "tablet"],
    "when": ["2012-04-03 18:00:09", "2012-04-03 18:00:10", "2012-04-03T18:00:11Z"],
    "epoch": ["1333476009", "1333476010", "1333476077"],
    "millis": [str(1333476009000 + 7919 * n) for n in range(40)],
    "time": ["18:00:09", "18:01:09", "19:00:09"],
    "version": ["1.2.3", "1.2.4", "10.0.1"],
    "checkin": ["3fd66200f964a520f4e41ee3", "4b5bf4cef964a520a4e41ee3", "50e41ee33fd66200f964a520"],
    "gender": ["female", "male", "other"],
    "street": ["5th Ave", "Main St", "Elm St"],
    "price": ["10.50", "7.20", "3.99"],
    "empty": ["", " ", ""],
    "zone": ["America/New_York", "Europe/Paris", "Asia/Tokyo"],
}


@pytest.mark.parametrize(
    ("what", "name", "values"), [(w, n, v) for w, cases in LIKE_PEOPLE.items() for n, v in cases]
)  # fmt: skip
def test_identifiers_are_recognised(what: str, name: str, values: list[str]) -> None:
    assert identifier(pl.Series(name, values)) == what
    quoted = [f'"{text}"' for text in values]
    assert identifier(pl.Series(name, quoted * 3, dtype=pl.Categorical)) == what


@pytest.mark.parametrize("name", HARMLESS)
def test_other_columns_are_not(name: str) -> None:
    assert identifier(pl.Series(name, HARMLESS[name])) is None


def test_numbers_are_read_as_text() -> None:
    assert identifier(pl.Series("mobile", [2125550100, 2125550101, 2125550102])) == "phone numbers"
    assert identifier(pl.Series("card", [4111111111111111.0, 5500000000000004.0, 340000000000009.0])) is not None
    assert identifier(pl.Series("stars", [[1], [2]])) is None


def test_of_user_ids_only_ways_to_reach_somebody_are_refused() -> None:
    assert identifier(pl.Series("user", ["ada", "bob", "eve"]), CONTACTS) is None
    assert identifier(pl.Series("user", ["@ada", "@bob", "@eve"]), CONTACTS) is None
    assert identifier(pl.Series("user", ["a@x.io", "b@x.io", "c@x.io"]), CONTACTS) == "email addresses"
