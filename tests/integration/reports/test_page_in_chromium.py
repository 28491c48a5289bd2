"""A page opens in headless Chromium, from disk, and draws its charts; `make nightly` tests every control of it."""

from pathlib import Path

import sample_releases
from chromium import needs_chromium, nothing_else_happened, open_page, started

from ghostpoi.reports.page import write_pages


@needs_chromium
def test_a_page_with_hostile_names_draws_all_its_charts(tmp_path: Path) -> None:
    release = sample_releases.copied(sample_releases.hostile(), tmp_path)
    sample_releases.put_audit(release, sample_releases.audit(seeds=1))
    page = write_pages(release)[0]
    charts = sample_releases.embedded(page.read_text(), "chart-data")
    with started() as browser:
        open_page(browser, page)
        for chart in charts:
            drawn = browser.execute_script(
                "return document.getElementById('plot-' + arguments[0])._fullData.length", chart["id"]
            )
            assert drawn == len(chart["data"]) > 0, chart["id"]
        nothing_else_happened(browser, [page])
