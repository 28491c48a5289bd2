"""The seal of a release: a detached ed25519 signature of its manifest.

The signing key stays in the private folder. The signature file has one line per signature: the algorithm, the public
key and the signature. Anyone can check it; only the owner of the private folder can make it.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.options import option

if TYPE_CHECKING:  # only commands that sign or verify need the package
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
    return _fingerprint(_key(private).public_key().public_bytes_raw())


def sign(private: Path, manifest: bytes) -> str:
    """Return the line of a signature file that signs the bytes of a manifest."""
    key = _key(private)
    return f"ed25519 {key.public_key().public_bytes_raw().hex()} {key.sign(manifest).hex()}\n"


def read_seal(signature: Path, manifest: bytes) -> Seal:
    """Check the signature file of a manifest. One valid line is enough: a killed audit may leave an older one."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

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
            return Seal(signer=_fingerprint(public))
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


def _fingerprint(public: bytes) -> str:
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
            f"{private / KEY} is not an ed25519 key; restore it from a copy, or delete it to get a new one"
        )
    return key
