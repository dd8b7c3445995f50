"""A linear recurrence with a dense matrix, one position after another (Orvieto et al. 2023, section 3.1)."""
import torch

from definitions.directions import in_time
from definitions.state_spaces import gated

SETTINGS = [{"states": 7}, {"states": 3, "bidirectional": False, "output": "half_glu1"},
            {"states": 5, "radius": 0.5, "output": "linear"}]


def states_of(u, w):
    state, rows = u.new_zeros(len(w["w"])), []
    for token in u:
        state = w["w"] @ state + w["b"] @ token
        rows.append(state)
    return torch.stack(rows) if rows else u.new_zeros(0, len(state))


def layer(x, valid, w, settings, about):
    read = in_time(lambda d, u: states_of(u, w) @ w["c"][:, d].T, valid, settings, x)
    return gated(w["skip"] * x + sum(read), w, settings["output"])
