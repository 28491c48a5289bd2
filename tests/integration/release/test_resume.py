"""What goes on with --resume, and what is refused: other settings, other files, damaged notes."""

from pathlib import Path

import pytest
from small_city import RICH, SEED, SETS, called, city, protect, release, rich_csv, sentence


def test_a_folder_without_its_note_after_the_end_is_no_interrupted_run(tmp_path: Path) -> None:
    """The run was killed while it removed its folder."""
    made = protect(city(), tmp_path / "r", "--method", "random", "--seed", SEED)
    (made.private / "unfinished").mkdir()
    (made.private / "unfinished" / "checkpoint.safetensors").touch()
    again = ("protect", city(), "-o", tmp_path / "s", "--private", made.private, "--method", "random", *SETS)
    assert "holds the private files of a finished run" in sentence(called(*again))
    assert "holds the private files of a finished run" in sentence(called(*again, "--resume"))
    assert called(*again, "--force").returncode == 0


def interrupted(tmp_path: Path, file: Path, *more: object) -> Path:
    """Leave the private folder of a run that stopped before its first round."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ghostpoi.release.make.protect_table", _stop)
        done = called("protect", file, "-o", tmp_path / "r", "--method", "random", "--seed", SEED, *SETS, *more)
    assert done.returncode == 130
    assert done.stderr == "ghostpoi: interrupted: go on with --resume\n"
    return tmp_path / "r.private" / "unfinished" / "run.json"


def _stop(*arguments: object, **more: object) -> None:
    raise KeyboardInterrupt


def test_only_the_same_run_goes_on(tmp_path: Path) -> None:
    interrupted(tmp_path, rich_csv(), *RICH)
    arguments = ("protect", rich_csv(), "-o", tmp_path / "r", "--method", "random", *SETS, *RICH, "--resume")
    assert "--seed differs" in sentence(called(*arguments, "--seed", SEED + 1))
    differing = {
        ("--set", "speed.limit_kmh=50"): "speed.limit_kmh was 60.0, now 50.0",
        ("--method", "pgd"): "--method was random, now pgd",
        ("--keep", "mood"): "--keep was checkin, now checkin mood",
        ("--no-candidate", "withhold"): "--no-candidate was keep, now withhold",
        ("--timezone", "Asia/Tokyo"): "--timezone was not given, now Asia/Tokyo",
        ("--map", "category=gender"): "--map was poi=spot user=Who, now category=gender poi=spot user=Who",
    }
    for words, says in differing.items():
        said = sentence(called(*arguments, *words))
        assert said.startswith(f"the settings differ from those of the run in {tmp_path / 'r.private'} (")
        assert f"({says})" in said
        assert said.count(" was ") == 1
    other = tmp_path / "x.csv"
    other.write_bytes(rich_csv().read_bytes().replace(b"good", b"bad", 1))
    assert f"{other} is not the file of the run" in sentence(called(arguments[0], other, *arguments[2:]))
    assert not (tmp_path / "r").exists()
    assert called(*arguments).returncode == 0  # without --seed: with its own
    assert (tmp_path / "r" / "checkins.csv").read_bytes() == release("random", "csv").data.read_bytes()


@pytest.mark.parametrize("harm", ["", "{", "[]", '{"seed": "SEEDx"}', '{"seed": 7}', '{"seed": "SEED"}'])
def test_a_damaged_note_is_refused_without_showing_it(harm: str, tmp_path: Path) -> None:
    note = interrupted(tmp_path, city())
    note.write_text(harm.replace("SEED", f"{SEED:x}"))
    arguments = ("protect", city(), "-o", tmp_path / "r", "--method", "random", *SETS)
    assert (
        sentence(called(*arguments, "--resume")) == f"{note} is damaged; start again with --force and without --resume"
    )
    assert called(*arguments, "--force").returncode == 0


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    done = called("protect", city(), "-o", tmp_path / "r", "--method", "random", "--seed", SEED, *SETS, "--resume")
    assert done.returncode == 0
    assert done.stderr == f"nothing to resume in {tmp_path / 'r.private'}; starting from the beginning\n"
    assert (tmp_path / "r" / "checkins.txt").read_bytes() == release("random").data.read_bytes()
