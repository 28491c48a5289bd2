"""From a check-in table to a release."""
