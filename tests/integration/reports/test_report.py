"""The page without a browser: what it shows, what it must not show, where it may be written, and every refusal."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_releases
import small_city
from small_city import called, sentence

from ghostpoi import formats
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.audits.controls import CONTROLS
from ghostpoi.data.geo import haversine_km
from ghostpoi.draw.methods import METHODS
from ghostpoi.formats import Source
from ghostpoi.reports import page as pages
from ghostpoi.reports import texts
from ghostpoi.reports.charts.city import EXAMPLES, example_days
from ghostpoi.reports.charts.plausibility import plausibility_charts
from ghostpoi.reports.page import write_pages
from ghostpoi.reports.page_data import read_page_data

LIMIT = 1_500_000


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release of ghost with an audit, its private folder next to it."""
    folder = sample_releases.copied(small_city.release("ghost"), tmp_path)
    sample_releases.put_audit(folder, sample_releases.audit())
    return folder


@pytest.fixture
def other(tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    return sample_releases.copied(small_city.release("random"), tmp_path / "other")


def text(path: Path) -> str:
    return path.read_text("utf-8")


def write_report(release: Path, **request: Any) -> Path:
    """Write the pages and return the path of the first."""
    return write_pages(release, **request)[0]


def test_the_report_imports_without_torch() -> None:
    every = "[importlib.import_module(m.name) for m in pkgutil.walk_packages(reports.__path__, 'ghostpoi.reports.')]"
    code = f"import importlib, pkgutil, sys; from ghostpoi import reports; {every}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command_writes_the_pages_and_the_release_still_verifies(release: Path) -> None:
    done = called("report", release)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(release / name) for name in ("report.html", "card.md", "croissant.json")]
    assert called("verify", release, "--against", small_city.city()).returncode == 0
    assert (release / "report.html").stat().st_size < LIMIT
    assert (release / "report.html").stat().st_mode & 0o777 == 0o644


def test_every_adversary_and_control_is_named_and_failure_comes_first(release: Path) -> None:
    page = text(write_report(release))
    none, frequency = (ADVERSARIES[name].label for name in ("none", "frequency"))
    words = "Gives away nothing measurable without a leak; gives away much with a 5% leak (default adversaries)"
    assert '<h2 id="decision-title" class="headline much">Gives away much</h2>' in page
    assert f'<p class="lead" id="verdict">{words}. A random release protects better.</p>' in page
    for name in (none, frequency, "tomorrow&#39;s &lt;new&gt;+one", f"{CONTROLS['random']}, {frequency}"):
        assert f'<th scope="row">{name}</th>' in page
    assert page.count('class="badge"') == 2
    assert "against same venue again (floor): -.030 (-.040 to -.020) in acc@1, on 4,000 test steps.</p>" in page
    assert f'<span class="small">{texts.adversary_text("frequency")}</span>' in page
    figure = sample_releases.charts(release)["verdict"].figure
    assert [text for _, text in figure.y.ticks] == ["As released", "Frequency table", "Tomorrow's <new>+one"]
    assert figure.series[0].values[0] == pytest.approx(100 * np.mean([0.01, 0.012]))
    assert "mean ± standard deviation over 2 seeds" in page


def test_what_adversaries_have_without_the_release_is_in_sight(release: Path) -> None:
    page = " ".join(text(write_report(release)).split())
    assert '<h3>What a model learns</h3> <p class="big">9%</p>' in page
    assert "by somebody who holds 5% of the real data. With the real data it is 14%.</p>" in page
    assert '<button type="button">On moves</button>' in page
    near = '<th scope="row">far moves (over 1 km), within 1 km</th>'
    assert near + "".join(f'<td class="value">{one}%</td>' for one in ("16.3", "17.1", "30.2")) in page
    series = sample_releases.charts(release)["verdict"].figure.series
    lines = {one.name: one.marks[0].x0 for one in series if one.kind == "rule"}
    assert lines[CONTROLS["stay"]] == pytest.approx(100 * np.mean([0.04, 0.042]))
    assert lines[CONTROLS["leak-only"]] == pytest.approx(100 * np.mean([0.06, 0.062]))
    assert CONTROLS["popularity"] not in lines  # stay is better


def test_the_matched_control_stands_in_every_chart_of_adversaries(release: Path) -> None:
    """A random release from the method's own sets, next to each release."""
    found = sample_releases.audit()
    found["controls"] |= {
        name: sample_releases.victim(0.02, 0.1) for name in ("random-matched", "random-matched+frequency")
    }
    sample_releases.put_audit(release, found)
    charts = sample_releases.charts(release)
    for name in ("verdict", "tradeoff"):
        assert any(CONTROLS["random-matched"] in one.name for one in charts[name].figure.series), name


def test_the_public_page_rests_on_the_release_alone(release: Path, tmp_path: Path) -> None:
    """The strongest of the privacy tests: without the private folder, the same bytes come out."""
    first = write_report(release).read_bytes()
    shutil.rmtree(tmp_path / "release.private")
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.move(release, tmp_path / "elsewhere" / "release")
    assert write_report(Path(moved)).read_bytes() == first


def test_the_public_page_holds_nothing_clean(release: Path, other: Path) -> None:
    page = text(write_report(release, compare=(other,)))
    clean, released = formats.read(small_city.city()).table, formats.read(release / "checkins.txt").table
    for secret in (
        str(small_city.SEED),
        f"{small_city.SEED:x}",
        str(release.parent),
        str(small_city.scratch()),
        "release.private",
    ):
        assert secret not in page
    assert not [v for v in set(clean.venue_ids) - set(released.venue_ids) if v in page]
    shown = sample_releases.embedded(page, "map-data")
    assert not shown["clean"]
    assert len(shown["methods"]) == 1  # a second draw of the same rows would help an adversary
    rows = example_days(read_page_data([Source(release)], None))
    assert len(rows) == len(shown["examples"]) == EXAMPLES
    for row, example in zip(rows, shown["examples"], strict=True):
        assert set(example) == {"label", "times", "sides"}
        assert example["sides"][0]["venue"] == released.venue_ids[released.venue[row]].tolist()
        changed = clean.venue_ids[clean.venue[row]] != released.venue_ids[released.venue[row]]
        assert changed.any()
        around = json.dumps(example)
        own = set(released.venue_ids[released.venue[row]])
        assert not [v for v in clean.venue_ids[clean.venue[row[changed]]] if v in around and v not in own]
    charts = sample_releases.charts(release)
    assert "flows" not in charts
    assert all(one.name != "clean" for chart in charts.values() for one in chart.figure.series)
    assert charts["top"].figure.series[0].values == sorted(np.bincount(released.venue).tolist())[::-1][:10]


def test_the_private_page_shows_both_sides_and_says_so(release: Path, other: Path, tmp_path: Path) -> None:
    private = tmp_path / "release.private"
    done = called("report", release, "--private", private, "--with-clean", "--compare", other)
    assert done.returncode == 0, done.stderr
    path = private / "report.html"
    assert done.stdout.split() == [str(path)]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_size < LIMIT
    assert not (release / "report.html").exists()
    page = text(path)
    assert re.search(r'<p class="banner"[^>]*><strong>Contains clean data</strong> . do not publish', page)
    assert "<title>PRIVATE: " in page
    assert str(private) not in page
    assert f"{small_city.SEED:x}" not in page
    shown = sample_releases.embedded(page, "map-data")
    assert shown["methods"] == [METHODS["ghost"].label, METHODS["random"].label]
    clean, released = formats.read(small_city.city()).table, formats.read(release / "checkins.txt").table
    second = formats.read(other / "checkins.txt").table
    for row, example in zip(example_days(read_page_data([Source(release)], None)), shown["examples"], strict=True):
        assert example["clean"]["venue"] == clean.venue_ids[clean.venue[row]].tolist()
        for side, table in zip(example["sides"], (released, second), strict=True):
            assert side["venue"] == table.venue_ids[table.venue[row]].tolist()
            km = haversine_km(clean.lat[row], clean.lon[row], table.lat[row], table.lon[row])
            assert side["moved"] == pytest.approx(km.tolist(), abs=0.01)
    charts = sample_releases.charts(release, private)
    for name in ("popularity", "top", "gyration", "speed"):
        assert [one.name for one in charts[name].figure.series] == ["clean", "released"]
    assert "flows" in charts


def test_verify_finds_a_private_page_in_a_release(release: Path, tmp_path: Path) -> None:
    own = write_report(release, private=tmp_path / "release.private", with_clean=True)
    shutil.copy(own, release / "report.html")
    done = called("verify", release)
    assert done.returncode == 1
    assert "found report.html with clean data; remove it before you publish the release" in done.stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--with-clean"], "--with-clean needs --private DIR"),
        (["--private", "PRIVATE"], "add --with-clean"),
        (["--private", "PRIVATE", "--with-clean", "-o", "RELEASE/report.html"], "would hold clean data"),
        (["--private", "PRIVATE", "--with-clean", "-o", "RELEASE/sub/../page.html"], "would hold clean data"),
        (["--private", "PRIVATE", "--with-clean", "-o", "link/x.html"], "would hold clean data"),
        (["--private", "nowhere", "--with-clean"], "nowhere is not a folder"),
        (["--private", "OTHER.private", "--with-clean"], "belongs to another release"),
        (["--private", "RELEASE", "--with-clean", "-o", "x.html"], "holds no pairs.npz"),
        (["-o", "RELEASE/page.html"], "must be called report.html"),
        (["-o", "no/such/page.html"], "does not exist"),
        (["-o", "."], "is a folder"),
        (["--compare", "nowhere"], "nowhere is neither a release folder nor a file"),
        (["--compare", "HOSTILE"], "compare releases of one file"),
    ],
)
def test_refusals(
    release: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(release)
    names = {
        "RELEASE": str(release), "PRIVATE": f"{release}.private", "OTHER": str(other),
        "HOSTILE": str(sample_releases.hostile().folder),
    }  # fmt: skip
    for name, path in names.items():
        options = [option.replace(name, path) for option in options]
    assert says in sentence(called("report", release, *options))
    assert not list(tmp_path.rglob("*.html"))
    assert not list(tmp_path.rglob("*.partial"))


def test_refusals_of_a_broken_release(release: Path, tmp_path: Path) -> None:
    assert "is neither a release folder nor a file" in sentence(called("report", tmp_path / "nothing"))
    sample_releases.put_audit(release, {"clean": {}})
    assert "run ghostpoi audit again" in sentence(called("report", release))
    with (release / "checkins.txt").open("ab") as out:
        out.write(b" ")
    assert "differs from the manifest" in sentence(called("report", release))
    (tmp_path / "release.private" / "pairs.npz").write_bytes(b"no zip")
    (release / "manifest.json").unlink()
    assert "no manifest.json" in sentence(called("report", release))


def test_damaged_pairs(tmp_path: Path) -> None:
    folder = sample_releases.copied(small_city.release("random"), tmp_path)
    pairs = tmp_path / "release.private" / "pairs.npz"
    ask = ("report", folder, "--private", pairs.parent, "--with-clean")
    with np.load(pairs) as file:
        old = {name: file[name] for name in ("clean", "released", "poi_id")}
    np.savez_compressed(pairs, **old)
    assert "cannot be read" in sentence(called(*ask))
    pairs.write_bytes(b"PK but no zip")
    assert "cannot be read" in sentence(called(*ask))


def test_withheld_rows_stay_aligned(tmp_path: Path) -> None:
    rows = [
        [f"u{k % 3}", f"v{v}", "lone" if v == 6 else "c", 1 + 0.001 * v, 2, 1_333_400_000 + 1800 * k, f"n{v}"]
        for k in range(70)
        for v in [k % 7]
    ]
    file = sample_releases.write_csv(tmp_path / "in.csv", rows)
    whole = small_city.protect(file, tmp_path / "whole", "--method", "random", *sample_releases.SETS)
    part = small_city.protect(
        file, tmp_path / "part", "--method", "random", "--no-candidate", "withhold", *sample_releases.SETS
    )
    assert part.manifest["rows"]["withheld"] == 10
    for one, two in ((whole, part), (part, whole)):
        page = text(write_report(one.folder, private=one.private, with_clean=True, compare=(two.folder,)))
        for example in sample_releases.embedded(page, "map-data")["examples"]:
            for side in example["sides"]:
                for clean, released, moved in zip(
                    example["clean"]["category"], side["category"], side["moved"], strict=True
                ):
                    assert released == clean or moved is None
    assert '"withheld"' in text(whole.private / "report.html")
    assert called("verify", part.folder, "--against", file).returncode == 0


def test_without_an_audit_nothing_is_claimed(tmp_path: Path) -> None:
    page = text(write_report(sample_releases.copied(small_city.release("random"), tmp_path)))
    assert "Not audited yet" in page
    assert "Gives away" not in page.split("<style>")[0] + page.split("</style>")[1].split("<script")[0]
    assert sample_releases.chart_ids(page) == {
        "rows", "distance", "sizes", "speed", "popularity", "top", "categories", "gyration", "hours",
    }  # fmt: skip


def test_a_private_page_measures_utility_without_an_audit(tmp_path: Path) -> None:
    folder = sample_releases.copied(small_city.release("random"), tmp_path)
    page = text(write_report(folder, private=tmp_path / "release.private", with_clean=True))
    assert page.count('class="meter"') == len(texts.UTILITY)


def test_ten_rows(tmp_path: Path) -> None:
    folder = sample_releases.copied(sample_releases.ten_rows(), tmp_path)
    sample_releases.put_audit(folder, sample_releases.audit(seeds=1, naturalness=None))
    page = text(write_report(folder))
    shown = sample_releases.embedded(page, "map-data")
    assert sum(len(e["times"]) for e in shown["examples"]) == 10
    assert "one seed, so the spread is unknown" in page
    assert text(write_report(folder, private=tmp_path / "release.private", with_clean=True))


def test_a_city_across_the_antimeridian_is_one_city() -> None:
    venues = read_page_data([Source(sample_releases.hostile().folder)], None).venues
    x, y = (side[1:] for side in venues.xy)  # row 0 is no venue
    assert np.ptp(x) < 10
    assert np.ptp(y) < 10
    km = np.hypot(x - x[0], y - y[0])
    every = np.arange(1, len(x) + 1)
    assert km == pytest.approx(venues.km(every, np.ones_like(every)), abs=0.01)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    folder = sample_releases.copied(sample_releases.hostile(), tmp_path)
    sample_releases.put_audit(folder, sample_releases.audit())
    for page in (
        text(write_report(folder)),
        text(write_report(folder, private=tmp_path / "release.private", with_clean=True)),
    ):
        assert len(re.findall(r"<script[ >]", page)) == 2
        assert not re.search("[<>&\u2028\u2029]", sample_releases.block(page, "map-data"))
        rest = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)
        assert "onerror=window" not in rest.replace("&lt;img src=x onerror=window", "")
        assert "👩‍👩‍👧 Émile 🍜" in json.dumps(sample_releases.embedded(page, "map-data"), ensure_ascii=False)


def test_the_browser_may_run_the_script_alone(release: Path) -> None:
    page = text(write_report(release))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    allowed = re.findall(r"sha256-([A-Za-z0-9+/=]+)", policy[1].replace("&#39;", "'"))
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts] == allowed
    head = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    assert not re.search(r"""(src|href)\s*=\s*["']?\s*(https?:)?//""", head)
    assert "url(" not in head


def test_the_same_release_gives_the_same_bytes_and_nothing_half_written(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_report(release).read_bytes()
    assert write_report(release).read_bytes() == first

    def broken(*found: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(pages, "render", broken)
    with pytest.raises(KeyboardInterrupt):
        write_report(release)
    assert (release / "report.html").read_bytes() == first
    assert not list(release.glob(".*"))


def test_methods_compare_by_their_measures(release: Path, other: Path) -> None:
    alone = text(write_report(release))
    assert "naturalness" not in sample_releases.chart_ids(alone)  # one point is no chart
    assert "-4.200" in alone
    sample_releases.put_audit(other, sample_releases.audit(fails=False, naturalness={"released": -5.0}))
    groups = pages.charts_of(read_page_data([Source(release), Source(other)], None))
    charts = {c.id: [one for one in c.figure.series if one.kind == "points"] for c in groups["tradeoff"]}
    assert [one.name for one in charts["tradeoff"]] == [
        METHODS["ghost"].label, METHODS["random"].label, f"{CONTROLS['random']} (control)", CONTROLS["stay"],
        CONTROLS["leak-only"],
    ]  # fmt: skip
    heights = [one.values[0] for one in charts["tradeoff"]]  # leak-only beats the adversaries of the second
    assert heights[:4] == pytest.approx([0.05, 0.14, 0.12, 0.16])
    assert charts["tradeoff"][3].marks[0].x0 == pytest.approx(0.16)
    assert [one.values[0] for one in charts["naturalness"]] == [-4.2, -5.0]
    twice = text(write_report(release, compare=(release,), output=release.parent / "twice.html"))
    name = f"{METHODS['ghost'].label} (release)"
    assert all(f'<th scope="row">{text}</th>' in twice for text in (name, f"{name}, no. 2"))


def test_pages_go_beside_the_release_only_by_default(release: Path) -> None:
    place = release.parent / "page.html"
    assert write_pages(release, output=place) == [place]
    assert sorted(p.name for p in release.iterdir()) == ["checkins.txt", "manifest.json"]  # edited, so unsigned


def test_audit_ends_with_the_report(tmp_path: Path) -> None:
    release = sample_releases.copied(small_city.release("random"), tmp_path)
    tiny = (
        "victim.dim=16", "victim.heads=2", "victim.feed_forward=16", "victim.layers=1", "training.epochs=1",
        "filters.val_share=0.2", "filters.train_share=0.6",
    )  # fmt: skip
    sets = [word for text in tiny for word in ("--set", text)]
    ask = (
        "--victim",
        "transformer",
        "--adversaries",
        "none",
        "--seeds",
        1,
        "--no-naturalness",
        "--device",
        "cpu",
        "--report",
        *sets,
    )
    done = called("audit", small_city.city(), release, *ask)
    assert done.returncode == 0, done.stderr
    assert f"wrote {release / 'report.html'}" in done.stderr
    page = text(release / "report.html")
    assert "Not audited yet" not in page
    assert "one seed, so the spread is unknown" in page
    assert called("verify", release, "--against", small_city.city()).returncode == 0


def test_audit_with_report_is_refused_before_the_work(tmp_path: Path) -> None:
    release = small_city.release("random")
    assert "--report needs" in sentence(called("audit", release.file, release.file, "--report"))
    assert "--report shows the stored audit" in sentence(
        called("audit", release.file, release.folder, "--report", "--no-store")
    )


def test_a_crowd_release_shows_its_crowds() -> None:
    data = read_page_data([Source(small_city.release("crowd").folder)], None)
    charts = {chart.id: chart for chart in plausibility_charts(data)}
    assert charts["sizes"].caption.startswith(f"{METHODS['crowd'].summary} Settings: size 48, ")
    shares = charts["sizes"].figure.series[0].values
    assert sum(shares) == pytest.approx(1, abs=1e-3)
    assert shares[1] == 0  # no crowd holds a single venue
    assert len(shares) < 2 * 48
    assert sum(charts["distance"].figure.series[0].values) == pytest.approx(1, abs=1e-3)
    assert len(charts["sizes"].figure.series) == 1  # crowds are not widened


def test_every_column_of_the_outcomes_adds_up() -> None:
    figure = sample_releases.charts(small_city.release("ghost").folder)["rows"].figure
    assert [text.partition(":")[0] for _, text in figure.y.ticks] == ["in sessions", "outside sessions"]
    assert np.sum([one.values for one in figure.series], axis=0) == pytest.approx([100, 100])
    assert [mark.x1 for mark in figure.series[-1].marks] == pytest.approx([100, 100])
