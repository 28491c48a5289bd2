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
    with started() as browser:
        open_page(browser, page)
        for name, chart in sample_releases.charts(release).items():
            drawn = browser.execute_script(
                "return document.querySelectorAll(arguments[0] + ' .plot :is(rect, use, g > line, path)').length",
                f"#chart-{name}",
            )
            marks = [1 if one.kind == "line" else len(one.marks) for one in chart.figure.series]
            assert drawn == sum(marks) > 0, name
        nothing_else_happened(browser, [page])
