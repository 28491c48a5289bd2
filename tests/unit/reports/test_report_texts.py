"""The texts and colours of the page: headlines, labels, shares, what makes a name harmless."""

import json
import re
from pathlib import Path

import sample_releases

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.audits.controls import CONTROLS
from ghostpoi.audits.verdicts import CANNOT_TELL, LITTLE, MUCH, NOTHING, worst
from ghostpoi.reports import texts
from ghostpoi.reports.audit_view import AuditView, GivenAway, tone_of


def test_text_is_made_harmless() -> None:
    assert texts.plain("a\x00b\nc  \u202ed\ud800") == "a b c d\ufffd"
    assert len(texts.plain("x" * 500)) == texts.LONGEST
    assert str(texts.embedded({"a": ["</script>", float("nan"), 1.5]})) == '{"a":["\\u003c/script\\u003e",null,1.5]}'
    assert json.loads(str(texts.embedded("\u2028&\u2029"))) == "\u2028&\u2029"


def view(no_leak: str, with_leak: str, **more: object) -> AuditView:
    found = sample_releases.audit() | more
    for leak, word in (("no_leak", no_leak), ("with_leak", with_leak)):
        found["gives_away"][leak] |= {"verdict": word}
    audit = AuditView.read({"audit": found | {"verdict": worst([no_leak, with_leak])}}, Path("r"))
    assert audit is not None
    return audit


def test_headlines() -> None:
    assert (
        view(LITTLE, LITTLE).headline == "Gives away a little, without a leak and with a 5% leak (default adversaries)"
    )
    both = "Gives away nothing measurable without a leak; gives away much with a 20% leak (all adversaries)"
    assert view(NOTHING, MUCH, over="all", leak=0.2).headline == both
    said = "Cannot tell what it gives away (partial audit; not run: bigram, habits)"
    partial = {"over": "part", "not_run": ["bigram", "habits"]}
    assert view(NOTHING, NOTHING, **partial).headline == said
    assert [one.verdict for one in view(NOTHING, MUCH, **partial).details.values()] == [CANNOT_TELL, MUCH]
    said = view(NOTHING, MUCH, **partial).details["without a leak"].sentence()
    assert said.endswith("; adversaries of the default set are missing")
    assert view(NOTHING, MUCH, **partial).headline.endswith("(partial audit; not run: bigram, habits)")


def test_tones() -> None:
    assert [tone_of(word) for word in (MUCH, LITTLE, NOTHING, CANNOT_TELL)] == ["much", "little", "nothing", ""]


def test_what_was_compared_is_said() -> None:
    found = view(NOTHING, CANNOT_TELL).details
    stay, leak_only = CONTROLS["stay"], CONTROLS["leak-only"]
    none, frequency = ADVERSARIES["none"].label, ADVERSARIES["frequency"].label
    first = f"{none} against {stay}: -.030 (-.040 to -.020) in acc@1, on 4,000 test steps"
    assert found["without a leak"].sentence() == first
    second = f"{frequency} against {leak_only}: +.090 (+.080 to +.100) in acc@1, on 4,000 test steps"
    nothing = "more test steps would not help, since clean data teaches no more than that"
    assert found["with the leak"].sentence() == f"{second}; {nothing}"
    given = sample_releases.audit()["gives_away"]["no_leak"] | {"verdict": CANNOT_TELL, "positions_needed": 12_000}
    needed = GivenAway.of(given)
    assert needed.sentence() == f"{first}; 4,000 test visits are too few; about 12,000 are needed"
    region = GivenAway.of(given | {"verdict": LITTLE, "pool_verdict": NOTHING, "worst_region": {"region": 7} | given})
    assert region.sentence().endswith(
        f"all regions together: {NOTHING}; worst region 7: {CANNOT_TELL}, {region.interval}"
    )


def test_labels_of_names_that_are_not_registered() -> None:
    assert texts.victim_label("tomorrow") == "tomorrow"
    assert texts.victim_label("random+a+b") == f"{CONTROLS['random']}, a+b"
    assert texts.adversary_text("tomorrow") == ""
    assert texts.adversary_text("none").startswith(f"Knows: {ADVERSARIES['none'].holds}. ")


def test_shares_are_not_rounded_to_all_or_nothing() -> None:
    given = (0.0, 0.0001, 0.004, 0.5, 0.996, 0.9999, 1.0)
    assert [texts.share(s) for s in given] == ["0%", "<0.1%", "0.4%", "50%", "99.6%", ">99.9%", "100%"]
    assert [texts.share(s, 1) for s in given[2:5]] == ["0.4%", "50.0%", "99.6%"]
    assert texts.share(-0.11) == "-11%"


def test_colours_can_be_read() -> None:
    """Text at 4.5 to 1 or more on both pages, marks of charts at 3 to 1."""
    css = texts.asset("style.css")
    blocks = re.findall(r":root \{(.*?)\}", css, re.S)
    assert len(blocks) == 3
    for variables in blocks:
        colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6})", variables))
        for text_colour in ("ink", "muted", "accent", "nothing", "little", "much"):
            for ground in ("paper", "surface"):
                assert contrast(colour[text_colour], colour[ground]) >= 4.5, (text_colour, ground)
        for ground in ("nothing", "little", "much", "warn"):
            assert contrast(colour["on"], colour[ground]) >= 4.5, ground
        for mark in ("blue", "vermillion", "green", "purple"):
            assert contrast(colour[mark], colour["surface"]) >= 3, mark
        assert contrast(colour["inside"], colour["blue"]) >= 4.5


def contrast(one: str, two: str) -> float:
    """As WCAG has it."""

    def light(colour: str) -> float:
        hexes = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
        parts = [int(hexes[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)
