"""The command line. Commands import slow modules inside their functions, so that --help is fast."""

import sys

try:
    from ghostpoi.cli.app import app, main
except KeyboardInterrupt:  # `main`, which handles Ctrl-C, does not exist yet
    print("ghostpoi: interrupted", file=sys.stderr)
    sys.exit(130)

__all__ = ["app", "main"]
