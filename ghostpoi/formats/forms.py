"""The form of texts: what can differ between two ways to write one value, such as padding, quotes or 1 and 1.0."""

import re
import unicodedata
from decimal import Context, Decimal

import polars as pl

NUMBER = r"^[+-]?(?:\d+(?:\.\d+)?|[1-9](?:\.\d+)?[eE][+-]?\d{1,2})$"
EXACT = Context(prec=1000)  # more digits than a number that is read
AROUND = ' "\t\r\n\x1d'
OF_TEXT = (rf"^([{AROUND}]*)", rf"([{AROUND}]*)$")
OF_NUMBERS = (  # a sign, zeros before and after the digits that count, and an exponent that the value does not need
    r"^(\+|-0[.0]*$)", r"^[+-]?(0+)\d", r"^[+-]?\d+\.\d*?(0+)$", r"([eE][+-]?)\d+$",
)  # fmt: skip


def form_of(raw: pl.Series) -> pl.Series:
    """Return what the writing of each value adds to the value, as a text, (N,); equal forms have equal texts.

    A field without a value has the usual form.
    """
    text = pl.col("t").fill_null("")
    core = text.str.strip_chars(AROUND)
    found = [text.str.extract(one) for one in OF_TEXT]
    number = core.str.contains(NUMBER)
    numeric = number & (number.filter(text != "").mean() > 0.5)  # a few words may look like numbers
    found += [pl.when(numeric).then(core.str.extract(one)) for one in OF_NUMBERS]
    found.append((core != core.str.normalize("NFC")).cast(pl.String))
    frame = raw.cast(pl.String).alias("t").to_frame()
    form = frame.select(pl.concat_str([one.fill_null("") for one in found], separator="\x1f")).to_series()
    filled = (raw.is_not_null() & (raw.cast(pl.String) != "")).fill_null(False)
    usual = form.filter(filled).mode().sort()
    return form.zip_with(filled, usual.head(1).extend_constant("", 1).head(1).new_from_index(0, len(form)))


def plain(texts: pl.Series) -> pl.Series:
    """Return texts in one form: without spaces around them, numbers in their shortest form."""
    distinct = texts.unique().drop_nulls()
    return texts.replace_strict(distinct, [shortest(text) for text in distinct.to_list()], return_dtype=pl.String)


def shortest(text: str) -> str:
    """Return a text without spaces around it, and a number in its shortest form."""
    text = unicodedata.normalize("NFC", text.strip(AROUND.replace('"', "")))
    if not re.match(NUMBER, text):
        return text
    number = format(Decimal(text).normalize(EXACT), "f")
    return "0" if number == "-0" else number
