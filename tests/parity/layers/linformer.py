"""Softmax attention to `rank` learned mixtures of all keys and values (Wang et al. 2020)."""
import torch

from definitions.attention import merged, project, scores

LENGTH_BOUND = "its projection has a row for each position"
SETTINGS = [{"rank": 7}]


def layer(x, valid, w, settings, about):
    (q,), (k, v) = project(x, w["query.weight"], 1, about), project(x, w["key_value.weight"], 2, about)
    p = w["projection"][:x.shape[1]] * valid[..., None]  # [B, L, rank]
    k, v = (torch.einsum("blr,bhle->bhre", p, t) for t in (k, v))
    return merged(scores(q, k).softmax(-1) @ v, w)
