"""What `choose` needs before it tries settings: a checked request, and the `protect` command of a setting."""

import shlex
from collections.abc import Callable
from pathlib import Path

from ghostpoi.cli.options import changed, mapping
from ghostpoi.errors import InputError
from ghostpoi.evaluate.choose import ChooseRequest, Wishes
from ghostpoi.evaluate.choose.options import STRICTNESS

Texts = list[str] | None
Command = Callable[[list[str]], str]  # settings -> a line for the shell


def prepare_choice(
    file: Path, wishes: Wishes, output: Path, pseudonyms: str, leak: float, seeds: int, map: Texts, set: Texts,
    config: Path | None, taxonomy: Path | None, keep: Texts, drop: Texts, cache: Path | None,
) -> tuple[ChooseRequest, Command]:  # fmt: skip
    """Read the file and refuse what `protect` would refuse, before any work."""
    from ghostpoi.data import formats
    from ghostpoi.data.taxonomy import read_taxonomy
    from ghostpoi.evaluate.cache import default_folder, open_cache
    from ghostpoi.publish.pseudonyms import wanted
    from ghostpoi.publish.publication_settings import publication
    from ghostpoi.publish.venue_files import classify_file
    from ghostpoi.publish.whole_table import check_category, grouped
    from ghostpoi.settings import override

    if wishes.keep_category not in STRICTNESS:
        raise InputError(f"--keep-category {wishes.keep_category}: use {', '.join(STRICTNESS)}")
    if not 0 < leak <= 1:
        raise InputError(f"--leak {leak:g}: give a share above 0 and at most 1; the paper's is 0.05")
    if own := [text for text in set or [] if text.startswith("method.")]:
        raise InputError(f"--set {own[0]}: choose tries the settings of the method itself; leave it out")
    if own := [text for text in set or [] if text.startswith("identity.")]:
        raise InputError(f"--set {own[0]}: use --pseudonyms instead")
    if not output.parent.is_dir() or output.is_dir():
        raise InputError(f"-o {output}: give the name of a page in a folder that exists")
    asked = [f"identity.pseudonyms={pseudonyms}"] if pseudonyms != "keep" else []
    settings = override(changed(publication("crowd"), set, config), asked)
    by_group = override(settings, ["method.category=group"])
    read = formats.read(file, mapping(map))
    if wishes.keep_category != "any":
        check_category(read.table, by_group.method)
    classify_file(read, keep or [], drop or [], wanted(read, settings))
    table = grouped(read.table, read_taxonomy(taxonomy) if taxonomy else {}, by_group.method)
    request = ChooseRequest(
        table=table,
        settings=settings,
        wishes=wishes,
        leak=leak,
        seeds=seeds,
        cache=open_cache(cache or default_folder()),
    )

    def command(assignments: list[str]) -> str:
        grouping = taxonomy is not None and "method.category=group" in assignments
        words = ["ghostpoi", "protect", str(file), "-o", "RELEASE"]
        words += [word for text in [*(set or []), *assignments] for word in ("--set", text)]
        for flag, values in (("--map", map), ("--keep", keep), ("--drop", drop)):
            words += [word for value in values or [] for word in (flag, value)]
        words += read.reading.words
        words += ["--config", str(config)] if config else []
        words += ["--taxonomy", str(taxonomy)] if grouping else []
        words += ["--pseudonyms", pseudonyms] if pseudonyms != "keep" else []
        return shlex.join(words)

    return request, command
