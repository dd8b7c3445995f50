"""A convolution of each channel with the kernel of a diagonal state space, in both directions (Gu et al. 2022)."""
import torch

from definitions.directions import filtered
from definitions.recurrences import softplus
from definitions.state_spaces import complex_of, gated

SETTINGS = [{"states": 8}, {"states": 6, "init": "lin", "alpha": 3.0, "shared_poles": False},
            {"states": 4, "init": "inv", "dt_transform": "softplus", "bidirectional": False},
            {"states": 3, "init": "real", "output": "half_glu1"}, {"states": 4, "output": "half_glu2"},
            {"states": 4, "output": "linear"}, {"states": 4, "output": "none"}]


def sizes(settings, about):
    parts = 1 if settings["init"] == "real" else 2
    return {"poles": 1 if settings["shared_poles"] else about.width, "parts": parts,
            "modes": settings["states"] // parts}


def layer(x, valid, w, settings, about):
    u, real = x * valid[..., None], settings["init"] == "real"
    step = w["dt"].exp() if settings["dt_transform"] == "exp" else softplus(w["dt"])
    rate = -w["log_rate"].exp()
    pole = rate if real else torch.complex(rate, w["frequency"])
    c = w["c"][..., 0] if real else 2 * complex_of(w["c"], -1)  # [directions, D, modes]
    z = pole * step[:, None]
    reads = c * (z.exp() - 1) / pole
    powers = (z[..., None] * torch.arange(x.shape[1])).exp()
    kernels = torch.einsum("kdn,dnl->kdl", reads, powers).real
    return gated(filtered(u, *kernels) + w["skip"] * u, w, settings["output"])
