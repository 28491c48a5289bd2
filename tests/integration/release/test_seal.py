"""The seal: a manifest is signed, every change of it is noticed, and an audit signs again only what was intact."""

import json
import shutil
import stat
from pathlib import Path

import pytest
from sample_releases import audit, copied, put_audit
from small_city import SETS, called, city, protect, release, sentence

from ghostpoi.release.manifest import release_identity, seal_of, store_manifest

KEYLESS = "0" * 32
UNSIGNED = "unsigned, so anyone could have changed the figures; compare them with --against FILE"


def private_of(release: Path) -> Path:
    return Path(f"{release}.private")


def line(folder: Path, name: str, *more: object) -> tuple[bool, str]:
    """One line of verify: passed, and what it says."""
    done = called("verify", folder, *more, "--json")
    checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == (0 if all(c["passed"] for c in checks.values()) else 1)
    return checks[name]["passed"], checks[name]["detail"]


def key_of(folder: Path) -> str:
    passed, detail = line(folder, "signature")
    assert passed
    return detail.removeprefix("signed by key ")


def test_protect_signs_and_verify_says_who(tmp_path: Path) -> None:
    made = protect(city(), tmp_path / "r", "--method", "random")
    key = key_of(made.folder)
    assert len(key) == 32
    assert f"signed by key {key}\n" in made.done.stdout
    assert stat.S_IMODE((made.private / "signing.key").stat().st_mode) == 0o600
    assert line(made.folder, "signature", "--signed-by", key.upper()) == (True, f"signed by key {key}")
    assert line(made.folder, "signature", "--signed-by", KEYLESS) == (
        False, f"signed by key {key}, not signed by key {KEYLESS}",
    )  # fmt: skip
    again = called("protect", city(), "-o", made.folder, "--method", "random", *SETS, "--force")
    assert f"signed by key {key}\n" in again.stdout  # the publisher keeps the key


def test_a_fingerprint_must_be_one() -> None:
    assert sentence(called("verify", release("random").folder, "--signed-by", "mine")) == (
        "--signed-by mine is not a fingerprint; give the 32 hexadecimal digits that protect printed"
    )


def test_an_unsigned_release_is_called_unsigned(tmp_path: Path) -> None:
    folder = copied(release("random"), tmp_path)
    (folder / "manifest.sig").unlink()
    assert line(folder, "signature") == (True, UNSIGNED)
    assert line(folder, "signature", "--signed-by", KEYLESS) == (False, f"unsigned, not signed by key {KEYLESS}")


def test_a_changed_manifest_fails_and_is_neither_reported_nor_signed_again(tmp_path: Path) -> None:
    folder = copied(release("random"), tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["plausibility"]["mean_km"] = 0.4
    (folder / "manifest.json").write_text(json.dumps(manifest))
    why = "the manifest is not what manifest.sig signs, so it was changed afterwards"
    assert line(folder, "signature") == (False, why)
    assert sentence(called("report", folder)) == f"{folder} is damaged ({why}); make the release again with protect"
    assert sentence(called("audit", city(), folder)) == f"{folder}: {why}; make the release again with protect"
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(Exception, match="changed afterwards"):
        store_manifest(folder, manifest, private_of(folder))
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


@pytest.mark.parametrize("content", [b"", b"ed25519 00 00\n", b"\xff" * 9000, None])
def test_a_signature_that_is_none(content: bytes | None, tmp_path: Path) -> None:
    folder = copied(release("random"), tmp_path)
    (folder / "manifest.sig").unlink()
    if content is None:
        (folder / "manifest.sig").symlink_to(tmp_path)
        assert line(folder, "signature") == (False, "manifest.sig is not a plain file")
        (folder / "manifest.sig").unlink()
        (folder / "manifest.sig").symlink_to(release("random").folder / "manifest.sig")  # a valid one
        assert line(folder, "signature") == (False, "manifest.sig is not a plain file")
    else:
        (folder / "manifest.sig").write_bytes(content)
        assert line(folder, "signature")[0] is False


def test_a_new_manifest_is_signed_only_with_the_key_that_signed_the_old_one(tmp_path: Path) -> None:
    folder = copied(release("random"), tmp_path)
    key, manifest = key_of(folder), json.loads((folder / "manifest.json").read_text())
    store_manifest(folder, manifest | {"audit": {"of": release_identity(manifest)}}, private_of(folder))
    assert key_of(folder) == key
    assert len((folder / "manifest.sig").read_text().splitlines()) == 1
    other = protect(city(), tmp_path / "other", "--method", "random")
    store_manifest(folder, manifest, other.private)
    assert line(folder, "signature") == (True, UNSIGNED)
    store_manifest(folder, manifest, private_of(folder))  # stays unsigned: anyone may have written it
    assert line(folder, "signature") == (True, UNSIGNED)


def test_a_store_that_stops_between_two_files_leaves_a_valid_seal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(release("random"), tmp_path)
    key, manifest = seal_of(folder).signer, json.loads((folder / "manifest.json").read_text())
    from ghostpoi.release import manifest as module

    real = module._write
    for allowed in range(3):
        left = allowed

        def write(path: Path, content: bytes) -> None:
            nonlocal left
            if left == 0:
                raise OSError(28, "No space left on device")
            left -= 1
            real(path, content)

        monkeypatch.setattr(module, "_write", write)
        with pytest.raises(OSError, match="No space"):
            store_manifest(folder, manifest | {"audit": {"n": allowed}}, private_of(folder))
        assert seal_of(folder).signer == key


def test_a_key_that_is_none(tmp_path: Path) -> None:
    made = protect(city(), tmp_path / "r", "--method", "random")
    (made.private / "signing.key").write_bytes(b"x")
    said = sentence(called("protect", city(), "-o", made.folder, "--method", "random", *SETS, "--force"))
    assert said == (
        f"{made.private / 'signing.key'} is not an ed25519 key; restore it from a backup, or delete it to get a new one"
    )


def test_an_audit_of_other_data_or_settings_fails(tmp_path: Path) -> None:
    one, two = (copied(release(method), tmp_path / method) for method in ("random", "crowd"))
    put_audit(one, audit())
    assert line(one, "audit") == (True, "made for this data and these settings")
    stored = json.loads((one / "manifest.json").read_text())["audit"]
    manifest = json.loads((two / "manifest.json").read_text()) | {"audit": stored}
    (two / "manifest.sig").unlink()
    (two / "manifest.json").write_text(json.dumps(manifest))
    assert line(two, "audit") == (False, "made for other data or settings; run audit again")
    shutil.copy(one / "manifest.json", two / "manifest.json")
    manifest = json.loads((one / "manifest.json").read_text())
    manifest["settings"]["speed"]["limit_kmh"] = 50.0
    (one / "manifest.json").write_text(json.dumps(manifest))
    assert line(one, "audit")[0] is False
    del manifest["audit"]["of"]
    (one / "manifest.json").write_text(json.dumps(manifest))
    assert line(one, "audit")[0] is False


def test_an_audit_needs_the_private_folder_to_sign_again(tmp_path: Path) -> None:
    private = tmp_path / "elsewhere"
    made = protect(city(), tmp_path / "r", "--method", "random", "--private", private)
    split = ("train_share=0.6", "val_share=0.2", "min_session_length=2")
    sets = [word for text in split for word in ("--set", f"filters.{text}")]
    command = ("audit", city(), made.folder, "--victim", "markov", "--seeds", "1", "--no-naturalness", *sets)
    key = key_of(made.folder)
    assert called(*command, "--private", private, "--adversaries", "none").returncode == 0
    assert line(made.folder, "signature") == (True, f"signed by key {key}")
    done = called(*command, "--adversaries", "none,frequency", "--cache", tmp_path / "cache")
    assert done.returncode == 0
    assert "is no longer signed, because its key is not in" in done.stderr
    assert line(made.folder, "signature") == (True, UNSIGNED)
