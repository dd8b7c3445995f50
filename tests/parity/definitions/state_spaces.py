"""What layers with linear state spaces share: the states of all channels, and the output."""
import math

import torch

from definitions.directions import in_time
from definitions.recurrences import gated_states


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def complex_of(t, axis):
    """Real and imaginary parts lie along the axis."""
    return torch.complex(*t.unbind(axis))


def gated(y, w, kind):
    """GELU, then a gate that mixes channels."""
    g = gelu(y)
    if kind == "none":
        return g
    z = g @ w["output.linear.weight"].T + w["output.linear.bias"]
    if kind == "glu":
        value, gate = z.chunk(2, -1)
        return value * gate.sigmoid()
    return z if kind == "linear" else (g if kind == "half_glu1" else y) * z.sigmoid()


def read_states(x, valid, w, settings, states):
    """skip u + Re(C x), and the same of states from the end; states(u [L, D]) is [L, P], in the order of time."""
    c = complex_of(w["c"], 2)  # [D, directions, P]
    return w["skip"] * x + sum(in_time(lambda d, u: (states(u) @ c[:, d].T).real, valid, settings, x))


def diagonal_states(pole, b):
    """Of `read_states`: x[t] = pole x[t - 1] + b u[t]"""
    return lambda u: gated_states(pole, u.to(b.dtype) @ b.T)
