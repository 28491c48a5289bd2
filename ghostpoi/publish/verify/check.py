"""The result of one check."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    name: str
    passed: bool
    detail: str
