"""Attacks on a release.

Adversaries turn `evidence`, which is what they know, into sessions to train on, or predict the next venue themselves;
victims are the next-POI models trained on those sessions.
"""
