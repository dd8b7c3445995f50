"""A state space for each channel whose steps and matrices depend on the token (Gu and Dao 2023), in both directions."""
import torch
from torch.nn.functional import silu

from definitions.directions import in_time, weighted_past
from definitions.recurrences import softplus

SETTINGS = [{}, {"states": 3, "conv_width": 1, "dt_rank": 2, "expand": 1, "bidirectional": False},
            {"states": 5, "blocks": 2, "channel_bias": True},
            {"states": 3, "blocks": 2, "channel_bias": True, "complex_states": True}]


def sizes(settings, about):
    inner = settings["expand"] * about.width
    rank = settings["dt_rank"] or -(-about.width // (16 * settings["blocks"]))
    numbers = settings["states"] * (1 + settings["complex_states"])
    return {"inner": inner, "rank": rank, "numbers": numbers, "selected": rank + 2 * numbers,
            "width": inner // settings["blocks"]}


def number(t, is_complex):
    """[..., 2 N] of real and then imaginary parts as [..., N]"""
    return torch.complex(*t.chunk(2, -1)) if is_complex else t


def scan(x, w, rank):
    """Of the tokens of one example [L, E], in the order of time."""
    u = silu(weighted_past(x, w["conv_weight"]) + w["conv_bias"])
    blocks = u.unflatten(1, (len(w["select_weight"]), -1))
    selected = torch.einsum("ljp,jrp->ljr", blocks, w["select_weight"]).repeat_interleave(blocks.shape[2], 1)
    r, b, c = selected.tensor_split([rank, (rank + selected.shape[2]) // 2], 2)  # [L, E, ...]
    step = softplus((r * w["step_weight"]).sum(2) + w["step_bias"])
    b = b + w["b_bias"] if "b_bias" in w else b
    is_complex = "frequency" in w
    b, c = number(b, is_complex), number(c, is_complex)
    pole = -w["a_log"].exp() + (1j * w["frequency"] if is_complex else 0)
    h, rows = 0, []
    for t in range(len(x)):
        h = (step[t, :, None] * pole).exp() * h + (step[t] * u[t])[:, None] * b[t]
        rows.append((c[t] * h).sum(1).real if is_complex else (c[t] * h).sum(1))
    return torch.stack(rows) + w["skip"] * u


def layer(x, valid, w, settings, about):
    u, z = (x @ w["in_weight"].T).chunk(2, 2)
    own = [{name: t[d] for name, t in w.items() if name not in ("in_weight", "out_weight")}
           for d in range(len(w["skip"]))]
    y = sum(in_time(lambda d, rows: scan(rows, own[d], sizes(settings, about)["rank"]), valid, settings, u))
    return (y * silu(z)) @ w["out_weight"].T
