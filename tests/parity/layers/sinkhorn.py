"""Softmax attention of blocks to themselves and to a soft permutation of the blocks (Tay et al. 2020)."""
import torch
from torch.nn import functional

from definitions.attention import merged, project, scores, softmax

ATTENTION = True
LENGTH_BOUND = "it has rows for the blocks of the longest sequence"
SETTINGS = [{"block": 8}, {"block": 5, "iterations": 1, "temperature": 2.5}, {"block": 50}]
SHORT = {"block": 16}


def sizes(settings, about):
    return {"blocks": -(-about.max_length // settings["block"])}


def soft_permutation(logits, valid, iterations):
    """[B, H, N, N]: rows, then columns, divided by their sums, among the valid blocks [B, N]."""
    s = logits.exp() * (valid[:, :, None] & valid[:, None, :])[:, None]
    for _ in range(iterations):
        for axis in (-1, -2):
            total = s.sum(axis, keepdim=True)
            s = s / torch.where(total > 0, total, 1)
    return s


def layer(x, valid, w, settings, about):
    length, block = x.shape[1], settings["block"]
    blocks = -(-length // block)

    def in_blocks(t):
        """[B, ..., L, E] -> [B, ..., N, block, E]"""
        return functional.pad(t, (0, 0, 0, blocks * block - length)).unflatten(-2, (blocks, block))

    q, k, v = project(x, w["qkv.weight"], 3, about)
    q, k, v = (in_blocks(t) for t in (q, *(t * valid[:, None, :, None] for t in (k, v))))
    is_token = in_blocks(valid[..., None])[..., 0]  # [B, N, block]
    logits = torch.einsum("bhnre,hle->bhnl", k, w["sort"][:, :blocks]) / settings["temperature"]
    s = soft_permutation(logits, is_token.any(-1), settings["iterations"])
    k, v = (torch.cat([t, torch.einsum("bhnl,bhlre->bhnre", s, t)], -2) for t in (k, v))
    sorted_rows = is_token.any(1, keepdim=True).expand_as(is_token)
    allowed = torch.cat([is_token, sorted_rows], -1)[:, None, :, None, :]
    return merged((softmax(scores(q, k), allowed) @ v).flatten(2, 3)[:, :, :length], w)
