"""The notebook of the documentation runs, and prints what its text says."""

from docs_scripts import DOCS, script


def test_it_runs_and_says_what_its_text_says() -> None:
    page = script("run_notebook").rendered(DOCS / "notebook.ipynb")
    assert "checks passed)" in page
    assert 'keep=["gps"]' in page
