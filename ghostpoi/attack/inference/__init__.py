"""Inference that several adversaries share."""
