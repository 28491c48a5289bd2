"""JSON files in the folder of results that are no cells of a study."""

import json
from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError


def read(path: Path, command: str) -> dict[str, Any]:
    """Read the object that a command wrote; empty if there is no file."""
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as e:
        raise InputError(f"{path} cannot be read ({e}); delete it and run {command} again") from None
