"""Attacks on a release.

Adversaries (A1 to A20) turn `evidence`, which is what they know, into sessions to train on; victims are the next-POI
models trained on those sessions.
"""
