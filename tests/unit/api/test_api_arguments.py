"""Arguments of the API: of the right type, of one that can stand for it, or refused in one sentence."""

import inspect
from math import inf
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from small_city import CONFIG, SEED, SMALL, release, rich_frame

import ghostpoi
from ghostpoi import InputError
from ghostpoi.api.door import checked
from ghostpoi.options import Option, declared

STEPS = ("audit", "choose", "export", "inspect", "protect", "report", "synth", "verify")
GIVEN: dict[str, Any] = {"map": {"user": "Who", "poi": "spot"}}


def keywords(step: str) -> dict[str, Option]:
    return {one.keyword: one for one in declared()[step].values() if one.only != "command"}


def call(step: str, name: str, value: Any) -> Any:
    parameters = inspect.signature(getattr(ghostpoi, step)).parameters.values()
    needed = {p.name: "x" for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD}
    return getattr(ghostpoi, step)(**(needed | {name: value}))


@pytest.mark.parametrize("step", STEPS)
def test_every_keyword_refuses_what_is_not_of_its_type(step: str) -> None:
    for name in keywords(step):
        with pytest.raises(InputError, match=rf"^{name}= takes [^;]+, not object$"):
            call(step, name, object())


@pytest.mark.parametrize("step", STEPS)
def test_ranges_are_those_of_the_commands(step: str) -> None:
    for name, one in keywords(step).items():
        if one.min is not None:
            to = "or more" if one.max in (None, inf) else f"to {one.max:g}"
            with pytest.raises(InputError, match=rf"^{name}=-1: give {one.min:g} {to}$"):
                call(step, name, -1)


@pytest.mark.parametrize(
    ("step", "name", "value", "says"),
    [
        ("verify", "release", pd.DataFrame(), "takes a path or what protect returned, not DataFrame"),
        ("report", "compare", pd.DataFrame({"a": [1]}), "takes a list of releases, not DataFrame"),
        ("protect", "method", None, "takes text, not NoneType"),
        ("protect", "map", "poi=poi", 'takes a dict of texts, e.g. {"poi": "venue_id"}, not str'),
        ("protect", "map", {"poi": 1}, 'takes a dict of texts, e.g. {"poi": "venue_id"}, not dict of int, str'),
        ("protect", "keep", ["a", 1], "takes a list of texts, not list of int, str"),
        ("protect", "seed", 1.5, "takes a whole number, not float"),
        ("protect", "seed", True, "takes a whole number, not bool"),
        ("protect", "force", "no", "takes True or False, not str"),
        ("inspect", "venues", 5, "takes a path or a data frame, not int"),
        ("inspect", "cluster_points", 100, 'takes text, e.g. "100m", not int'),
        ("inspect", "timezone", ZoneInfo("Europe/Berlin"), 'takes text, e.g. "America/New_York", not ZoneInfo'),
    ],
)
def test_the_sentence_says_what_to_give(step: str, name: str, value: Any, says: str) -> None:
    with pytest.raises(InputError) as e:
        call(step, name, value)
    assert str(e.value) == f"{name}= {says}"


def test_what_can_stand_for_a_value() -> None:
    def taken(step: str, **given: Any) -> dict[str, Any]:
        return checked(step, inspect.signature(getattr(ghostpoi, step)), ["x"], given)

    assert taken("protect", keep="note", drop=pd.Index(["a", "b"]), set="method.size=5") == {
        "source": "x", "keep": ["note"], "drop": ["a", "b"], "set": ["method.size=5"],
    }  # fmt: skip
    found = taken("protect", seed=np.int64(5), force=np.True_, workers=np.uint8(2), missing=None)
    assert [type(value) for value in found.values()] == [str, int, bool, int, type(None)]
    assert type(taken("audit", release="y", leak=np.float32(0.5))["leak"]) is float
    assert taken("report", compare=release().folder)["compare"] == [release().folder]
    with pytest.raises(TypeError, match="unexpected keyword argument 'tine'"):
        taken("verify", tine=1)
    with pytest.raises(TypeError, match=r"verify\(\): missing a required argument: 'release'"):
        ghostpoi.verify()  # type: ignore[call-arg]


def test_one_text_stands_for_a_list_of_one(tmp_path: Any) -> None:
    frame = rich_frame()
    made = ghostpoi.protect(frame, "random", seed=SEED, set=SMALL, config=CONFIG, keep="checkin", drop="mood", **GIVEN)
    assert made.table.columns == [name for name in frame.columns if name != "mood"]
    frame.write_csv(tmp_path / "plain.csv", include_header=False)
    found = [
        ghostpoi.inspect(tmp_path / "plain.csv", columns=c, **GIVEN) for c in (frame.columns, ",".join(frame.columns))
    ]
    assert found[0].summary == found[1].summary
