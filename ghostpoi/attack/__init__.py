"""Attacks on a release.

Adversaries (A1 to A11) turn `evidence`, which is what they know, into sessions to train on, with the models in
`inference`; victims are the next-POI models trained on those sessions.
"""
