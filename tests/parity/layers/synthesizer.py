"""Attention with scores that are learned or made of each token alone, not of pairs (Tay et al. 2020)."""
import math

import torch
from torch.nn.functional import relu

from definitions.attention import merged, project, scores, seen, softmax

ATTENTION = True
LENGTH_BOUND = "it has scores for the positions of the longest sequence"
SETTINGS = [{"variant": variant, "dot_product": mixed, "causal": causal, "rank": 4}
            for variant in ("random", "factorized_random", "dense", "factorized_dense")
            for mixed in (False, True) for causal in (False, True)]


def sizes(settings, about):
    n = math.isqrt(about.max_length - 1) + 1
    return {"n": n, "m": -(-about.max_length // n)}


def synthesized(x, w, variant, about):
    """[H or B, H, L, L]"""
    length = x.shape[1]
    if variant == "random":
        return w["random"][:, :length, :length]
    if variant == "factorized_random":
        return (w["factor1"] @ w["factor2"].mT)[:, :length, :length]
    hidden = relu(x @ w["hidden.weight"].T + w["hidden.bias"]).unflatten(2, (about.heads, -1)).transpose(1, 2)
    part = {name: hidden @ w[name + ".weight"].mT + w[name + ".bias"][:, None]
            for name in ("scores", "scores_a", "scores_b") if name + ".weight" in w}
    if variant == "dense":
        return part["scores"][..., :length]
    j, n = torch.arange(length), sizes({}, about)["n"]
    return part["scores_a"][..., j % n] * part["scores_b"][..., j // n]


def layer(x, valid, w, settings, about):
    logits = synthesized(x, w, settings["variant"], about)
    if settings["dot_product"]:
        q, k, v = project(x, w["qkv.weight"], 3, about)
        logits = logits + scores(q, k)
    else:
        (v,) = project(x, w["value.weight"], 1, about)
    return merged(softmax(logits, seen(valid, causal=settings["causal"])) @ v, w)
