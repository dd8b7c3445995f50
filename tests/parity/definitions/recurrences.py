"""States that the tokens change one after another, and what layers with such states share."""
import torch
from torch.nn.functional import silu

from definitions.directions import in_halves


def softplus(x):
    return torch.logaddexp(x, torch.zeros_like(x))


def rms(x, weight):
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight


def of_heads(t, heads):
    """[..., C] -> [..., heads, C / heads]"""
    return t.unflatten(-1, (heads, -1))


def gated_states(a, v):
    """h[t] = a[t] h[t - 1] + v[t]; v [L, C], a [L, C] or [C]"""
    h, rows = 0, []
    for decay, value in zip(a.expand_as(v), v):
        h = decay * h + value
        rows.append(h)
    return torch.stack(rows)


def memory(q, k, v, a, beta=None):
    """S[t]^T q with S~ = a S[t - 1], S[t] = S~ + k (v, or beta (v - S~^T k))^T; q, k [L, H, K], v [L, H, V],
    a [L, H, 1 or K], beta [L, H]"""
    state, rows = v.new_zeros(*k.shape[1:], v.shape[2]), []
    for t in range(len(q)):
        state = a[t][..., None] * state
        change = v[t] if beta is None else beta[t][:, None] * (v[t] - torch.einsum("hkv,hk->hv", state, k[t]))
        state = state + k[t][..., None] * change[:, None]
        rows.append(torch.einsum("hkv,hk->hv", state, q[t]))
    return torch.stack(rows)


def memories(valid, settings, *arrays):
    """`memory` of [B, L, H, ...], with each direction in its half of the heads."""
    return in_halves(lambda _, *rows: memory(*rows), valid, settings, *arrays)


def normalized_memories(x, valid, w, settings, q, k, v, a, *beta):
    """The memories of queries divided by sqrt(K): normalized in each head, gated by the input, projected."""
    y = rms(memories(valid, settings, q / q.shape[-1]**0.5, k, v, a, *beta), w["norm_weight"]).flatten(2)
    return (y * silu(x @ w["gate_weight"].T) if "gate_weight" in w else y) @ w["out_weight"].T
