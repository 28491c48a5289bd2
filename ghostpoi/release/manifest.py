"""The manifest, which describes a release, and its seal: a detached ed25519 signature.

Its presence means that the release is complete. The signing key stays in the private folder. The signature file has one
line per signature: the algorithm, the public key and the signature.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ghostpoi import formats
from ghostpoi.data.checkins import Checkins
from ghostpoi.draw.methods import METHODS
from ghostpoi.draw.publication import Publication, publication
from ghostpoi.errors import InputError
from ghostpoi.files import Repeated, file_hashes, joint_hash, remove_partial, replacing, without_repeats
from ghostpoi.formats import CheckinFile, Source
from ghostpoi.formats.content import readable
from ghostpoi.formats.source import SizeLimit
from ghostpoi.options import option
from ghostpoi.settings import override

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


KEY = "signing.key"
SIGNATURE = "manifest.sig"
LINE = re.compile(r"ed25519 ([0-9a-f]{64}) ([0-9a-f]{128})")
FINGERPRINT_DIGITS = 32


@dataclass(frozen=True)
class Seal:
    """What a signature file says about its manifest."""

    signer: str | None = None  # the fingerprint of the key; None if unsigned
    complaint: str | None = None  # why the signature is not valid


def create_key(private: Path, series: Path | None = None) -> None:
    """Create the signing key of a private folder, unless it or its series has one: a publisher keeps one key."""
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if (private / KEY).exists():
        return
    if series and (series / KEY).is_file():
        content = (series / KEY).read_bytes()
    else:
        content = Ed25519PrivateKey.generate().private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    for folder in filter(None, (series, private)):
        with replacing(folder / KEY, mode=0o600) as out:
            out.write(content)


def has_key(private: Path) -> bool:
    """Return whether a folder holds a signing key that this user may read."""
    try:
        return (private / KEY).is_file()
    except OSError:
        return False


def fingerprint(private: Path) -> str:
    """Return the fingerprint of the key in a private folder."""
    return _digits(_key(private).public_key().public_bytes_raw())


def sign(private: Path, manifest: bytes) -> str:
    """Return the line of a signature file that signs the bytes of a manifest."""
    key = _key(private)
    return f"ed25519 {key.public_key().public_bytes_raw().hex()} {key.sign(manifest).hex()}\n"


def seal_of(release: Path) -> Seal:
    """Check the signature of a release's manifest. One valid line is enough: a killed audit may leave an older one."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    signature, manifest = release / SIGNATURE, (release / MANIFEST).read_bytes()
    if not signature.is_symlink() and not signature.exists():
        return Seal()
    if signature.is_symlink() or not signature.is_file():
        return Seal(complaint=f"{signature.name} is not a plain file")
    for line in signature.read_bytes()[:4096].decode("latin-1").splitlines():
        if found := LINE.fullmatch(line):
            public, signed = (bytes.fromhex(digits) for digits in found.groups())
            try:
                Ed25519PublicKey.from_public_bytes(public).verify(signed, manifest)
            except (InvalidSignature, ValueError):
                continue
            return Seal(signer=_digits(public))
    return Seal(complaint=f"the manifest is not what {signature.name} signs, so it was changed afterwards")


def parse_fingerprint(text: str) -> str:
    """Read a fingerprint from the command line."""
    digits = re.sub(r"[\s:]", "", text).lower()
    if not re.fullmatch(rf"[0-9a-f]{{{FINGERPRINT_DIGITS}}}", digits):
        raise InputError(
            f"{option('signed_by', text)} is not a fingerprint; give the {FINGERPRINT_DIGITS} hexadecimal digits that "
            "protect printed"
        )
    return digits


def _digits(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()[:FINGERPRINT_DIGITS]


def _key(private: Path) -> "Ed25519PrivateKey":
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        key = serialization.load_pem_private_key((private / KEY).read_bytes(), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"{private / KEY} is not an ed25519 key; restore it from a backup, or delete it to get a new one"
        )
    return key


MANIFEST = "manifest.json"
PAGES = ("card.md", "croissant.json", "dpia.html", "report.html")
MAX_BYTES, MAX_DEPTH = 1 << 26, 50  # of a manifest


def _list(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _object(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def _is(*kinds: type) -> Callable[[Any], bool]:
    """Return what checks the type of a value; true and false are no numbers."""
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


KINDS: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "section": _is(dict),
    "section or null": _is(dict, type(None)),
    "text": _is(str),
    "number": _is(int, float),
    "count": lambda value: _is(int)(value) and 0 <= value < 1 << 53,
    "positive": lambda value: _is(int, float)(value) and 0 < value < 1e15,
    "texts": _list(_is(str)),
    "texts by name": _object(_is(str)),
    "pairs": _list(lambda pair: KINDS["texts"](pair) and len(pair) == 2),
    "counts": _object(lambda value: KINDS["count"](value)),
    "settings": _object(_is(str, int, float, bool)),
    "settings by section": _object(lambda value: KINDS["settings"](value)),
    "size": lambda value: KINDS["count"](value) and value > 0,
}
SHAPE: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
NO_CATEGORY = "none"  # what a release of a file without categories discloses of them
PRIVATE_MARK = "ghostpoi-private"  # class of the body of every page that shows clean data


def read_manifest(release: Path) -> dict[str, Any]:
    """Read the manifest of a complete release and check its shape."""
    path = release / MANIFEST
    if not release.is_dir():
        raise InputError(f"{release} is not a folder; give the folder that protect wrote")
    if not path.is_file():
        raise InputError(f"{release} has no {MANIFEST}, so it is not a complete release; make it again with protect")
    try:
        with readable(path), path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
        manifest: dict[str, Any] = json.loads(text.decode("utf-8"), object_pairs_hook=without_repeats)
        _check_shape(manifest)
    except Repeated as e:  # what is lost could be anything
        raise InputError(f"{path} names {e} twice in one object; make the release again with protect") from None
    except (ValueError, RecursionError) as e:
        raise InputError(f"{path} is not a manifest of ghostpoi ({e}); make the release again with protect") from None
    return manifest


def _check_shape(manifest: Any) -> None:
    """Check everything that readers of a manifest rely on."""
    if not isinstance(manifest, dict):
        raise ValueError("it is not a JSON object")
    if _depth(manifest) > MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    for section, keys in SHAPE.items():
        if (found := section_of(manifest, section)) is None:
            continue
        for key, kind in keys.items():
            name = f"{section}.{key}".removeprefix(".")
            if key not in found:
                if not kind.endswith("?"):
                    raise ValueError(f"{name} is missing")
            elif not KINDS[kind.removesuffix("?")](found[key]):
                raise ValueError(f"{name} has the wrong type")
    if manifest["plausibility"] is not None and "drawn_own" not in manifest["rows"]:
        raise ValueError("rows.drawn_own is missing")
    if not {"gap_km", "column"} & manifest.get("regions", {"column": ""}).keys():
        raise ValueError("regions.gap_km is missing")
    for name in (manifest["data"]["file"], *manifest["data"].get("beside", {})):
        if not _can_name(name) or Path(name).name != name:
            raise ValueError("data.file is not a plain file name")
    if not all(_can_name(one) for name in manifest["data"].get("parts", {}) for one in name.split("/")):
        raise ValueError("data.parts are not plain paths")


def section_of(manifest: dict[str, Any], path: str) -> dict[str, Any] | None:
    """Return a section of a manifest, which may lie in another one; None if it has none."""
    found: Any = manifest
    for name in filter(None, path.split(".")):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def unknown_keys(manifest: dict[str, Any]) -> list[str]:
    """Return the keys that no release has: they could hold anything."""
    closed = {section: keys for section, keys in SHAPE.items() if "*" not in keys}
    return sorted(
        f"{section}.{key}".removeprefix(".")
        for section, keys in closed.items() for key in section_of(manifest, section) or () if key not in keys
    )  # fmt: skip


def _can_name(name: str) -> bool:
    """Return whether a file or a folder inside the release can have this name."""
    surrogates = any("\ud800" <= c <= "\udfff" for c in name)
    return not surrogates and "\0" not in name and name not in ("", ".", "..")


def _depth(value: Any) -> int:
    """Return how deeply a value is nested, level by level: recursion has a limit."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [v for c in level for v in (c.values() if isinstance(c, dict) else c) if isinstance(v, dict | list)]
    return depth


def hash_complaint(release: Path, manifest: dict[str, Any]) -> str | None:
    """Return how the data file, or one that belongs to it, differs from the manifest, or None."""
    data = manifest["data"]
    if links := sorted(str(path.relative_to(release)) for path in release.rglob("*") if path.is_symlink()):
        return f"{links[0]} is a link, which may lead to private data; put the file itself there"
    parts = {f"{data['file']}/{name}": stated for name, stated in data.get("parts", {}).items()}
    for name, stated in (parts | {data["file"]: data["sha256"]} | data.get("beside", {})).items():
        path = release / name
        if not (path.is_dir() if parts and name == data["file"] else path.is_file()):
            return f"{name} is missing"
        if joint_hash(file_hashes(path)) != stated:
            return f"the SHA-256 of {name} differs from the manifest"
    return None


def complaint_about(release: Path, manifest: dict[str, Any]) -> str | None:
    """Return why a release is not what its publisher made, as far as its hash and its signature show, or None."""
    return hash_complaint(release, manifest) or seal_of(release).complaint


def checked_manifest(release: Path) -> dict[str, Any]:
    """Read the manifest of a release; refuse one that is not what its publisher made."""
    manifest = read_manifest(release)
    if complaint := complaint_about(release, manifest):
        raise InputError(f"{release}: {complaint}; make the release again with protect")
    return manifest


def store_manifest(release: Path, manifest: dict[str, Any], private: Path) -> None:
    """Write the manifest and its signature.

    The key is that of the private folder. Without the key, or if the manifest there is
    unsigned, the new one is unsigned. A manifest that was changed after it was signed is never signed again.
    """
    text = (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()
    path, signature, old = release / MANIFEST, release / SIGNATURE, ""
    signs = has_key(private)
    remove_partial(release)
    if path.exists():
        seal = seal_of(release)
        if seal.complaint:
            raise InputError(f"{release}: {seal.complaint}; make the release again with protect")
        signs = signs and seal.signer == fingerprint(private)
        old = sign(private, path.read_bytes()) if signs else ""
    if not signs:
        signature.unlink(missing_ok=True)
        _write(path, text)
        return
    # At any moment one of the lines signs the manifest that is there.
    line = sign(private, text)
    _write(signature, (old + line).encode())
    _write(path, text)
    if old:
        _write(signature, line.encode())


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as out:
        out.write(content)


def release_identity(manifest: dict[str, Any]) -> dict[str, str]:
    """Return hashes of the data and of the settings, by which figures name the release that they belong to."""
    settings = {key: manifest.get(key) for key in ("settings", "method", "protocol")}
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return {
        "data_sha256": manifest["data"]["sha256"],
        "settings_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def settings_of(manifest: dict[str, Any]) -> Publication:
    """Return the settings that decide sessions and candidate sets. A method that is not installed counts as random."""
    name = manifest["method"]
    settings = publication(name if name in METHODS else "random")
    for section in ("filters", "candidates", "speed", "hide", "method", "identity"):
        values = manifest["settings"].get(section, {}).items()
        settings = override(settings, [f"{section}.{key}={value}" for key, value in values], "the manifest's")
    return settings


def read_data(release: Path, manifest: dict[str, Any], limit: SizeLimit | None = None) -> CheckinFile:
    """Read the data file of a release as its manifest says."""
    source = data_source(release, manifest, limit)
    return formats.read(source, manifest["columns"]["fields"], manifest["data"]["format"])


def data_source(release: Path, manifest: dict[str, Any], limit: SizeLimit | None) -> Source:
    """Return how to read the data file of a release."""
    return Source(release / manifest["data"]["file"], _reading(manifest).of_release(release), limit)


def read_clean(source: Source | Path, mapping: dict[str, str], manifest: dict[str, Any]) -> CheckinFile:
    """Read the clean file of a release: as the user says with an option, otherwise as the manifest says.

    If the user names no table of venues, it lies next to the clean file.
    """
    fields, format = mapping or manifest["columns"]["fields"], manifest["data"]["format"]
    return formats.read(clean_source(Source.of(source), manifest), fields, format)


def clean_source(source: Source, manifest: dict[str, Any]) -> Source:
    """Return how to read the clean file of a release."""
    ours, given = _reading(manifest).in_folder(source.path.parent).stated, source.reading.stated
    if "venues" in ours and "venues" not in given and not Path(ours["venues"]).exists():
        raise InputError(
            f"the release of {source} was made with a table of venues, and {ours['venues']} does not exist; name the "
            f"table with {option('venues', 'FILE')}"
        )
    return replace(source, reading=formats.Reading(**ours | given))


def _reading(manifest: dict[str, Any]) -> formats.Reading:
    return formats.Reading.of(manifest["data"].get("reading", {}))


def withholds(manifest: dict[str, Any]) -> bool:
    """Return whether a release omits all rows without a candidate, and not only those of hidden venues."""
    rows = manifest["rows"]
    return rows["withheld"] > rows["hidden"]["withheld"]


def with_groups(table: Checkins, manifest: dict[str, Any]) -> Checkins:
    """Return the clean table with the groups of categories that the release was made with."""
    return replace(table, category_groups=dict(manifest["disclosure"]["category_groups"]))
