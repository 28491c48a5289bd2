"""Mutated inputs for the command line, made from a seed, and what must hold for each of them."""
