"""A folder of check-in files of one kind, or those that a pattern names, read as one table and written as parts."""

import glob
import os
import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from ghostpoi.data.checkins import concatenated
from ghostpoi.errors import InputError
from ghostpoi.files import COMPRESSED, extension
from ghostpoi.formats.content import load
from ghostpoi.formats.rows import Rows
from ghostpoi.formats.source import CheckinFile, Source
from ghostpoi.options import option

HIDDEN = (".", "_")  # names that begin so belong to the tool that wrote the folder, e.g. _SUCCESS
PAIRS = {".dyna": ".geo", ".inter": ".item"}  # check-ins and their venues: LibCity, RecBole
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
WILD = re.compile(r"[*?]|\[[^\]]+\]")  # signs of a pattern

Decode = Callable[[Source, bytes], tuple[str, Rows]]  # returns the name of the format, and all rows
ReadPart = Callable[[Source, str, Rows], CheckinFile]


def is_folder(source: Source) -> bool:
    """Return whether a path names several files: a folder, or a pattern such as visits/*.csv that is no file itself."""
    path = source.path
    if source.in_memory:
        return False
    return os.path.isdir(path) or (bool(WILD.search(str(path))) and not os.path.exists(path))


def read_folder(source: Source, decode: Decode, read_part: ReadPart) -> CheckinFile:
    """Read all parts and join them in the order of their names."""
    if source.reading.cluster_points:
        raise InputError(f"{source}: {option('cluster_points')} needs all points in one file; join the parts first")
    found = parts_of(source.path)
    names = list(found)
    digest, files, empty = sha256(), dict[str, CheckinFile](), dict[Path, list[str]]()
    for name, path in found.items():
        data = load(file := source.at(path))
        digest.update(f"{len(name.encode())} {name} {len(data)} ".encode() + data)
        format, rows = decode(file, data)
        if len(rows):
            files[name] = read_part(file, format, rows)
        else:
            empty[path] = rows.columns
    if not files:
        raise InputError(f"{source} has no check-ins; give files with at least one row of data")
    first = next(iter(files.values()))
    for path, columns in empty.items():
        if columns != first.all_rows.columns:
            raise no_part(path, first.path)
    like = first
    for other in files.values():
        _check_alike(like, other)
        like = other if (dialect := like.all_rows.dialect) and dialect.ascii else like  # it would do in any encoding
    size = {name: len(files[name].table) + len(files[name].missing) if name in files else 0 for name in names}
    start = dict(zip(names, np.cumsum([0, *size.values()]), strict=False))
    held = [file.all_rows for file in files.values()]
    tails = {name: part.dialect.tail for name, part in zip(files, held, strict=True) if part.dialect}
    ends, part = tuple(tails.get(name, b"") for name in names), np.repeat(np.arange(len(names)), list(size.values()))
    return replace(
        first, source=source, table=concatenated([file.table for file in files.values()], str(source)),
        sha256=digest.digest(), all_rows=held[0].joined(held, str(first.path)).in_parts(tuple(names), part, ends),
        missing=np.concatenate([file.missing + start[name] for name, file in files.items()]).astype(np.int64),
        missing_at=next((file.missing_at for file in files.values() if file.missing_at), ""),
    )  # fmt: skip


def parts_of(path: Path) -> dict[str, Path]:
    """Return the path of every part by the name that it has in a release, in the order of names."""
    root = root_of(path)
    if path.is_dir():
        paths = [p for p in path.rglob("*") if p.is_file()]
    else:
        paths = [Path(p) for p in glob.glob(str(path), recursive=True) if Path(p).is_file()]
    named = path.rglob("*") if path.is_dir() else map(Path, glob.glob(str(path), recursive=True))
    if broken := sorted(p for p in named if p.is_symlink() and not p.exists()):
        raise InputError(f"{broken[0]} is a link that leads nowhere; remove it, or put the file there")
    shown = {str(p.relative_to(root)): p for p in paths}
    found = [(name, p) for name, p in sorted(shown.items()) if not any(n.startswith(HIDDEN) for n in Path(name).parts)]
    if not found:
        raise InputError(
            f"{path} names no file; check the path" if root != path else f"{path} holds no files; give one that does"
        )
    if odd := [name for name, _ in found if not name.isprintable()]:
        raise InputError(f"{path}: a release cannot hold a file named {odd[0]!r}; rename it")
    for checkins, venues in PAIRS.items():
        ones, twos = ([p for _, p in found if extension(p).lower() == end] for end in (checkins, venues))
        if ones and twos:
            two = min(twos, key=lambda p: p.with_suffix("") != ones[0].with_suffix(""))
            raise InputError(
                f"{path} holds check-ins and a table of venues; give {ones[0]} {option('venues', two)} instead"
            )
    names = [_plain(name) for name, _ in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{path} holds {twice[0]} more than once, compressed and not; remove one of them")
    return dict(zip(names, (p for _, p in found), strict=True))


def root_of(path: Path) -> Path:
    """Return the file or folder that a path names; of a pattern, the folder in which it looks."""
    if path.exists() or not WILD.search(str(path)):
        return path
    return Path(*takewhile(lambda name: not WILD.search(name), path.parts[:-1]))


def keys_of(name: str) -> dict[str, str]:
    """Return the keys that the folders of a part's name hold, as Hive writes them: city=Paris/part-0.parquet."""
    pairs = (folder.partition("=") for folder in Path(name).parts[:-1])
    return {key: "" if value == NO_VALUE else unquote(value) for key, sign, value in pairs if key and sign}


def _plain(name: str) -> str:
    """Return the name of a part in a release, which is not compressed."""
    path = Path(name)
    return str(path.with_suffix("")) if path.suffix.lower() in COMPRESSED else name


def no_part(path: Path, other: Path) -> InputError:
    """Say that a file without rows does not belong to the other parts."""
    return InputError(
        f"{path} holds no rows, and not the columns of {other}; remove it, or name the other files with a pattern such "
        f"as {other.parent / '*'}{other.suffix}"
    )


def _check_alike(first: CheckinFile, other: CheckinFile) -> None:
    """Refuse a part that is not of the same kind as the first."""
    rows, more = first.all_rows, other.all_rows
    rows.refuse_to_join(first.path)
    differs = {
        "format": (first.format, type(rows)) != (other.format, type(more)),
        "columns": (first.mapping, rows.columns) != (other.mapping, more.columns),
    }
    if (one := rows.dialect) and (two := more.dialect):
        differs["delimiter"] = one.delimiter != two.delimiter
        differs["encoding"] = one.encoding != two.encoding and not (one.ascii or two.ascii)
    if what := next((what for what in differs if differs[what]), ""):
        kind = "other columns" if what == "columns" else f"another {what}"
        raise InputError(f"{other.path} has {kind} than {first.path}; give a folder of files of one kind")
