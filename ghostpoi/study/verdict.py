"""Moved to `ghostpoi.evaluate.differences`."""

from ghostpoi.evaluate.differences import INSIDE, Verdict, against

__all__ = ["INSIDE", "Verdict", "against"]
