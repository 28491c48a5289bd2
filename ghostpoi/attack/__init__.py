"""Attacks on a release.

`rule` holds what is public, `evidence` what an adversary knows. Adversaries (A1 to A11) turn evidence into sessions to
train on, with the models in `inference`; victims are the next-POI models trained on those sessions.
"""
