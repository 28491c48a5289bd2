"""The command line. Commands import slow modules inside their functions, so that --help is fast."""

import atexit
import gc
import sys

from ghostpoi import WINDOWS

# Imports make many objects that stay. To look for garbage among them takes a tenth of the start, and more at the exit.
gc.set_threshold(20_000)
atexit.register(lambda: None if "duckdb" in sys.modules else gc.freeze())  # which complains of what is left

if sys.platform == "win32":
    print(f"ghostpoi: {WINDOWS}", file=sys.stderr)
    sys.exit(2)
try:
    from ghostpoi.cli.app import app, main
except KeyboardInterrupt:  # `main`, which handles Ctrl-C, does not exist yet
    print("ghostpoi: interrupted", file=sys.stderr)
    sys.exit(130)

__all__ = ["app", "main"]
