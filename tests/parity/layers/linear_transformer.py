"""Attention with weights in proportion to products of elu(.) + 1 of queries and keys (Katharopoulos et al. 2020)."""
import torch

from definitions.attention import by_features, merged, project

ATTENTION = True
SETTINGS = [{}, {"eps": 0.5}, {"eps": 0.5, "causal": True}]


def layer(x, valid, w, settings, about):
    q, k, v = project(x, w["qkv.weight"], 3, about)
    q, k = (torch.where(t > 0, t + 1, t.clamp_max(0).exp()) for t in (q, k))
    return merged(by_features(q, k, v, valid, settings["eps"], settings["causal"]), w)
