"""The demonstration: the commands that a publisher would use, one after the other, on a synthetic city."""

from pathlib import Path
from typing import Any

from ghostpoi.cli import commands
from ghostpoi.cli.output import console, tell
from ghostpoi.errors import InputError
from ghostpoi.extras import need
from ghostpoi.files import make_folder
from ghostpoi.options import declared, in_shell, option

USERS, POIS, DAYS, SEED = 400, 1200, 100, 7
RELEASE_SEED = 0x64656D6F_67686F73_74706F69_31333337  # so that the demonstration prints the same every time
OTHERS = ("ghost", "random")  # next to the default: the paper's method, the control
VICTIM = "markov"  # on this city it learns more than a Transformer, in no time and the same on every machine
CPU = {"device": "cpu"}  # what the commands get without saying so


def demo(output: Path, quick: bool) -> None:
    """Show what ghostpoi does on a synthetic city, without any data or network."""
    if not quick:
        need("models")
    try:
        make_folder(output)
    except OSError as e:
        where = option("output", output)
        raise InputError(f"{where}: the folder cannot be created ({e.strerror}); choose another") from None
    city, out, private = output / "city.txt", output / "release", output / "release.private"
    others = [output / f"release-{method}" for method in OTHERS]
    release: dict[str, Any] = {"seed": RELEASE_SEED}
    again = CPU | {"force": True}

    _run("synth", output=city, users=USERS, pois=POIS, days=DAYS, seed=SEED)
    _run("inspect", file=city)
    _run("protect", again, file=city, output=out, **release)
    _run("verify", release=out, against=city)
    if quick:
        return _report(out, [])
    # The full default set with one seed and without naturalness, which is fast. The audits share a cache.
    fast: dict[str, Any] = {"victim": VICTIM, "seeds": 1, "naturalness": False, "cache": private / "audit"}
    _run("audit", CPU, file=city, release=out, **fast)
    for method, other in zip(OTHERS, others, strict=True):
        _run("protect", again, file=city, output=other, method=method, **release)
    for other in others[:1]:  # the random release is a control in both audits
        _run("audit", CPU, file=city, release=other, **fast)
    _run("report", release=out, compare=others, private=private, with_clean=True)
    tell("This page shows clean data next to the release, for the publisher only.")
    _report(out, others)


def _report(out: Path, others: list[Path]) -> None:
    _run("report", release=out, compare=others)
    tell("")
    tell(f"open this page in a browser: {out / 'report.html'}")


def _run(command: str, silent: dict[str, Any] | None = None, **shown: Any) -> None:
    """Print a command and run it; `silent` are options that are not printed."""
    from rich.markup import escape

    options, words = declared()[command], []
    for name, value in shown.items():
        one = options[name]
        if one.argument:
            words.append(str(value))
        elif one.type == "flag":
            words.append(option(name) if value else f"--no-{name}")
        elif value != []:
            words.append(option(name, *(value if isinstance(value, list) else [value])))
    console().print(f"\n[bold]$ ghostpoi {command} {escape(in_shell(' '.join(words)))}[/]", soft_wrap=True)
    getattr(commands, command)(**(commands.defaults(command) | shown | (silent or {})))
