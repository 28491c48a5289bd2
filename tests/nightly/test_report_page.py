"""The real page in a real browser: headless Chromium, from disk, with the network off."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import sample_releases
import small_city
from chromium import Browser, look, needs_chromium, nothing_else_happened, open_page, resize, serious, started

from ghostpoi.draw.methods import METHODS
from ghostpoi.reports.page import write_choice, write_pages

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
    out["choice"] = folder / "choice.html"
    write_choice(out["choice"], "<b>city</b>.csv", sample_releases.choice())
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


def stops(browser: Browser, side: str = "released") -> int:
    """Stops of a trajectory that are drawn on the map."""
    return int(browser.execute_script(f"return document.querySelectorAll('#plot-map .{side} .stop').length"))


def places(browser: Browser) -> list[float]:
    """Where the first two stops are on the map, in pixels."""
    script = """
        const marks = [...document.querySelectorAll('#plot-map .released circle')].slice(0, 2);
        return marks.flatMap((m) => [Number(m.getAttribute('cx')), Number(m.getAttribute('cy'))])"""
    found: list[float] = browser.execute_script(script)
    return found


def apart(place: list[float]) -> float:
    return float(np.hypot(place[0] - place[2], place[1] - place[3]))


def test_nothing_on_a_chart_is_cut_off(show: Show) -> None:
    for width in (1280, 375):
        browser = show("full", width)
        script = """
            const out = [];
            for (const chart of document.querySelectorAll('figure.chart')) {
              const box = chart.getBoundingClientRect();
              for (const text of chart.querySelectorAll('svg text, .legend li')) {
                const b = text.getBoundingClientRect();
                if (b.left < box.left || b.right > box.right || b.top < box.top || b.bottom > box.bottom)
                  out.push(chart.id + ': ' + text.textContent);
              }
            }
            return out"""
        assert browser.execute_script(script) == []


def test_marks_say_their_values_under_the_pointer(show: Show) -> None:
    browser = show()
    said = """
        const mark = document.querySelector('rect[data-t]');
        const b = mark.getBoundingClientRect(), at = { clientX: b.left + 2, clientY: b.top + 2, bubbles: true };
        mark.dispatchEvent(new PointerEvent('pointermove', at));
        const tip = document.getElementById('tip');
        return [tip.hidden, tip.textContent === mark.dataset.t, tip.getBoundingClientRect().right <= innerWidth]"""
    assert browser.execute_script(said) == [False, True, True]


def test_the_day_steps(show: Show, made: dict[str, Path]) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show()
    n = len(sample_releases.embedded(made["full"].read_text(), "map-data")["examples"][0]["times"])
    key(browser, "#map-step", Keys.HOME)
    assert stops(browser) == 1
    key(browser, "#map-step", Keys.ARROW_RIGHT)
    assert stops(browser) == 2
    assert f"check-in 2 of {n}" in browser.execute_script("return document.getElementById('map-now').textContent")
    rows = browser.execute_script("return [...document.querySelectorAll('#day tbody tr')].map((r) => r.className)")
    assert rows == ["", "now", *["later"] * (n - 2)]


def test_the_map_zooms_and_moves(show: Show) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show()
    first = places(browser)
    click(browser, "#zoom-in")
    assert apart(places(browser)) == pytest.approx(apart(first) * 1.5, rel=0.01)
    key(browser, "#plot-map", "-")
    assert places(browser) == pytest.approx(first, abs=0.02)
    key(browser, "#plot-map", Keys.ARROW_RIGHT)
    moved = places(browser)
    assert moved[0] < first[0]
    key(browser, "#map-step", Keys.END)
    assert places(browser) == moved  # stepping leaves the view alone
    click(browser, "#zoom-day")
    assert places(browser) == pytest.approx(first, abs=0.02)


def test_examples_and_methods_can_be_chosen(show: Show, made: dict[str, Path]) -> None:
    browser = show("full private")
    shown = sample_releases.embedded(made["full private"].read_text(), "map-data")
    choose = """
        const list = document.getElementById(arguments[0]);
        list.value = arguments[1];
        list.dispatchEvent(new Event('change'))"""
    browser.execute_script(choose, "map-example", 3)
    browser.execute_script(choose, "map-method", 1)
    assert stops(browser) == stops(browser, "clean") == len(shown["examples"][3]["times"])
    said = browser.execute_script("return document.querySelector('#plot-map .released .stop').dataset.t")
    assert said.endswith(f"(released by {METHODS['random'].label})")
    cells = browser.execute_script(
        "return [...document.querySelectorAll('#day tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
    )
    assert [c[2] for c in cells] == shown["examples"][3]["clean"]["venue"]
    assert [c[3] for c in cells] == shown["examples"][3]["sides"][1]["venue"]


def test_the_private_page_says_so_on_every_screen(show: Show) -> None:
    for width in (1280, 375):
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


COLOURS = """
    const style = (s) => getComputedStyle(document.querySelector(s));
    return [style('body').backgroundColor, style('#chart-verdict rect').fill, style('#chart-verdict .tick').fill,
            style('#plot-map circle').fill]"""


def test_dark_mode_changes_page_and_charts(show: Show) -> None:
    browser = show(dark=True)
    dark = browser.execute_script(COLOURS)
    assert dark[:2] == ["rgb(18, 21, 24)", "rgb(86, 180, 233)"]
    look(browser, False)
    light = browser.execute_script(COLOURS)
    assert light[:2] == ["rgb(250, 250, 248)", "rgb(0, 114, 178)"]
    assert all(a != b for a, b in zip(dark, light, strict=True))


@pytest.mark.parametrize("name", ["full", "full private", "bare", "hostile", "hostile private", "ten"])
def test_no_page_scrolls_sideways(show: Show, name: str) -> None:
    browser = show(name, 375)
    across = "return [document.documentElement.scrollWidth, innerWidth]"
    assert browser.execute_script(across) == [375, 375]
    resize(browser, 820)
    assert browser.execute_script(across) == [820, 820]


def test_hostile_names_are_text_on_the_map_too(show: Show, made: dict[str, Path]) -> None:
    browser = show("hostile")
    shown = sample_releases.embedded(made["hostile"].read_text(), "map-data")
    names = browser.execute_script(
        "return [...document.querySelectorAll('#day tbody tr')].map((r) => r.cells[2].textContent)"
    )
    assert names == shown["examples"][0]["sides"][0]["venue"]
    said = browser.execute_script("return [...document.querySelectorAll('#plot-map .stop')].map((m) => m.dataset.t)")
    assert [name in text for name, text in zip(names, said, strict=True)] == [True] * len(names)
    assert not browser.execute_script("return document.querySelectorAll('svg a, svg img, .values a').length")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["full", "full private", "bare", "hostile", "choice"])
def test_axe_finds_nothing_serious(show: Show, name: str, dark: bool) -> None:
    for width in (1280, 375):
        assert serious(show(name, width, dark)) == []


def test_everything_can_be_reached_by_keyboard_and_has_a_name(show: Show) -> None:
    browser = show("full private")
    script = """
        const named = (e) => e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim()
            || (e.labels && e.labels.length);
        const all = [...document.querySelectorAll('a[href], button, select, input, summary, [tabindex]')]
            .filter((e) => e.checkVisibility());
        return [all.filter((e) => e.tabIndex < 0).length, all.filter((e) => !named(e)).map((e) => e.outerHTML),
                [...document.querySelectorAll('figure div[role=img]')].filter((e) => !document.getElementById(
                    e.getAttribute('aria-describedby')).textContent.trim()).length, all.length]"""
    hidden, nameless, undescribed, count = browser.execute_script(script)
    assert (hidden, nameless, undescribed) == (0, [], 0)
    assert count > 30


def test_it_prints_in_light_colours_with_its_charts(show: Show) -> None:
    browser = show("full private", dark=True)
    media = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    assert browser.execute_script(COLOURS)[1] == "rgb(0, 114, 178)"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 50_000
