"""The command line. A command parses, calls and prints; modules that are slow to import are imported inside it."""

from ghostpoi.cli.app import app, main

__all__ = ["app", "main"]
