"""States with gates that see only the token: minGRU, and minLSTM with `forget_gate` (Feng et al. 2024)."""
import torch

from definitions.directions import in_halves
from definitions.recurrences import gated_states

SETTINGS = [{}, {"expand": 2, "candidate": "linear", "gate_bias": -3.0}, {"bidirectional": False},
            {"forget_gate": True}]


def sizes(settings, about):
    return {"inner": settings["expand"] * about.width}


def layer(x, valid, w, settings, about):
    linear = lambda t, name: t @ w[name + ".weight"].T + w[name + ".bias"]  # noqa: E731
    z, c = linear(x, "gate").sigmoid(), linear(x, "candidate")
    if settings["forget_gate"]:
        z = z / (z + linear(x, "forget").sigmoid())
    if settings["candidate"] == "positive":
        c = torch.where(c >= 0, c + 0.5, c.sigmoid())
    h = in_halves(lambda _, z, c: gated_states(1 - z, z * c), valid, settings, z, c)
    return linear(h, "output")
