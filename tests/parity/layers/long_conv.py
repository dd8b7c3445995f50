"""Convolutions with long kernels: free ones that are squashed (Fu et al. 2023, LongConv), or joined from scales
(Li et al. 2022, SGConv)."""
import math

import torch

from definitions.directions import filtered
from definitions.state_spaces import gated

BUFFERS = ["length"]
LENGTH_BOUND = "its kernels have a weight for each distance"
SETTINGS = [{}, {"squash": 0.0, "bidirectional": False}, {"width": 5, "output": "half_glu2"},
            {"kind": "sgconv", "scale_dim": 4, "decay_min": 1.0, "decay_max": 3.0},
            {"kind": "sgconv", "scale_dim": 1, "bidirectional": False, "output": "none"},
            {"kind": "sgconv", "width": 9, "output": "half_glu1"}]


def lags(settings, about):
    """Of the past, lag 0 among them, and of the future."""
    longest = (2 if settings["bidirectional"] else 1) * about.max_length
    width = min(settings["width"] or longest, longest)
    future = width // 2 if settings["bidirectional"] else 0
    return width - future, future


def sizes(settings, about):
    past, future = lags(settings, about)
    doublings = math.ceil(math.log2(max(1, max(past, future) / settings["scale_dim"])))
    return {"W": past + future, "directions": 2 if future else 1, "scales": doublings + 1}


def joined_scales(scales, settings):
    """[S, D, d] -> [D, d 2^(S - 1)]: each scale stretched to twice the lags of the one before, and damped."""
    count, channels, size = scales.shape
    decay = torch.linspace(settings["decay_min"], settings["decay_max"], channels, dtype=scales.dtype)
    joined = []
    for i, scale in enumerate(scales):
        stretched = size << max(0, i - 1)
        place = ((torch.arange(stretched) + 0.5) * size / stretched - 0.5).clamp(0, size - 1).to(scale.dtype)
        shares = (1 - (place - torch.arange(size)[:, None]).abs()).clamp_min(0)  # of neighbors, linear between them
        joined.append(scale @ shares * decay[:, None]**(count - 1 - i))
    return torch.cat(joined, 1)


def layer(x, valid, w, settings, about):
    past, future = lags(settings, about)
    if settings["kind"] == "free":
        kernel = w["kernel"].sign() * (w["kernel"].abs() - settings["squash"]).clamp_min(0)
        kernels = [kernel[:, future:], kernel[:, :future].flip(1)]
    else:
        kernels = [joined_scales(scales, settings)[:, :count] / norm
                   for scales, norm, count in zip(w["kernel"], w["length"], (past, future))]
    u = x * valid[..., None]
    return gated(filtered(u, *kernels) + w["skip"] * u, w, settings["output"])
