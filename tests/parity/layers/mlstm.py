"""Matrices of states with exponential input gates, divided by what the keys add up to (Beck et al. 2024)."""
import torch
from torch.nn.functional import silu

from definitions.directions import convolved
from definitions.recurrences import memories, of_heads, rms

SETTINGS = [{}, {"num_heads": 5, "block": 2, "forget_min": -1.0, "bidirectional": False},
            {"num_heads": 2, "expand": 1, "block": 5, "conv_width": 2}]


def sizes(settings, about):
    inner = settings["expand"] * about.width
    return {"inner": inner, "groups": inner // settings["block"]}


def of_blocks(t, matrices):
    """A matrix for each block of neighboring channels."""
    return torch.einsum("blgp,grp->blgr", of_heads(t, len(matrices)), matrices).flatten(2)


def layer(x, valid, w, settings, about):
    heads = settings["num_heads"]
    u, z = (x @ w["up_weight"].T).chunk(2, 2)
    c = silu(convolved(u, valid, w["conv_weight"], settings) + w["conv_bias"])
    q, k, v = (of_blocks(*pair) for pair in zip((c, c, u), w["qkv_weight"]))
    i, g = (torch.cat([q, k, v], 2) @ w["gate_weight"].T + w["gate_bias"]).chunk(2, 2)
    q, k, v = (of_heads(t, heads) for t in (q, k, v))
    k, decay = k * i.exp()[..., None] / k.shape[3]**0.5, g.sigmoid()[..., None]
    total = memories(valid, settings, q, k, torch.ones_like(v[..., :1]), decay)
    h = memories(valid, settings, q, k, v, decay) / total.abs().clamp_min(1)
    h = rms(h - h.mean(-1, keepdim=True), of_heads(w["norm_weight"], heads)).flatten(2)
    return ((h + w["skip"] * c) * silu(z)) @ w["down_weight"].T
