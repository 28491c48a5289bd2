"""Atomic file writing, locks, and folders that only their owner may enter."""

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile

from ghostpoi.errors import InputError
from ghostpoi.options import option

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTIAL = ".partial"  # how the name of a file that is not complete ends
DESCRIPTORS = Path("/proc/self/fd")
COMPRESSED = (".gz", ".xz", ".zst", ".bz2", ".zip")  # how the names of compressed files end


def extension(path: Path) -> str:
    """Return the extension without that of the compression: .txt for data.txt.xz. Unprintable ones are dropped."""
    suffix = Path(path.stem).suffix if path.suffix.lower() in COMPRESSED else path.suffix
    return suffix if suffix.isprintable() else ""


def refuse_loops(value: Any) -> None:
    """Refuse paths, among the values of an option, that are links to themselves: Python has an own error for them."""
    for path in value if isinstance(value, list | tuple) else [value]:
        try:
            os.stat(path if isinstance(path, os.PathLike) else "")
        except OSError as e:
            if e.errno == errno.ELOOP:
                raise InputError(
                    f"{path} is a link that leads back to itself; remove it, or give another path"
                ) from None
        except ValueError:  # no path can be so; whoever opens it says why
            pass


class Repeated(ValueError):
    """An object of a JSON text names a key more than once. Python keeps the last value only."""


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of a JSON text; refuse one that names a key more than once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise Repeated(repr(next(name for name in found if names.count(name) > 1)))
    return found


@contextmanager
def replacing(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """Open a file for writing. It gets its final name when it is complete and on disk; on an error it is removed.

    Where the system allows it, the file has no name at all while it is written, so a killed process leaves nothing.
    """
    handle, temporary = _nameless(path.parent), None
    if handle is None:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PARTIAL)
        temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as f:
            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)  # remove_partial leaves a locked file alone
            yield f
            f.flush()
            os.fsync(f.fileno())
            os.fchmod(f.fileno(), mode)
            if temporary is None:
                temporary = _give_name(f.fileno(), path)
            os.replace(temporary, path)
    except BaseException:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise


def _nameless(folder: Path) -> int | None:
    """Open a new file without a name; None if the system cannot."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600) if DESCRIPTORS.is_dir() else None
    except (AttributeError, OSError):  # AttributeError: not on Linux
        return None


def _give_name(handle: int, path: Path) -> Path:
    """Link a nameless file under a temporary name: a link cannot replace an existing file."""
    name = f".{path.name}.{secrets.token_hex(4)}{PARTIAL}"
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Python follows the link in /proc to the file itself only if it gets a folder's handle.
        os.link(DESCRIPTORS / str(handle), name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
    return path.with_name(name)


def remove_partial(folder: Path, name: str = "*") -> None:
    """Remove what killed processes left of the file with this name, or of all; not what others are writing."""
    for path in folder.glob(f".{name}.*{PARTIAL}"):
        with suppress(OSError), path.open("rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def file_hashes(path: Path) -> dict[str, str]:
    """Return the SHA-256 of a file, or of every file in a folder, by its path below `path`; "" for a file itself."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    found = {}
    for one in files:
        name = "" if one == path else one.relative_to(path).as_posix()
        with one.open("rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def joint_hash(hashes: Mapping[str, str]) -> str:
    """Return the SHA-256 of a file or, if there are several, of the list of their names and hashes."""
    if set(hashes) == {""}:
        return hashes[""]
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Reserve a folder, which need not exist, for this process; refuse if another one has reserved it.

    The lock file is next to the folder. The system releases the lock of a killed process.
    """
    path = folder.with_name(f".{folder.name}.lock")
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                break  # else its last owner has just removed it
        except BlockingIOError:
            os.close(handle)
            raise InputError(
                f"another ghostpoi is writing {folder}; wait until it has finished, or choose another folder"
            ) from None
        os.close(handle)
    try:
        yield
    finally:
        try:
            path.unlink(missing_ok=True)
        except BaseException:  # a signal: it may have come just before
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                path.unlink()
            raise
        finally:
            os.close(handle)


def save_arrays(out: BinaryIO, arrays: "Mapping[str, NDArray[Any]]") -> None:
    """Write arrays as `numpy.savez_compressed` does, eight times as fast and a tenth larger."""
    from numpy.lib.format import write_array

    with ZipFile(out, "w", ZIP_DEFLATED, compresslevel=1) as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                write_array(member, array, allow_pickle=False)


def make_folder(folder: Path) -> None:
    """Create a folder, and those around it, into which nobody else may write, even if the umask would allow it."""
    for path in reversed((folder, *folder.parents)):
        if not path.is_dir():
            path.mkdir(mode=0o755, exist_ok=True)


def make_private_folder(folder: Path) -> None:
    """Create a folder that only its owner may enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chmod(folder, 0o700)


@contextmanager
def own_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a new private folder, and remove it afterwards; first remove what killed processes left of theirs."""
    parent = parent or Path(tempfile.gettempdir())
    for left in parent.glob(f"{prefix}*"):
        with suppress(OSError, InputError), locked(left):  # InputError: another process uses it
            shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as place, ExitStack() as stack:
        with suppress(OSError):  # some network file systems have no locks
            stack.enter_context(locked(Path(place)))
        yield Path(place)


@contextmanager
def new_folder(path: Path, private: bool = False) -> Iterator[Path]:
    """Create a folder to write files into. It gets its final name when it is complete; on an error it is removed.

    If it is private, only its owner may enter it or read its files.
    """
    if not path.parent.is_dir():
        raise InputError(f"{option('output', path)}: the folder {path.parent} does not exist; create it first")
    with locked(path.resolve()):
        if path.exists():
            raise InputError(f"{path} exists already; choose another folder with {option('output')}, or remove it")
        for left in path.parent.glob(f".{escape(path.name)}.*{PARTIAL}"):  # by a killed process: no other has the lock
            shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=PARTIAL))
        try:
            yield folder
            for file in folder.iterdir():
                file.chmod(0o600 if private else 0o644)
            folder.chmod(0o700 if private else 0o755)
            os.replace(folder, path)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
