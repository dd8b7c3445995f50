"""Heads with matrices of states that decay by a number for each token (Dao and Gu 2024)."""
from torch.nn.functional import silu

from definitions.directions import convolved, directions_of
from definitions.recurrences import memories, of_heads, rms, softplus

SETTINGS = [{"states": 5}, {"states": 3, "head_channels": 4, "conv_width": 1, "bidirectional": False},
            {"states": 2, "head_channels": 5, "expand": 1, "a_max": 1.0}]


def sizes(settings, about):
    inner = settings["expand"] * about.width
    mixed = inner + 2 * directions_of(settings) * settings["states"]
    scans = inner // (settings["head_channels"] or inner // 4)
    return {"inner": inner, "mixed": mixed, "scans": scans, "rows": inner + mixed + scans}


def layer(x, valid, w, settings, about):
    directions, inner, heads = directions_of(settings), len(w["norm_weight"]), len(w["skip"])
    shared = directions * settings["states"]
    z, *mixed, step = (x @ w["in_weight"].T).split([inner, inner, shared, shared, heads], 2)
    kernels, biases = (w[name].split([inner, shared, shared]) for name in ("conv_weight", "conv_bias"))
    value, b, c = (silu(convolved(t, valid, kernel, settings) + bias)
                   for t, kernel, bias in zip(mixed, kernels, biases))
    value = of_heads(value, heads)
    b, c = (of_heads(t, directions).repeat_interleave(heads // directions, 2) for t in (b, c))
    step = softplus(step + w["dt_bias"])
    decay = (-step * w["a_log"].exp()).exp()
    y = memories(valid, settings, c, b, step[..., None] * value, decay[..., None]) + w["skip"][:, None] * value
    y = of_heads(y.flatten(2) * silu(z), directions)
    return rms(y, of_heads(w["norm_weight"], directions)).flatten(2) @ w["out_weight"].T
