"""The dataset card: a release in plain words, in the form that the Hugging Face hub reads.

The prose is in assets/card.md. Every value that the template prints is escaped unless a filter has done so: no column
name can end a table, open a link or add a line to the front matter.
"""

import json
import re

from markupsafe import Markup

from ghostpoi.reporting import labels
from ghostpoi.reporting.column_descriptions import DataFile, describe
from ghostpoi.reporting.headline import headline
from ghostpoi.reporting.release_view import NOTHING_SAID, About, ReleaseView
from ghostpoi.reporting.templates import TEXTS, template

PLAIN = re.compile(r"\w(?:[\w .,/()+-]*[\w)])?")
SPECIAL = re.compile(r"[\\`*_{}\[\]<>|&#~$^!@]")


def card(release: ReleaseView, about: About = NOTHING_SAID) -> str:
    """Return the card of a release as Markdown."""
    file, audit = describe(release), release.audit
    filters = {
        "named": named, "quoted": quoted, "share": lambda value: labels.share(value, 1),
        "with_spread": labels.with_spread, "seeds_text": labels.seeds_text, "victim_label": labels.victim_label,
    }  # fmt: skip
    # `finalize` escapes for Markdown; autoescape would escape for HTML.
    made = template("card.md", filters, autoescape=False, finalize=prose, keep_trailing_newline=True)
    return made.render(
        texts=TEXTS, about=about, m=release.manifest, file=file, audit=audit, row_counts=release.row_counts,
        summary=release.summary, disclosure=release.disclosure, citations=release.citations,
        pseudonyms=release.pseudonyms, genuine=release.genuine, clean_rows=release.clean_rows, limits=release.limits,
        outcomes=release.outcomes, config=_config(file), headline=headline(audit) if audit else "",
        utility=[u for u in release.utility_measures if audit and u.key in audit.utility.get(u.group, {})],
        size=next(name for name, limit in TEXTS["sizes"].items() if file.rows < limit),
    )  # fmt: skip


def _config(file: DataFile) -> dict[str, str]:
    """How the hub loads the file."""
    config = {"data_files": f"{file.path.name}/**" if file.parts else file.path.name}
    if file.delimiter and file.path.suffix.lower() in (".csv", ".tsv"):  # the hub reads these as tables
        config |= {"sep": file.delimiter} if file.delimiter != "," else {}
        config |= {"encoding": file.encoding} if file.encoding != "utf-8" else {}
    return config


def named(value: object) -> Markup:
    """A name from the data: as code where that is safe, else with every sign spelled as an entity."""
    text = _printable(value)
    if PLAIN.fullmatch(text):
        return Markup(f"`{text}`")
    spelled = "".join(c if c.isalnum() or c == " " or not c.isascii() else f"&#{ord(c)};" for c in text)
    return Markup(spelled or "(no name)")


def prose(value: object) -> Markup:
    """Text with the signs that mean something to Markdown spelled as entities."""
    if isinstance(value, Markup):
        return value
    return Markup(SPECIAL.sub(lambda sign: f"&#{ord(sign.group())};", _printable(value)))


def quoted(value: object) -> Markup:
    """A YAML string: JSON's, with nothing in it that ends a line or turns the writing direction."""
    text = json.dumps(str(value), ensure_ascii=False)
    return Markup("".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text))


def _printable(value: object) -> str:
    return "".join(c if c.isprintable() else " " for c in str(value)).strip()
