"""Matrices of states that decay and are corrected where a key is seen again (Yang et al. 2024)."""
import torch
from torch.nn.functional import silu

from definitions.directions import convolved
from definitions.recurrences import normalized_memories, of_heads, softplus

SETTINGS = [{}, {"num_heads": 3, "bidirectional": False, "negative_eigenvalues": True},
            {"num_heads": 2, "key_dim": 5, "value_dim": 3, "decay": False, "gate": False, "conv_width": 2}]


def sizes(settings, about):
    heads = settings["num_heads"]
    keys = settings["key_dim"] or max(1, 3 * about.width // (4 * heads))
    values = settings["value_dim"] or 2 * keys
    return {"K": keys, "V": values, "mixed": heads * (2 * keys + values)}


def layer(x, valid, w, settings, about):
    heads, size = settings["num_heads"], sizes(settings, about)
    cuts = [heads * size[name] for name in "KKV"]
    parts = zip((x @ w["qkv_weight"].T).split(cuts, 2), w["conv_weight"].split(cuts))
    q, k, v = (of_heads(silu(convolved(t, valid, kernel, settings)), heads) for t, kernel in parts)
    q, k = (t / (t.square().sum(-1, keepdim=True) + 1e-6).sqrt() for t in (q, k))
    beta = (x @ w["beta_weight"].T).sigmoid() * (2 if settings["negative_eigenvalues"] else 1)
    decay = torch.ones_like(beta)
    if settings["decay"]:
        decay = (-w["a_log"].exp() * softplus(x @ w["decay_weight"].T + w["dt_bias"])).exp()
    return normalized_memories(x, valid, w, settings, q, k, v, decay[..., None], beta)
