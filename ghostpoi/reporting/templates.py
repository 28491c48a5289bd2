"""Templates and texts of the report, and text from the data made harmless for the place it goes to."""

import html
import json
import math
import re
import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from jinja2 import Template

LONGEST = 80  # characters of a name
# Control characters, and those that reverse the direction of the text around them.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # no encoding can write one


def asset(name: str) -> str:
    """Read one of the report's own files."""
    return (resources.files("ghostpoi.reporting") / "assets" / name).read_text("utf-8")


TEXTS: dict[str, Any] = tomllib.loads(asset("texts.toml"))


def template(name: str, filters: dict[str, Any], **options: Any) -> "Template":
    """A template with these filters and options of Jinja."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow, and most of this file does without

    loader = PackageLoader("ghostpoi.reporting", "assets")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options)
    environment.filters |= {"count": "{:,}".format, **filters}
    return environment.get_template(name)


def plain(text: object, longest: int = LONGEST) -> str:
    """A name from the data as one short line."""
    line = " ".join(LONE_SURROGATE.sub("\ufffd", UNSEEN.sub(" ", str(text))).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def label(text: object, longest: int = LONGEST) -> str:
    """The same for a chart: plotly interprets some tags and entities in its texts."""
    return html.escape(plain(text, longest), quote=False)


def embedded(value: Any) -> Markup:
    """JSON that can stand inside a script element and cannot end it."""
    text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _finite(value: Any) -> Any:
    """Replace what JSON cannot write by None, which is a gap in a chart."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list | tuple) else value
