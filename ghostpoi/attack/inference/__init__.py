"""The models that adversaries infer clean sessions with.

`conditional_table` serves A3 to A5; `visits` (EM and variational Bayes), `channel_learning` and `habit_model` serve A6
to A9 and A11; `hidden_markov` serves A9. Only `causal_denoiser` (A2), `categorical_bridge` and `paired_bridge` (A10)
import torch.
"""
