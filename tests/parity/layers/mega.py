"""A moving average in both directions, and one head of gated attention over its output (Ma et al. 2023)."""
import math

import torch
from torch.nn.functional import silu

from definitions.attention import softmax
from definitions.directions import filtered

SETTINGS = [{"ema_dim": 2, "z_dim": 5, "v_dim": 7}, {"chunk": 8, "bidirectional": False},
            {"ema_dim": 1, "z_dim": 3, "v_dim": 4, "attention": "laplace"},
            {"ema_dim": 3, "z_dim": 3, "v_dim": 4, "attention": "laplace", "chunk": 11}]
SHORT = {"chunk": 16}


def sizes(settings, about):
    return {"base": 2 * about.width + settings["z_dim"] + settings["v_dim"],
            "distances": 2 * (settings["chunk"] or about.max_length) - 1}


def averages(u, w, settings):
    """Both directions see the token itself."""
    p = w["ema_delta"].sigmoid()
    q = 1 - p * w["ema_alpha"].sigmoid()
    c = w["ema_eta"] * p * w["ema_beta"] / math.sqrt(settings["ema_dim"])  # [directions, ema_dim, D]
    past, *future = torch.einsum("knd,kndl->kdl", c, q[..., None]**torch.arange(u.shape[1]))
    own = w["ema_omega"] + sum(kernel[:, 0] for kernel in future)
    return own * u + filtered(u, past, *(kernel[:, 1:] for kernel in future))


def layer(x, valid, w, settings, about):
    width, z, v, length = about.width, settings["z_dim"], settings["v_dim"], x.shape[1]
    m = silu(averages(x * valid[..., None], w, settings))
    gate, shared, r, e = (m @ w["base_weight"].T + w["base_bias"]).split([width, z, v, width], 2)
    q, k = (silu(shared) * w["scale"][i] + w["shift"][i] for i in (0, 1))
    window, place = settings["chunk"] or about.max_length, torch.arange(length)
    seen = (place[:, None] // window == place // window) & valid[:, None]
    bias = w["position_bias"][(place - place[:, None]).clamp(1 - window, window - 1) + window - 1]
    if settings["attention"] == "softmax":
        weights = softmax(q @ k.mT / math.sqrt(z) + bias, seen)
    else:
        scores = q @ k.mT / seen.sum(2, keepdim=True).clamp_min(1) + bias
        weights = (1 + torch.erf(math.sqrt(2 * math.pi) * (scores - math.sqrt(0.5)))) / 2 * seen
    attended = weights @ silu(x @ w["value_weight"].T + w["value_bias"])
    h = silu(e + (attended * silu(r)) @ w["hidden_weight"].T + w["hidden_bias"])
    return gate.sigmoid() * (h - (x if about.stream is None else about.stream))
