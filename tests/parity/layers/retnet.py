"""Matrices of states with a fixed decay for each head, and rotary positions (Sun et al. 2023)."""
import torch

from definitions.directions import directions_of
from definitions.recurrences import normalized_memories, of_heads

SETTINGS = [{}, {"key_dim": 6}, {"num_heads": 3, "key_dim": 2, "value_dim": 5, "bidirectional": False}]


def sizes(settings, about):
    heads = settings["num_heads"]
    keys = settings["key_dim"] or max(2, about.width // heads // 2 * 2)
    values = settings["value_dim"] or 2 * keys
    return {"K": keys, "V": values, "mixed": heads * (2 * keys + values)}


def rotary(t):
    """Pairs of neighboring channels of [B, L, H, K] turned in proportion to the position."""
    place, channel = (torch.arange(n, dtype=t.dtype) for n in (t.shape[1], t.shape[3]))
    angle = place[:, None, None] * 10000.0**(-channel[::2] / len(channel))
    even, odd = t[..., ::2], t[..., 1::2]
    return torch.stack([even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()], -1).flatten(3)


def layer(x, valid, w, settings, about):
    heads, size = settings["num_heads"], sizes(settings, about)
    q, k, v = (of_heads(t, heads) for t in (x @ w["qkv_weight"].T).split([heads * size[name] for name in "KKV"], 2))
    head = torch.arange(heads, dtype=x.dtype) % (heads // directions_of(settings))
    decay = (1 - 2.0**(-5 - head)).expand(*x.shape[:2], heads)[..., None]
    return normalized_memories(x, valid, w, settings, rotary(q), rotary(k), v, decay)
