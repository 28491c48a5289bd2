"""The release folder and the private folder: plan, write, seal, verify, and series of releases."""
