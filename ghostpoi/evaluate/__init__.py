"""What can be learned from a release, measured."""
