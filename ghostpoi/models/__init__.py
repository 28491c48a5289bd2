"""The causal Transformer, its training and its fast paths."""
