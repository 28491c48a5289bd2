"""Columns and user ids that name people: refused, kept on request, dropped, and listed with all other columns."""

from pathlib import Path

import polars as pl
import pytest
from small_city import MAP, SEED, SETS, called, protect, rich_frame, sentence


def city(path: Path, **columns: str) -> Path:
    """The small city with columns made from a pattern with the user id, e.g. mail="u{}@x.org"."""
    frame = rich_frame().drop("checkin", "mood", "gender")
    who = frame["Who"].cast(pl.String)
    made = {name: pl.Series([pattern.format(int(w)) for w in who]) for name, pattern in columns.items()}
    frame.with_columns(**made).write_csv(path)
    return path


@pytest.mark.parametrize(
    ("name", "pattern", "what"),
    [
        ("mail", "u{}@example.org", "email addresses"),
        ("tel", "+44 20 7946 {:04}", "phone numbers"),
        ("ip", "10.0.0.{}", "IP addresses"),
        ("idfa", "6d92078a-8246-4ba4-{:04x}", "ids of devices"),
    ],
)
def test_a_column_that_names_people_is_refused(name: str, pattern: str, what: str, tmp_path: Path) -> None:
    file = city(tmp_path / "f.csv", **{name: pattern})
    words = ("protect", file, "-o", tmp_path / "r", *SETS, *MAP)
    assert sentence(called(*words)) == (
        f"{file}: the column {name!r} holds {what}, which identify people; leave it out with --drop {name}, or keep it "
        f"at your own risk with --keep {name}"
    )
    assert sentence(called(*words, "--dry-run")) == sentence(called(*words))
    assert [path.name for path in tmp_path.iterdir()] == ["f.csv"]


def test_several_are_named_together(tmp_path: Path) -> None:
    file = city(tmp_path / "f.csv", mail="u{}@example.org", tel="+44 20 7946 {:04}")
    said = sentence(called("protect", file, "-o", tmp_path / "r", *SETS, *MAP))
    assert said.endswith(
        "2 columns identify people: 'mail' holds email addresses, 'tel' holds phone numbers; leave them out with "
        "--drop mail --drop tel, or keep them at your own risk with --keep mail --keep tel"
    )


def test_protect_lists_what_becomes_of_every_column(tmp_path: Path) -> None:
    file = city(tmp_path / "f.csv", mail="u{}@example.org", tel="+44 20 7946 {:04}", source="app")
    made = protect(file, tmp_path / "r", "--seed", SEED, *MAP, "--keep", "mail", "--drop", "tel")
    assert "warning: the column 'mail', which --keep names, holds email addresses" in made.done.stderr
    table = [line.split(None, 2) for line in made.done.stdout.splitlines()]
    for row in (
        ["column", "in", "the release  why"],
        ["Who", "kept", "the user id, on which the release relies"],
        ["timestamp", "kept", "the time, on which the release relies"],
        ["spot", "changed", "follows from the venue"],
        ["address", "changed", "follows from the venue"],
        ["mail", "kept", "kept on request, at the publisher's risk"],
        ["source", "kept", "the same in all rows"],
        ["tel", "dropped", "left out on request"],
    ):
        assert row in [[word.strip() for word in line] for line in table], row
    assert made.manifest["columns"]["why"] == {
        "mail": "kept on request, at the publisher's risk", "source": "the same in all rows",
    }  # fmt: skip
    assert called("verify", made.folder, "--against", file).returncode in (0, 1)


@pytest.mark.parametrize(
    ("pattern", "what"), [("u{}@x.org", "email addresses"), ("+44 20 7946 {:04}", "phone numbers")]
)
def test_user_ids_by_which_people_are_reached_become_random(pattern: str, what: str, tmp_path: Path) -> None:
    file = city(tmp_path / "f.csv", Who=pattern)
    words = ("protect", file, "-o", tmp_path / "r", *SETS, *MAP, "--seed", SEED)
    assert sentence(called(*words)) == (
        f"{file}: the user ids in the column 'Who' are {what}, which identify people; replace them by random ids with "
        "--pseudonyms file, or keep them at your own risk with --keep Who"
    )
    made = protect(file, tmp_path / "r", "--seed", SEED, *MAP, "--pseudonyms", "file")
    before, after = pl.read_csv(file), pl.read_csv(made.data)
    assert not set(before["Who"]) & set(after["Who"])
    assert before["Who"].n_unique() == after["Who"].n_unique()
    assert called("verify", made.folder, "--against", file).returncode == 0
    kept = protect(file, tmp_path / "kept", "--seed", SEED, *MAP, "--keep", "Who")
    assert set(pl.read_csv(kept.data)["Who"]) == set(before["Who"])
