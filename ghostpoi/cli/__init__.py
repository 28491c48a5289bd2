"""The command line. Commands import slow modules inside their functions, so that --help is fast."""

from ghostpoi.cli.app import app, main

__all__ = ["app", "main"]
