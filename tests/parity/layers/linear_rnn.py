"""A linear recurrence with a dense matrix, one position after another (Orvieto et al. 2023, section 3.1)."""
import torch

from definitions.directions import in_time
from definitions.state_spaces import gated

SETTINGS = [{"states": 7}, {"states": 3, "bidirectional": False, "output": "half_glu1"},
            {"states": 5, "radius": 0.5, "output": "linear"}]


def radius_bound(w):
    """(N max |w^m|)^(1/m), m = 2^14, by squaring; at least the absolute value of every eigenvalue"""
    power, log = w.detach(), 0
    for k in range(14):
        log = log + power.abs().max().log() / 2**k
        power = power / power.abs().max()
        power = power @ power
    return (log + (len(w) * power.abs().max()).log() / 2**14).exp()


def states_of(u, w):
    state, rows, matrix = u.new_zeros(len(w["w"])), [], w["w"] / radius_bound(w["w"]).clamp_min(1)
    for token in u:
        state = matrix @ state + w["b"] @ token
        rows.append(state)
    return torch.stack(rows) if rows else u.new_zeros(0, len(state))


def layer(x, valid, w, settings, about):
    read = in_time(lambda d, u: states_of(u, w) @ w["c"][:, d].T, valid, settings, x)
    return gated(w["skip"] * x + sum(read), w, settings["output"])
