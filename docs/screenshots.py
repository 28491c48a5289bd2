"""Take the pictures of the report and of the studio that the documentation shows.

python docs/screenshots.py runs the demo and writes docs/figures/report.png and report-map.png, then runs the studio and
writes studio.png. With a public and a private page, it takes the pictures of those. With one page and -o FOLDER, it
takes that page at 1280, 820 and 375 pixels, light and dark.
"""

import argparse
import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import ghostpoi
from ghostpoi.cli.study import demo
from ghostpoi.reports.page import PAGE

FIGURES = Path(__file__).parent / "figures"
WIDTHS = (1280, 820, 375)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1")


def browser() -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def show(driver: webdriver.Chrome, page: Path, width: int, dark: bool) -> None:
    """Load a page at a width, light or dark."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page.resolve().as_uri())
    driver.execute_async_script("setTimeout(arguments[0], 800)")


def capture(driver: webdriver.Chrome, path: Path, clip: dict[str, float]) -> None:
    shot = driver.execute_cdp_cmd(
        "Page.captureScreenshot", {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True}
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(shot["data"]))
    print(path)


def box(driver: webdriver.Chrome, selector: str, margin: float = 0) -> dict[str, float]:
    """Return the rectangle of an element on the page."""
    script = "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return JSON.stringify(b)"
    b = json.loads(driver.execute_script(script, selector))
    top = b["y"] + driver.execute_script("return window.scrollY")
    return {"x": max(0, b["x"] - margin), "y": top, "width": b["width"] + 2 * margin, "height": b["height"]}


def look_over(page: Path, folder: Path) -> None:
    """Take every screen of a page at every width."""
    driver = browser()
    try:
        for width in WIDTHS:
            for dark in (False, True):
                show(driver, page, width, dark)
                height = driver.execute_script("return document.documentElement.scrollHeight")
                name = f"{page.stem}-{width}-{'dark' if dark else 'light'}"
                for number, top in enumerate(range(0, height, 1800)):
                    clip = {"x": 0, "y": top, "width": width, "height": min(1800, height - top)}
                    capture(driver, folder / f"{name}-{number}.png", clip)
    finally:
        driver.quit()


def pictures() -> None:
    """Take the first screen of the demo's public page and the city of its private one; the data is synthetic."""
    with tempfile.TemporaryDirectory() as scratch:
        demo(Path(scratch), quick=False)
        shoot(Path(scratch) / "release" / PAGE, Path(scratch) / "release.private" / PAGE)


def shoot(public: Path, private: Path) -> None:
    """Take the two pictures."""
    driver = browser()
    try:
        show(driver, public, 1280, False)
        capture(driver, FIGURES / "report.png", {"x": 0, "y": 0, "width": 1280, "height": 940})
        show(driver, private, 1280, False)
        capture(driver, FIGURES / "report-map.png", box(driver, "#city", margin=24))
    finally:
        driver.quit()


def desk() -> None:
    """Take the settings of the studio, on a synthetic city."""
    with tempfile.TemporaryDirectory() as scratch:
        city = Path(scratch) / "city.csv"
        ghostpoi.synth(users=250, pois=600, days=90, seed=3).write_csv(city)
        command = [sys.executable, "-m", "ghostpoi", "studio", city, "--no-browser"]
        studio = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        driver = browser()
        try:
            entry = next(word for word in studio.stderr.readline().split() if word.startswith("http"))
            driver.get(entry)
            for page in ("columns", "settings"):
                driver.get(f"{entry.partition('/columns')[0]}/{page}")
                while driver.execute_script("return document.querySelector('[data-running]') !== null"):
                    driver.execute_async_script("setTimeout(arguments[0], 500)")
            size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            capture(driver, FIGURES / "studio.png", {"x": 0, "y": 0, "width": 1280, "height": 900})
        finally:
            driver.quit()
            studio.terminate()
            studio.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", nargs="*", type=Path, help="one page to look over, or a public and a private one")
    parser.add_argument("-o", "--output", type=Path, default=Path("screens"))
    given = parser.parse_args()
    if len(given.page) == 2:
        shoot(*given.page)
    elif given.page:
        look_over(given.page[0], given.output)
    else:
        pictures()
        desk()
