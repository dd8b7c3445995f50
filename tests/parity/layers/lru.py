"""One diagonal linear recurrence that all channels share, stable by its parameters (Orvieto et al. 2023)."""
import torch

from definitions.state_spaces import complex_of, diagonal_states, gated, read_states

SETTINGS = [{"states": 7}, {"states": 5, "bidirectional": False, "output": "half_glu1"},
            {"states": 3, "r_min": 0.9, "r_max": 0.999, "max_phase": 0.5, "output": "linear"}]


def sizes(settings, about):
    return {"P": settings["states"]}


def layer(x, valid, w, settings, about):
    pole = torch.complex(-w["nu_log"].exp(), w["theta_log"].exp()).exp()
    b = w["gamma_log"].exp()[:, None] * complex_of(w["b"], 0)
    return gated(read_states(x, valid, w, settings, diagonal_states(pole, b)), w, settings["output"])
