"""Headless Chromium with the network off."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium and chromedriver here; .ci/run installs them"
)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage")
Browser = Any


NO_NAMES = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


@contextmanager
def started(server: bool = False) -> Iterator[Browser]:
    """Start a browser without a network; with `server`, it reaches one on this machine, and no other."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, *[NO_NAMES] * server):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    driver.execute_cdp_cmd("Network.enable", {})
    offline = {
        "offline": not server,
        "latency": 0,
        "downloadThroughput": 0 if not server else -1,
        "uploadThroughput": -1,
    }
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    try:
        yield driver
    finally:
        driver.quit()


def look(browser: Browser, dark: bool) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def resize(browser: Browser, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def wait(browser: Browser, script: str, *arguments: Any) -> Any:
    until = time.monotonic() + 120
    while not (found := browser.execute_script(script, *arguments)):
        assert time.monotonic() < until, script
        time.sleep(0.05)
    return found


def open_page(browser: Browser, page: Path) -> None:
    """Open a page and wait until its scripts have drawn it."""
    browser.get(page.as_uri())
    wait(browser, "return document.documentElement.dataset.ready === 'yes'")


def asked_for(browser: Browser) -> list[str]:
    """What pages have asked for since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in asked if not url.startswith("data:")]


def serious(browser: Browser) -> list[Any]:
    """What axe-core finds on the page that is serious or worse: rule and elements."""
    browser.execute_script((files("axe_core_python") / "axe.min.js").read_text("utf-8"))
    found = browser.execute_async_script("const done = arguments[0]; axe.run().then(done)")
    assert {"color-contrast", "document-title"} <= {one["id"] for one in found["passes"]}
    bad = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["target"] for node in one["nodes"]][:5]) for one in bad]


def nothing_else_happened(browser: Browser, shown: list[Path]) -> None:
    """Check that pages asked for nothing but themselves, and that nobody complained."""
    assert not browser.get_log("browser")
    assert asked_for(browser) == [path.as_uri() for path in shown]
    assert not browser.execute_script("return window.hacked")
