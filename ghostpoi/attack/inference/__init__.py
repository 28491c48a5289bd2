"""The models that adversaries infer clean sessions with.

`visits` (EM and variational Bayes) and `habit_model` serve A6 to A9 and A11, `hidden_markov` A9 and A14, for which `step_lengths` holds how far people
go. Only `causal_denoiser`
(A2), `categorical_bridge` and `paired_bridge` (A10) import torch.
"""
