"""RWKV-7's time mixing: a state that decays by channels, forgets along one key and is written by another
(Peng et al. 2025, section 4)."""
import math

import torch

from definitions.directions import directions_of, in_time, share
from definitions.recurrences import of_heads

SETTINGS = [{}, {"head_channels": 2, "rank": 3, "gate_rank": 4, "bidirectional": False}, {"head_channels": 5, "rank": 1}]


def sizes(settings, about):
    def rank(given, factor):
        return given or 32 * max(1, round(factor * math.sqrt(about.width) / 32))

    return {"R": rank(settings["rank"], 2.5), "G": rank(settings["gate_rank"], 5)}


def head_width(settings, about):
    if settings["head_channels"]:
        return settings["head_channels"]
    most = min(64, about.width // (4 if about.width % 4 == 0 else 2))
    return next(k for k in range(most, 0, -1) if about.width % (k * directions_of(settings)) == 0)


def states(r, w, k, v, kk, a):
    """S[t]^T r with S[t] = diag(w) S[t - 1] - (a kk) (S[t - 1]^T kk)^T + k v^T, all [L, H, K]"""
    state, rows = v.new_zeros(*v.shape[1:], v.shape[2]), []
    for t in range(len(r)):
        removed = torch.einsum("hkv,hk->hv", state, kk[t])
        state = w[t][..., None] * state - (a * kk)[t][..., None] * removed[:, None] + k[t][..., None] * v[t][:, None]
        rows.append(torch.einsum("hkv,hk->hv", state, r[t]))
    return torch.stack(rows)


def layer(x, valid, w, settings, about):
    heads = about.width // head_width(settings, about) // directions_of(settings)

    def run(d, u):
        own = lambda name: share(w[name], d, settings)  # noqa: E731
        before = torch.cat([torch.zeros_like(u[:1]), u[:-1]])
        x_r, x_w, x_k, x_v, x_a, x_g = (u + mu * (before - u) for mu in w["mix"])
        r, k, v = x_r @ own("r_weight").T, x_k @ own("k_weight").T, x_v @ own("v_weight").T
        decay = torch.tanh(x_w @ w["decay_in_weight"].T) @ own("decay_out_weight").T + own("decay_bias")
        decay = (-math.exp(-0.5) * decay.sigmoid()).exp()
        a = (x_a @ w["rate_in_weight"].T @ own("rate_out_weight").T + own("rate_bias")).sigmoid()
        g = (x_g @ w["gate_in_weight"].T).sigmoid() @ own("gate_out_weight").T
        kk = of_heads(k * own("removed_key"), heads)
        kk = kk / (kk.square().sum(-1, keepdim=True) + 1e-12).sqrt()
        k = k * (1 + (a - 1) * own("rated_key"))
        r, k, v, a, decay, bonus = (of_heads(t, heads) for t in (r, k, v, a, decay, own("bonus")))
        y = states(r, decay, k, v, kk, a)
        y = y - y.mean(-1, keepdim=True)
        y = y / (y.square().mean(-1, keepdim=True) + 64e-5).sqrt()
        y = y.flatten(1) * own("norm_weight") + own("norm_bias")
        return (y + ((bonus * r * k).sum(-1, keepdim=True) * v).flatten(1)) * g

    return torch.cat(in_time(run, valid, settings, x), 2) @ w["out_weight"].T
