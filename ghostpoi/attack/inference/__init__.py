"""The models that adversaries infer clean sessions with.

`visits` (EM and variational Bayes) and `habit_model` serve A6 to A9 and A11, `session_habits` A15, `hidden_markov` A9,
`step_lengths` A14, `distillation` A16 and A20. Only `causal_denoiser` (A2), `categorical_bridge` and `paired_bridge`
(A10) import torch.
"""
