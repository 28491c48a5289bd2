"""The studio's whole way in Chromium, from a CSV file to a release, with no network but this machine."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Browser, asked_for, look, needs_chromium, resize, serious, started, wait
from running_studio import Desk, running

import ghostpoi

pytestmark = needs_chromium
PAGES = ("/", "/columns", "/leaks", "/settings", "/release", "/publish")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started(server=True) as driver:
        yield driver


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("studio")
    ghostpoi.synth(users=80, pois=200, days=45, seed=4).write_csv(folder / "city.csv")
    with running("--folder", folder) as found:
        yield found


def idle(browser: Browser) -> None:
    wait(browser, "return !document.querySelector('[data-running]')")


def press(browser: Browser, text: str) -> None:
    """Press the button or follow the link with this text."""
    script = "return [...document.querySelectorAll('button, a')].find((e) => e.textContent.trim() === arguments[0])"
    found = browser.execute_script(script, text)
    assert found, (text, browser.current_url)
    browser.execute_script("arguments[0].click()", found)


def at(browser: Browser, place: str) -> None:
    wait(browser, "return location.pathname === arguments[0] && document.documentElement.dataset.ready", place)


def choose(browser: Browser, name: str, value: str) -> None:
    browser.execute_script(
        "const e = document.getElementsByName(arguments[0])[0]; e.value = arguments[1];"
        "e.dispatchEvent(new Event('input', { bubbles: true }))", name, value,
    )  # fmt: skip


def test_from_a_csv_file_to_a_published_release(browser: Browser, desk: Desk) -> None:
    browser.get(desk.entry)
    assert "token" not in browser.current_url
    press(browser, "city.csv")
    at(browser, "/columns")
    idle(browser)
    press(browser, "These are right: go on")
    at(browser, "/leaks")
    idle(browser)
    assert "of next visits could be guessed" in browser.find_element("id", "live").text
    press(browser, "Choose how to protect it")
    at(browser, "/settings")
    idle(browser)
    before = browser.find_element("id", "live").text
    choose(browser, "size", "16")
    wait(browser, "return document.querySelector('[data-running]')")
    browser.refresh()  # the trial goes on
    idle(browser)
    after = browser.find_element("id", "live").text
    assert before != after
    assert browser.find_element("css selector", "output[for=size]").text == "16"
    assert browser.execute_script("return document.querySelectorAll('svg.city use').length") > 30
    press(browser, "Use them: make the release")
    at(browser, "/release")
    press(browser, "Make it")
    wait(browser, "return document.querySelector('.jobs .now')")
    at(browser, "/publish")
    out = Path(re.search(r"(/\S+/city-release)\b", browser.find_element("id", "main").text)[1])  # type: ignore[index]
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["settings"]["method"]["size"] == 16
    assert manifest["audit"]["limits"]["decision"]
    assert {"report.html", "dpia.html", "card.md"} <= {one.name for one in out.iterdir()}
    assert ghostpoi.verify(out, against=out.with_name("city.csv"))
    for name, words in (("report", "What can be learned from it?"), ("officer", "data protection officer"),
                        ("private", "Contains clean data")):  # fmt: skip
        browser.get(f"{desk.base}/view/{name}")
        assert words in browser.page_source
        reached = "return fetch('/columns').then(() => 'reached', () => 'refused')"
        assert browser.execute_script(reached) == "refused"
    assert [entry for entry in browser.get_log("browser") if "/columns" not in entry["message"]] == []
    assert {url for url in asked_for(browser) if not url.startswith(f"{desk.base}/")} == set()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_accessible_and_fits(browser: Browser, desk: Desk, page: str, width: int, dark: bool) -> None:
    look(browser, dark)
    resize(browser, width)
    browser.get(desk.base + page)
    idle(browser)
    assert browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]") == [width, width]
    assert serious(browser) == []
    assert browser.get_log("browser") == []


def test_a_release_goes_on_after_a_kill(browser: Browser, tmp_path: Path) -> None:
    city = tmp_path / "city.csv"
    ghostpoi.synth(users=80, pois=200, days=45, seed=4).write_csv(city)
    with running(city) as first:
        first.until("/columns")
        first.post("/release", title="A city")
        first.until("/release", lambda text: "Check the release" in text and '"now">Attack' in text)
        first.end(signal.SIGKILL)
    assert not (tmp_path / "city-release" / "report.html").exists()
    made = (tmp_path / "city-release" / "manifest.json").stat().st_mtime_ns
    data = (tmp_path / "city-release" / "checkins.csv").read_bytes()
    with running(city) as second:
        browser.get(f"{second.entry.replace('columns', 'release')}")
        wait(browser, "return document.querySelector('.jobs .now')")
        at(browser, "/publish")
        assert (tmp_path / "city-release" / "checkins.csv").read_bytes() == data
        assert (tmp_path / "city-release" / "manifest.json").stat().st_mtime_ns > made  # with the audit
        assert (tmp_path / "city-release" / "report.html").exists()
        assert second.end()[0] == 0
