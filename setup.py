"""The part of the package's metadata that depends on where the project lives: the links of its page in an index.

    GHOSTPOI_URL=https://host/owner/ghostpoi python -m build

makes the links and images of the README absolute, which they must be there, and lists the address of the project.
Without the variable, links stay as they are in the repository.
"""

import os
import re
from pathlib import Path

from setuptools import setup

LINK = re.compile(r"(?P<image>!?)(?P<text>\[[^\]]*\])\((?!https?://|#)(?P<path>[^)\s]+)\)")
URL = os.environ.get("GHOSTPOI_URL", "").rstrip("/")


def absolute(text: str) -> str:
    """Return a page of the repository with links that work anywhere."""
    kind = {"!": "raw", "": "blob"}
    return LINK.sub(lambda m: f"{m['image']}{m['text']}({URL}/{kind[m['image']]}/main/{m['path']})", text)


readme = Path(__file__).with_name("README.md").read_text("utf-8")
setup(
    long_description=absolute(readme) if URL else readme,
    long_description_content_type="text/markdown",
    project_urls={
        "Source": URL, "Documentation": f"{URL}/blob/main/docs/index.md", "Issues": f"{URL}/issues",
        "Changelog": f"{URL}/blob/main/CHANGELOG.md",
    } if URL else {},
)  # fmt: skip
