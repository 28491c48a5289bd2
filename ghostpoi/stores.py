"""Object stores: what lies at a URL, such as s3://bucket/release, is worked on in copies on this machine.

The path of a copy spells its URL, so a path says where it belongs, and messages show the URL. What a command reads is
fetched first. What it changes is sent when it ends; a release is sent when it is complete, its manifest last. A folder
that tasks exchange is one object, so it is there as a whole.
"""

import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import unquote, urlsplit

from ghostpoi.errors import ConnectionLost, InputError
from ghostpoi.files import own_folder, replacing
from ghostpoi.options import COPIES, option, places
from ghostpoi.plugins import need

URL = re.compile(r"(?!postgres(?:ql)?:)([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
WILD = re.compile(r"[*?\[]")
SCHEMES = ("s3", "memory", "gs", "az", "abfs", "abfss")
MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
CLAIM = ".writing"  # in the folder of a release while a command writes it
TAR = ".tar"  # how the object ends that holds the folder that a task has left
PIECE = 1 << 23  # bytes fetched at once
NONE = "it does not exist; check the path"
RUN, NOTE = "unfinished", "run.json"  # in a private folder: the folder of a run, the note of one that is complete
EXCHANGED = (f"{RUN}/world-", "ghostpoi-reading-")  # what tasks fetch and send themselves


def is_url(value: object) -> bool:
    """Return whether a value is the URL of a store or of a file; the URL of a database is neither."""
    return isinstance(value, str) and URL.match(value) is not None


def url_of(path: Path) -> str:
    """Return the URL that a copy belongs to; "" for any other path."""
    parts = path.absolute().parts
    at = next((n for n, name in enumerate(parts) if name.startswith(COPIES)), len(parts))
    return f"{parts[at + 1]}://{'/'.join(parts[at + 2 :])}" if at + 1 < len(parts) else ""


def copy_of(url: str, root: Path) -> Path:
    """Return where the copy of a URL lies in a folder of copies, and nowhere else."""
    scheme, _, rest = url.partition("://")
    return root.joinpath(scheme.lower(), *(name for name in rest.split("/") if name not in ("", ".", "..")))


def _root_of(path: Path) -> Path:
    return next(folder for folder in path.absolute().parents if folder.name.startswith(COPIES))


@cache
def _root_of_worker() -> Path:
    """Return the folder of copies of this worker, in the folder that Dask removes with it."""
    from distributed import get_worker

    return Path(mkdtemp(prefix=COPIES, dir=get_worker().local_directory))


def here(path: Path) -> Path:
    """Return where this worker has its copy of what the main process has at this path."""
    return copy_of(url, _root_of_worker()) if (url := url_of(path)) else path


@cache
def _bucket(place: str) -> Any:
    """Open a bucket, with credentials from the environment; what is in memory is one."""
    need("s3")
    from obstore.store import MemoryStore, from_url

    if place == "memory:":
        return MemoryStore()
    client = {"connect_timeout": "5s", "timeout": "300s"}
    if os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        client["allow_http"] = "true"
    return from_url(place, client_options=client, retry_config={"max_retries": 4})  # type: ignore[call-overload]


def _parted(url: str) -> tuple[str, str]:
    """Return the bucket that a URL names, and the key in it."""
    scheme, _, rest = url.partition("://")
    name, _, key = rest.partition("/")
    return ("memory:", rest) if scheme == "memory" else (f"{scheme}://{name}", key)


REFUSALS = (  # what a message has, what to say; the first that fits counts
    ("NoSuchBucket", "there is no such bucket; check its name"),
    ("InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|AccessDenied|Forbidden|Unauthorized|40[13] ",
     "the store refuses these credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ask for the right"),
    (r"169\.254\.|[Cc]redential|Account must be",
     "there are no credentials for it; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ("redirect", "the bucket is in another region; set AWS_REGION"),
    ("not found|NoSuchKey", NONE),
)  # fmt: skip
LOST = re.compile("error sending request|timed out|connect|retries|response body|50[0-9] ", re.IGNORECASE)


@contextmanager
def _opened(url: str) -> Iterator[tuple[Any, str]]:
    """Yield the bucket of a URL and the key in it.

    Say in one sentence what the store refused. Its own words may quote keys, so none of them are repeated.
    """
    place, key = _parted(url)
    try:
        yield _bucket(place), key
    except Exception as e:
        # obstore also raises errors of Python, without the number that the system gives its own.
        ours = isinstance(e, OSError) and e.errno is None
        if isinstance(e, InputError) or not (ours or type(e).__module__.startswith("obstore")):
            raise
        text = str(e)
        said = next((sentence for pattern, sentence in REFUSALS if re.search(pattern, text)), "")
        if not said and LOST.search(text):
            raise ConnectionLost(f"the connection to {url} was lost; check the network, then try again") from None
        raise InputError(f"{url.rstrip('/')}: {said or 'the store failed; look into its log'}") from None


def _listed(url: str) -> list[str]:
    """Return the keys that begin as that of a URL does."""
    with _opened(url) as (store, key):
        pages = store.list(key.rpartition("/")[0] or None)
        return [one["path"] for page in pages for one in page if one["path"].startswith(key)]


def _below(path: Path) -> dict[str, Path]:
    """Return the copies of all objects below a copy, by their names there."""
    url, root = f"{url_of(path)}/", _root_of(path)
    key = _parted(url)[1]
    return {name[len(key) :]: copy_of(url.removesuffix(key) + name, root) for name in _listed(url)}


def fetch(path: Path) -> bool:
    """Fetch the object of a copy, unless it is here; return whether there is one. Other paths are as they are."""
    if path.exists() or not (url := url_of(path)):
        return path.exists()
    try:
        with _opened(url) as (store, key):
            found = store.get(key)
    except InputError as e:
        if e.text.endswith(NONE):
            return False
        raise
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path, mode=0o600) as out, _opened(url):
        for piece in found.stream(PIECE):
            out.write(piece)
    return True


def fetch_all(path: Path) -> None:
    """Fetch the object of a copy or, if there is none, all below it, or those that a pattern names."""
    url, root = url_of(path), _root_of(path)
    store_key = _parted(url)[1]
    if wild := WILD.search(store_key):
        base = url.removesuffix(store_key)
        for name in _listed(url[: len(base) + wild.start()]):
            if fnmatchcase(name, store_key.replace("**/", "*")):
                fetch(copy_of(base + name, root))
    elif not (store_key and fetch(path)):
        for name, one in _below(path).items():
            if name and name != CLAIM and not name.startswith(EXCHANGED):
                fetch(one)


def put(url: str, content: bytes | Path) -> None:
    """Send what an object is to hold: it is there as a whole or not at all."""
    with _opened(url) as (store, key):
        store.put(key, content)


def send(path: Path, url: str = "") -> None:
    """Send a file, if it is a copy."""
    if url := url or url_of(path):
        put(url, path)


def offer(path: Path) -> None:
    """Send a file unless there is an object at its place."""
    if _parted(url_of(path))[1] not in _listed(url_of(path)):
        send(path)


def remove(*paths: Path) -> None:
    """Remove the objects of copies, if they exist."""
    for url in filter(None, map(url_of, paths)):
        with _opened(url) as (store, key), suppress(FileNotFoundError):
            store.delete(key)


def remove_all(path: Path) -> None:
    """Remove all objects below a copy."""
    if url_of(path):
        remove(*_below(path).values())


def give(folder: Path, place: Path) -> None:
    """Send a folder, as one object, for its final place, if that is a copy."""
    if url := url_of(place):
        packed = folder.with_name(f"{folder.name}{TAR}")
        with tarfile.open(packed, "w") as archive:
            archive.add(folder, ".")
        try:
            send(packed, f"{url}{TAR}")
        finally:
            packed.unlink()


def take(place: Path) -> None:
    """Fetch a folder that was given, unless it is here."""
    packed = place.with_name(f"{place.name}{TAR}")
    if not place.is_dir() and url_of(place) and fetch(packed):
        own = Path(mkdtemp(prefix=f".{place.name}.", dir=place.parent))
        with tarfile.open(packed) as archive:
            archive.extractall(own, filter="data")
        packed.unlink()
        with suppress(OSError):  # another thread was faster
            os.rename(own, place)


def given(folder: Path) -> list[str]:
    """Return the names of the folders that were given below a copy."""
    return sorted(name.removesuffix(TAR) for name in _below(folder)) if url_of(folder) else []


def publish(release: Path, folder: Path, replace: bool) -> None:
    """Send a complete folder to the place of a release: without its manifest it is no release, so that is last."""
    if not url_of(release):
        return
    old = set(_below(release)) - {CLAIM}
    if old and not replace:
        raise InputError(f"{release} exists already; replace it with {option('force')}, or choose another folder")
    remove(release / MANIFEST, release / SIGNATURE)
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    for name in sorted(files, key=lambda name: (name == MANIFEST, name == SIGNATURE, name)):
        send(files[name], f"{url_of(release)}/{name}")
    remove(*(release / name for name in old - set(files)))


@contextmanager
def at_hand(given: Mapping[str, Any], command: str) -> Iterator[dict[str, Any]]:
    """Let a command find copies in place of URLs, and send afterwards what it has changed."""
    names, new = places(command), "output" if command == "protect" else ""
    with ExitStack() as stack:
        copies, goes_on = dict[str, Path](), bool(given.get("resume") or given.get("force"))
        root = cache(lambda: stack.enter_context(own_folder(COPIES)))  # made for the first URL

        def copied(value: Any, name: str) -> Any:
            if isinstance(value, list | tuple):
                return type(value)(copied(one, name) for one in value)
            if _is_release(value) and (is_url(value.folder) or is_url(value.private)):
                return replace(value, **{f: copied(getattr(value, f), f) for f in ("folder", "private")})
            if not is_url(value):
                return value
            if value.lower().startswith("file://"):
                return Path(unquote(urlsplit(value).path))
            if value not in copies:
                copies[value] = copy = copy_of(_checked(value), root())
                stack.enter_context(_claimed(copy, goes_on) if name == new else _working_copy(copy))
            return copies[value]

        yield {name: copied(value, name) if name in names else value for name, value in given.items()}


@contextmanager
def fetched(place: str) -> Iterator[Path]:
    """Let a block read what lies at a path or, in a copy, at a URL."""
    with at_hand({"release": place}, "verify") as found:
        yield Path(found["release"])


def _is_release(value: Any) -> bool:
    """Return whether a value is what protect returns; a frame may have a column of any name."""
    return all(hasattr(value, name) for name in ("manifest", "folder", "private", "counts"))


def _checked(url: str) -> str:
    """Refuse a URL of another kind, or with credentials, without repeating them."""
    scheme, rest = url.partition("://")[::2]
    if "@" in rest.partition("/")[0] or "?" in rest:
        raise InputError(
            f"a URL of {scheme}:// holds credentials or parameters, which others could see; leave them out, and set "
            "them in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if scheme.lower() not in SCHEMES or not rest.strip("/"):
        raise InputError(f"{url} names no store; give s3://BUCKET/PATH, a URL of {', '.join(SCHEMES[1:])}, or a path")
    return url


@contextmanager
def _working_copy(path: Path) -> Iterator[None]:
    """Fetch what a command reads or changes; send what it has changed, whether it succeeds or not."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fetch_all(path)
    before, signed = _state(path), path / SIGNATURE
    old = signed.read_bytes() if signed.is_file() else b""
    try:
        yield
    finally:
        after = _state(path)
        changed = sorted(file for file, state in after.items() if before.get(file) != state)
        if signed in changed:  # at any moment, one of its lines signs the manifest that is there
            put(url_of(signed), old + signed.read_bytes())
        for file in sorted(changed, key=signed.__eq__):
            send(file)
        remove(*(file for file in before if file not in after))
        if (path / NOTE).exists() and not (path / RUN).exists():  # a run is complete
            remove_all(path / RUN)


def _state(path: Path) -> dict[Path, tuple[int, int]]:
    """Return when each file of a copy was written, and its size; not what tasks exchange."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    ours = [file for file in files if file == path or not str(file.relative_to(path)).startswith(EXCHANGED)]
    return {file: (status.st_mtime_ns, status.st_size) for file in ours for status in [file.stat()]}


@contextmanager
def _claimed(release: Path, goes_on: bool) -> Iterator[None]:
    """Reserve the place of a release that is to be written. An older release there shows in its manifest."""
    there = set(_below(release))
    release.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if CLAIM in there and not goes_on:
        raise InputError(
            f"another ghostpoi is writing {release}, or was interrupted; wait until it has finished, or continue with "
            f"{option('resume')}"
        )
    if MANIFEST in there:
        fetch(release / MANIFEST)
    elif there - {CLAIM} and CLAIM not in there:  # it is no release
        release.mkdir()
        (release / "other").touch()
    put(f"{url_of(release)}/{CLAIM}", b"")
    try:
        yield
    finally:
        with suppress(ConnectionLost):
            left = set(_below(release)) - {CLAIM}
            if MANIFEST in left or not left or not (left - there or {CLAIM, MANIFEST} & there):  # else: interrupted
                remove(release / CLAIM)
