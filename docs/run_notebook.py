"""A hook of mkdocs: run docs/notebook.ipynb in an empty folder, and add it to the site with what its cells print."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from traitlets.config import Config

NOTEBOOK, PAGE = "notebook.ipynb", "notebook.md"
SECONDS = 600  # only a cell that hangs takes as long, even on a busy machine
AS_WRITTEN = "NOTEBOOK_AS_WRITTEN"  # a variable of the environment: build the site without running the notebook


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page to the files of the site. A cell that fails ends the build."""
    files.append(File.generated(config, PAGE, content=rendered(Path(config.docs_dir) / NOTEBOOK)))
    return files


def rendered(path: Path) -> str:
    """Run a notebook and return it as Markdown."""
    notebook = nbformat.read(path, as_version=4)
    return _markdown(notebook if AS_WRITTEN in os.environ else _run(notebook))


def _run(notebook: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        sockets = str(Path(folder) / "kernel")  # not ports, which anyone on the machine could read
        config = Config({"KernelManager": {"transport": "ipc", "ip": sockets}})
        place = {"metadata": {"path": folder}}
        NotebookClient(notebook, config=config, timeout=SECONDS, resources=place).execute()
    return notebook


def _markdown(notebook: Any) -> str:
    return "\n".join(part for cell in notebook.cells for part in _parts(cell))


def _parts(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield f"{cell.source}\n"
        return
    yield f"```python\n{cell.source}\n```\n"
    texts = (one.text if one.output_type == "stream" else one.data["text/plain"] for one in cell.outputs)
    if printed := "\n".join(text.rstrip("\n") for text in texts):
        yield f"```text\n{printed}\n```\n"
