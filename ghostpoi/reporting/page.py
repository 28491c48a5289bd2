"""The pages about a release: what the publisher asked for, and where they are written."""

from dataclasses import dataclass, field
from glob import escape
from pathlib import Path

from ghostpoi.errors import InputError
from ghostpoi.files import remove_partial, replacing
from ghostpoi.formats import Reading, Source
from ghostpoi.formats.source import SizeLimit
from ghostpoi.reporting.card import card
from ghostpoi.reporting.croissant import croissant
from ghostpoi.reporting.page_data import read_page_data
from ghostpoi.reporting.release_view import NOTHING_SAID, About, is_file

PAGE, CARD, CROISSANT = "report.html", "card.md", "croissant.json"


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """What the publisher asked for."""

    release: Path  # the folder that protect wrote, or another tool's file
    compare: tuple[Path, ...] = ()
    private: Path | None = None
    with_clean: bool = False
    output: Path | None = None
    mapping: dict[str, str] = field(default_factory=dict)  # columns of other tools' files
    audits: tuple[Path, ...] = ()  # of other tools' files
    about: About = NOTHING_SAID
    reading: Reading = field(default_factory=Reading)  # of other tools' files
    limit: SizeLimit | None = None

    @property
    def sources(self) -> list[Source]:
        return [Source(path, self.reading, self.limit) for path in (self.release, *self.compare)]


def write_pages(request: ReportRequest) -> list[Path]:
    """Write the page and, beside a public one in its release, the dataset card and the Croissant metadata."""
    output = _output(request)
    private = request.private if request.with_clean else None
    data = read_page_data(request.sources, private, request.mapping, request.audits)
    from ghostpoi.reporting.page_html import render  # charts import slowly, so a bad release is refused first

    texts, about = {output: render(data, request.about)}, request.about
    if not request.with_clean and request.output is None:
        texts[request.release / CARD] = card(data.main, about)
        texts[request.release / CROISSANT] = croissant(data.main, about)
    remove_partial(request.release)
    remove_partial(output.parent, escape(output.name))
    for path, text in texts.items():
        try:
            with replacing(path, mode=0o600 if request.with_clean else 0o644) as out:
                out.write(text.encode("utf-8", "replace"))
        except OSError as e:
            reason = (e.strerror or str(e)).lower()
            raise InputError(f"{path} cannot be written ({reason}); choose another place with -o") from None
    return list(texts)


def _output(request: ReportRequest) -> Path:
    """The path of the page. Clean data must not enter a release, and neither may a file that verify does not know."""
    if request.with_clean and request.private is None:
        raise InputError("--with-clean needs --private DIR, the private folder that protect wrote beside the release")
    if request.private is not None and not request.with_clean:
        raise InputError("--private is for a page with clean data; add --with-clean, or leave --private out")
    if is_file(request.release):
        if request.with_clean:
            raise InputError(
                f"--with-clean: {request.release} is a file; only a release of protect has a private folder"
            )
        if request.output is None:
            raise InputError(f"{request.release} is a file, so the page has no folder; name the page with -o page.html")
    folder = request.private or request.release
    if request.private is not None and not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the one that protect wrote")
    output = request.output or folder / PAGE
    place = output.resolve()
    inside = [r for r in (request.release, *request.compare) if place.is_relative_to(r.resolve())]
    if inside and request.with_clean:
        raise InputError(
            f"{output} lies inside the release {inside[0]} and would hold clean data; choose another place"
        )
    if any(place == r.resolve() for r in (request.release, *request.compare, *request.audits)):
        raise InputError(f"-o {output} would overwrite what the page is about; choose another name")
    if inside and place != inside[0].resolve() / PAGE:
        raise InputError(f"{output} lies inside the release {inside[0]}; there the page must be called {PAGE}")
    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; create it first")
    if output.is_dir():
        raise InputError(f"-o {output} is a folder; give the name of a file")
    return output
