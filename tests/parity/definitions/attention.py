"""Attention over dense arrays of pairs: heads, softmax, feature maps, and the output projection."""
import math

import torch

from definitions import pairs


def project(x, weight, parts, about):
    """x [B, L, D] -> `parts` arrays [B, H, L, E]; the last has the rows that are left, so that values may be wider."""
    inner = about.heads * about.head_dim
    y = (x @ weight.T).tensor_split([inner * n for n in range(1, parts)], 2)
    return [t.unflatten(2, (about.heads, -1)).transpose(1, 2) for t in y]


def merged(y, w):
    """[B, H, L, E] -> [B, L, D]"""
    return y.transpose(1, 2).flatten(2) @ w["output.weight"].T


def seen(valid, allowed=True, causal=False):
    """bool [B, 1 or H, 1 or L, L]: keys that are tokens, among the pairs of `allowed`, and with `causal` none later."""
    keys = valid[:, None, None, :] & torch.as_tensor(allowed)
    return keys & torch.from_numpy(pairs.not_later(valid.shape[1])) if causal else keys


def softmax(scores, allowed):
    """Softmax over the last axis; a row that may see nothing gives zeros."""
    return torch.where(allowed, scores, -1e300).softmax(-1) * allowed


def scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def attend(x, valid, w, about, allowed=True, causal=False):
    """Softmax attention of `qkv` over the pairs of `allowed`, bool [L, L] or [B or 1, H or 1, L, L]."""
    q, k, v = project(x, w["qkv.weight"], 3, about)
    return merged(softmax(scores(q, k), seen(valid, allowed, causal)) @ v, w)


def by_features(q, k, v, valid, eps, causal):
    """Attention with weights in proportion to the products of features; q, k [B, H, L, R]"""
    weights = q @ k.transpose(-2, -1) * seen(valid, True, causal)
    return weights / (weights.sum(-1, keepdim=True) + eps) @ v
