"""The documentation names every command, every setting and every plug-in, and speaks of nothing that is not there."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import typer.main

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.cli import app
from ghostpoi.publish.methods import METHODS
from ghostpoi.publish.protocols import Publication
from ghostpoi.study import plan

ROOT = Path(__file__).parent.parent
COMMANDS = (ROOT / "docs" / "commands.md").read_text()


def test_every_command_is_documented() -> None:
    group = typer.main.get_command(app)
    names = group.commands  # type: ignore[attr-defined]
    assert {"inspect", "protect", "verify", "audit", "synth", "prepare", "study", "bench", "demo"} <= set(names)
    for name, command in names.items():
        assert f"ghostpoi {name}" in COMMANDS, name
        for sub in getattr(command, "commands", {}):
            assert re.search(rf"ghostpoi {name}[^\n]*`?{sub}\b", COMMANDS), f"{name} {sub}"


def test_every_section_of_settings_is_documented() -> None:
    for section in fields(Publication):
        assert f"`{section.name}`" in COMMANDS, section.name
    for section in ("filters", "candidates", "speed", "rounds"):
        group = getattr(Publication(), section)
        for field in fields(group):
            assert f"`{field.name}`" in COMMANDS, f"{section}.{field.name}"


@pytest.mark.parametrize("name", [*METHODS, *ADVERSARIES, *plan.names()])
def test_every_plug_in_is_documented(name: str) -> None:
    assert f"`{name}`" in COMMANDS


@pytest.mark.parametrize("page", sorted(p.relative_to(ROOT) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (ROOT / page).parent.joinpath(target).exists(), f"{page}: {target}"
