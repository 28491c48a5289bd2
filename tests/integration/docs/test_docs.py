"""The documentation is complete, up to date and plain, and its site builds offline without a dead link."""

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_city
import typer.main
from conftest import ROOT
from docs_scripts import DOCS, script

from docs.blocks.common import known
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.cli import app
from ghostpoi.draw.methods import METHODS
from ghostpoi.exports import EXPORTS
from ghostpoi.study import plan
from ghostpoi.study.labels import show
from ghostpoi.study.results import NO_LEAK, Results

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

# What the writing guide rejects, as it stood in earlier versions.
REJECTED = (
    "an adversary who has read the code gets back",
    "of which the adversary who knows the rule restores far more",
    "byte that no venue determines is as it was",
    "is gone; less than the leak alone gives",
    "those too that train a model of their own",
    "where there are so many near",
    "A rare one with no other near draws",
    "squeezed in between two others cannot always be helped",
    "For no method all of it is shown to hold",
    "It cannot be seen what words mean",
    "whoever",
    "GHOST beats neither PGD nor",
    "nothing shows that the release adds",
    "crowds of at least 16",
)


def commands(name: str = "ghostpoi", command: Any = None) -> Iterator[tuple[str, Any]]:
    """Every command by its full name, the groups included."""
    command = command or typer.main.get_command(app)
    yield name, command
    for word, below in getattr(command, "commands", {}).items():
        yield from commands(f"{name} {word}", below)


def options(command: Any) -> set[str]:
    return {o for p in command.params for o in [*p.opts, *p.secondary_opts] if o.startswith("-")} | {"--help"}


@pytest.mark.parametrize("page", script("generate_reference").PAGES)
def test_the_reference_is_up_to_date(page: str) -> None:
    written = script("generate_reference").PAGES[page]()
    assert (DOCS / page).read_text() == written, "run python docs/generate_reference.py"


def test_every_command_and_option_is_in_the_reference() -> None:
    page = (DOCS / "reference" / "commands.md").read_text()
    for name, command in commands():
        assert hasattr(command, "commands") or f"\n## {name.removeprefix('ghostpoi ')}\n" in page, name
        for option in options(command) - {"--help"}:
            assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", page), f"{name} {option}"


@pytest.mark.parametrize("name", [*METHODS.builtin, *ADVERSARIES, *VICTIMS, *EXPORTS, *plan.names()])
def test_every_plug_in_is_in_the_reference(name: str) -> None:
    assert f"`{name}`" in (DOCS / "reference" / "plugins.md").read_text()


def test_every_key_of_the_manifest_is_documented() -> None:
    page = (DOCS / "reference" / "release-folder.md").read_text()
    manifest = small_city.release().manifest
    below = {
        key
        for name in set(manifest) - {"settings", "tool"}
        if isinstance(manifest[name], dict)
        for key in manifest[name]
    }
    counts = {key for group in manifest["rows"].values() if isinstance(group, dict) for key in group}
    for key in {*manifest, *below, *counts}:
        assert f"`{key}`" in page, key


def test_commands_on_the_pages_exist() -> None:
    known = dict(commands())
    seen = 0
    for page in PAGES:
        for line in re.findall(r"^(?:    |\$ |    \$ )(ghostpoi [^#\n]*)", page.read_text(), re.MULTILINE):
            words = shlex.split(re.sub(r"[\[\]]", "", line))
            name = max((n for n in known if words[: len(n.split())] == n.split()), key=len)
            assert not hasattr(known[name], "commands"), f"{page}: {line}"
            given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            assert given <= options(known[name]), f"{page}: {line}"
            seen += 1
    assert seen > 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert page.parent.joinpath(target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_rejected_sentences_are_gone(page: Path) -> None:
    text = " ".join(page.read_text().split()).lower()
    assert [sentence for sentence in REJECTED if sentence.lower() in text] == []


def test_the_glossary_defines_each_term_once() -> None:
    terms = Counter(re.findall(r"\*\*(.+?)\*\*", (DOCS / "reference" / "glossary.md").read_text().lower()))
    assert [term for term, times in terms.items() if times > 1] == []


def test_the_drawing_shows_every_package() -> None:
    drawing = (DOCS / "figures" / "architecture.svg").read_text()
    for folder in (ROOT / "ghostpoi").iterdir():
        if (folder / "__init__.py").exists():
            assert re.search(rf'class="n">[^<]*\b{folder.name}\b', drawing), folder.name


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed; install the dev extra")
    # Not --quiet: it hides warnings from the count of --strict.
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    done = subprocess.run(
        build, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "NOTEBOOK_AS_WRITTEN": "1"}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    html = list(tmp_path.rglob("*.html"))
    assert len(html) > 15
    for page in html:
        loaded = re.findall(
            r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"?((?:https?:)?//[^\s\">]+)", page.read_text()
        )
        assert loaded == [], page
    notebook = re.sub("<[^>]*>", "", (tmp_path / "notebook.html").read_text())  # without the colours of the code
    assert "ghostpoi.verify" in notebook  # `make nightly` runs it


FREE = [(f"{m}{settings}", m) for m, settings in (
    ("crowd", ""), ("geo-indistinguishability", ""), ("ghost", " candidates.category=any"),
    ("pgd", " candidates.category=any"), ("random", " candidates.category=any"),
)]  # fmt: skip
EXACT = [("crowd method.category=exact", "crowd"), *((m, m) for m in ("ghost", "pgd", "random"))]


def shares(study: str, method: str) -> tuple[list[str], list[str], str, str]:
    """Worst cases and what needs no release in % of clean data, the mean displacement, the accuracy of clean data."""
    found = Results.read(ROOT / "results", study, "strong")
    clean, moved = known(found.value("clean", "clean")), known(found.value(method, "mean_km"))
    worst, alone = ([f"{known(of(leak)).accuracy['mean'] / clean['mean']:.0%}" for leak in (NO_LEAK, None)]
                    for of in (lambda leak: found.worst_case(method, leak), found.control))  # fmt: skip
    return worst, alone, f"{moved['mean']:.1f} km", show(clean["mean"], 3)


@pytest.mark.parametrize(("category", "rows"), [("may change", FREE), ("stays", EXACT)])
def test_the_table_of_the_readme_is_what_was_measured(category: str, rows: list[tuple[str, str]]) -> None:
    readme = (ROOT / "README.md").read_text()
    asked = re.findall(rf"^{category} \| `(.+?)`.*? \| (.+) \| (.+) \| (.+)$", readme, flags=re.MULTILINE)
    measured = [(name, shares("frontier" if method == "crowd" else "rivals", method)) for method, name in rows]
    assert asked == [(name, *worst, moved) for name, (worst, _, moved, _) in measured]
    for _, (_, alone, _, clean) in measured:
        assert f"no release | {alone[0]} | {alone[1]} | -" in readme
        assert f"of a model of clean data ({clean})" in " ".join(readme.split())


def test_what_the_readme_says_of_models_that_ignore_users() -> None:
    told = " ".join((ROOT / "README.md").read_text().split())
    ghost, random = (shares("constraints", method) for method in ("ghost", "random"))
    (one, two), (three, four), (five, six) = ghost[0], random[0], ghost[1]
    assert (
        f"A model that ignores users reaches {ghost[3]} on clean data. On `ghost`, it keeps {one} (no leak) and {two} "
        f"(5% leak) of this accuracy; on `random`, {three} and {four}; and without a release, {five} and {six}."
    ) in told
