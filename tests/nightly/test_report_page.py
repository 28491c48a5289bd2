"""The real page in a real browser: headless Chromium, from disk, with the network off."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sample_releases
import small_city
from chromium import Browser, look, needs_chromium, nothing_else_happened, open_page, resize, started, wait

from ghostpoi.draw.methods import METHODS
from ghostpoi.reports.page import write_pages

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as driver:
        yield driver


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All pages that the tests look at, each made once."""
    folder = tmp_path_factory.mktemp("pages")
    for name, release in (("full", small_city.release("ghost")), ("bare", small_city.release("random")),
                          ("hostile", sample_releases.hostile()), ("ten", sample_releases.ten_rows())):  # fmt: skip
        (folder / name).mkdir()
        sample_releases.copied(release, folder / name)
    releases = {name: folder / name / "release" for name in ("full", "bare", "hostile", "ten")}
    sample_releases.put_audit(releases["full"], sample_releases.audit())
    sample_releases.put_audit(releases["hostile"], sample_releases.audit(seeds=1))
    out = {name: write_pages(release)[0] for name, release in releases.items()}
    for name, others in (("full", (releases["bare"],)), ("hostile", ())):
        private = folder / name / "release.private"
        pages = write_pages(releases[name], compare=others, private=private, with_clean=True)
        [out[f"{name} private"]] = pages
    return out


Show = Callable[..., Browser]


@pytest.fixture
def show(browser: Browser, made: dict[str, Path]) -> Iterator[Show]:
    """Opens a page; afterwards nothing was asked for and nobody complained."""
    shown: list[Path] = []
    for log in ("browser", "performance"):
        browser.get_log(log)  # of the test before

    def opened(name: str = "full", width: int = 1280, dark: bool = False) -> Browser:
        look(browser, dark)
        resize(browser, width)
        shown.append(made[name])
        open_page(browser, made[name])
        return browser

    yield opened
    nothing_else_happened(browser, shown)


def key(browser: Browser, selector: str, *keys: str) -> None:
    from selenium.webdriver.common.by import By

    browser.find_element(By.CSS_SELECTOR, selector).send_keys(*keys)


def click(browser: Browser, selector: str) -> None:
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def points(browser: Browser) -> int:
    """Marks of the last trajectory that are drawn on the map."""
    script = """
        const traces = [...document.querySelectorAll('#plot-map .scatterlayer .trace')];
        return traces.pop().querySelectorAll('.point').length"""
    return int(browser.execute_script(script))


def view(browser: Browser) -> list[float]:
    script = "const l = document.getElementById('plot-map')._fullLayout; return [...l.xaxis.range, ...l.yaxis.range]"
    found: list[float] = browser.execute_script(script)
    return found


def width_of(range_: list[float]) -> float:
    return range_[1] - range_[0]


def test_every_chart_is_drawn_with_all_its_points(show: Show, made: dict[str, Path]) -> None:
    for name in ("full", "full private"):
        browser = show(name)
        text = made[name].read_text()
        charts = sample_releases.embedded(text, "chart-data")
        assert {"verdict", "rows", "distance", "sizes", "speed", "popularity", "tradeoff"} <= {c["id"] for c in charts}
        for chart in charts:
            script = """
                const place = document.getElementById('plot-' + arguments[0]);
                return place._fullData.map((t) => [t.visible, (t.orientation === 'h' ? t.y : t.x).length])"""
            drawn = browser.execute_script(script, chart["id"])
            assert drawn == [[True, len(trace["x"])] for trace in chart["data"]], chart["id"]
            count = "return document.querySelectorAll(arguments[0] + ' .main-svg .point').length"
            marks = browser.execute_script(count, f"#plot-{chart['id']}")
            if all("lines" not in str(trace.get("mode")) for trace in chart["data"]):
                assert marks == sum(len(trace["x"]) for trace in chart["data"]), chart["id"]
        shown = sample_releases.embedded(text, "map-data")
        assert points(browser) == len(shown["examples"][0]["times"])
        venues = "return document.querySelector('#plot-map .scatterlayer .trace').querySelectorAll('.point').length"
        assert browser.execute_script(venues) == len(shown["venues"]["x"])


def test_nothing_on_a_chart_is_cut_off(show: Show) -> None:
    for width in (1280, 390):
        browser = show("full", width)
        script = """
            const out = [];
            for (const place of document.querySelectorAll('.plot')) {
              const box = place.getBoundingClientRect();
              for (const text of place.querySelectorAll('.xtick text, .ytick text, .xtitle, .ytitle, .legendtext')) {
                const b = text.getBoundingClientRect();
                const across = b.left < box.left - 1 || b.right > box.right + 1;
                if (across || b.top < box.top - 1 || b.bottom > box.bottom + 1)
                  out.push(place.id + ': ' + text.textContent);
              }
            }
            return out"""
        assert browser.execute_script(script) == []


def test_the_day_steps(show: Show, made: dict[str, Path]) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show()
    n = len(sample_releases.embedded(made["full"].read_text(), "map-data")["examples"][0]["times"])
    key(browser, "#map-step", Keys.HOME)
    assert points(browser) == 1
    key(browser, "#map-step", Keys.ARROW_RIGHT)
    assert points(browser) == 2
    assert f"check-in 2 of {n}" in browser.execute_script("return document.getElementById('map-now').textContent")
    rows = browser.execute_script("return [...document.querySelectorAll('#day tbody tr')].map((r) => r.className)")
    assert rows == ["", "now", *["later"] * (n - 2)]
    click(browser, "#map-play")
    wait(browser, "return document.querySelectorAll('#day tr.later').length < arguments[0]", n - 2)
    click(browser, "#map-play")


def test_the_map_zooms_and_moves(show: Show) -> None:
    browser = show()
    first = view(browser)
    click(browser, "#zoom-in")
    near = view(browser)
    assert width_of(near) == pytest.approx(width_of(first) / 1.5, rel=0.01)
    key(browser, "#plot-map", "-")
    assert view(browser) == pytest.approx(first, abs=0.02)
    from selenium.webdriver.common.keys import Keys

    key(browser, "#plot-map", Keys.ARROW_RIGHT)
    assert view(browser)[0] > first[0]
    key(browser, "#map-step", Keys.HOME)
    assert view(browser)[0] > first[0]  # stepping leaves the view alone
    click(browser, "#zoom-city")
    assert width_of(view(browser)) > width_of(first)
    scroll = """
        const place = document.getElementById('plot-map'), b = place.getBoundingClientRect();
        const at = { clientX: b.left + b.width / 2, clientY: b.top + b.height / 2, deltaY: -300 };
        const wheel = new WheelEvent('wheel', { ...at, bubbles: true, cancelable: true });
        document.querySelector('#plot-map .nsewdrag').dispatchEvent(wheel)"""
    click(browser, "#zoom-day")
    before = view(browser)
    browser.execute_script("document.activeElement.blur();" + scroll)
    assert view(browser) == before  # the wheel scrolls the page
    browser.execute_script("document.getElementById('plot-map').focus();" + scroll)
    wait(
        browser,
        "const l = document.getElementById('plot-map')._fullLayout; return l.xaxis.range[0] != arguments[0]",
        before[0],
    )


def test_examples_and_methods_can_be_chosen(show: Show, made: dict[str, Path]) -> None:
    browser = show("full private")
    shown = sample_releases.embedded(made["full private"].read_text(), "map-data")
    choose = """
        const list = document.getElementById(arguments[0]);
        list.value = arguments[1];
        list.dispatchEvent(new Event('change'))"""
    browser.execute_script(choose, "map-example", 3)
    browser.execute_script(choose, "map-method", 1)
    data = browser.execute_script("return document.getElementById('plot-map').data.map((t) => [t.name, t.x.length])")
    n = len(shown["examples"][3]["times"])
    released = f"released by {METHODS['random'].label}"
    assert data == [["venues", len(shown["venues"]["x"])], ["moved", 3 * n], ["clean", n], [released, n]]
    cells = browser.execute_script(
        "return [...document.querySelectorAll('#day tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
    )
    assert [c[2] for c in cells] == shown["examples"][3]["clean"]["venue"]
    assert [c[3] for c in cells] == shown["examples"][3]["sides"][1]["venue"]


def test_the_private_page_says_so_on_every_screen(show: Show) -> None:
    for width in (1280, 390):
        browser = show("full private", width)
        for share in (0, 0.5, 1):
            browser.execute_script(
                "document.documentElement.style.scrollBehavior = 'auto';"
                "window.scrollTo(0, arguments[0] * document.documentElement.scrollHeight)",
                share,
            )
            script = """
                const b = document.querySelector('.banner').getBoundingClientRect();
                return [b.top, document.elementFromPoint(innerWidth / 2, 10).closest('.banner') !== null]"""
            assert browser.execute_script(script) == [0, True]
    assert not show("full").execute_script("return document.querySelector('.banner')")


def test_the_table_sorts(show: Show) -> None:
    browser = show()
    column = "return [...document.querySelectorAll('#victims tbody tr')].map((r) => Number(r.cells[2].dataset.value))"
    sort = "return document.querySelectorAll('#victims th[scope=col]')[2].getAttribute('aria-sort')"
    button = "#victims th:nth-child(3) button"
    click(browser, button)
    found = browser.execute_script(column)
    audit = sample_releases.audit()
    assert len(found) == 1 + len(audit["adversaries"]) + len(audit["controls"])
    assert found == sorted(found, reverse=True)
    assert browser.execute_script(sort) == "descending"
    key(browser, button, "\ue007")  # Enter
    assert browser.execute_script(column) == sorted(found)
    assert browser.execute_script(sort) == "ascending"


def test_dark_mode_changes_page_and_charts(show: Show) -> None:
    browser = show(dark=True)
    colours = """
        const style = (s) => getComputedStyle(document.querySelector(s));
        const bar = document.getElementById('plot-verdict');
        return [style('body').backgroundColor, bar._fullData[0].marker.color, style('#plot-verdict .xtick text').fill,
                document.getElementById('plot-map')._fullLayout.font.color]"""
    dark = browser.execute_script(colours)
    assert dark[:2] == ["rgb(18, 21, 24)", "#56b4e9"]
    look(browser, False)
    wait(browser, "return document.getElementById('plot-verdict')._fullData[0].marker.color === '#0072b2'")
    light = browser.execute_script(colours)
    assert light[:2] == ["rgb(250, 250, 248)", "#0072b2"]
    assert all(a != b for a, b in zip(dark, light, strict=True))


@pytest.mark.parametrize("name", ["full", "full private", "bare", "hostile", "hostile private", "ten"])
def test_no_page_scrolls_sideways(show: Show, name: str) -> None:
    browser = show(name, 390)
    across = "return [document.documentElement.scrollWidth, innerWidth]"
    assert browser.execute_script(across) == [390, 390]
    resize(browser, 820)
    wait(browser, "return document.querySelector('#plot-map .main-svg').clientWidth > 500")
    assert browser.execute_script(across) == [820, 820]


def test_hostile_names_are_text_on_the_map_too(show: Show, made: dict[str, Path]) -> None:
    browser = show("hostile")
    shown = sample_releases.embedded(made["hostile"].read_text(), "map-data")
    names = browser.execute_script(
        "return [...document.querySelectorAll('#day tbody tr')].map((r) => r.cells[2].textContent)"
    )
    assert names == shown["examples"][0]["sides"][0]["venue"]
    hover = """
        const place = document.getElementById('plot-map');
        Plotly.Fx.hover(place, [{ curveNumber: place.data.length - 1, pointNumber: arguments[0] }]);
        return place.querySelector('.hoverlayer').textContent.replace(/\\s+/g, ' ').includes(arguments[1])"""
    for number, name in enumerate(names):
        wait(browser, hover, number, name)
        assert not browser.execute_script("return document.querySelectorAll('.hoverlayer a, .plot img').length")


def test_everything_can_be_reached_by_keyboard_and_has_a_name(show: Show) -> None:
    browser = show("full private")
    script = """
        const named = (e) => e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim()
            || (e.labels && e.labels.length);
        const all = [...document.querySelectorAll('a[href], button, select, input, summary, [tabindex]')];
        return [all.filter((e) => e.tabIndex < 0).length, all.filter((e) => !named(e)).map((e) => e.outerHTML),
                [...document.querySelectorAll('[role=img].plot')].filter((e) => !document.getElementById(
                    e.getAttribute('aria-describedby')).textContent.trim()).length, all.length]"""
    hidden, nameless, undescribed, count = browser.execute_script(script)
    assert (hidden, nameless, undescribed) == (0, [], 0)
    assert count > 30


def test_it_prints_in_light_colours_with_its_charts(show: Show) -> None:
    browser = show("full private", dark=True)
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert (
        browser.execute_script("return document.getElementById('plot-verdict')._fullData[0].marker.color") == "#0072b2"
    )
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 50_000
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert (
        browser.execute_script("return document.getElementById('plot-verdict')._fullData[0].marker.color") == "#56b4e9"
    )
