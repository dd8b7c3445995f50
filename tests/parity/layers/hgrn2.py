"""Matrices of states whose keys are 1 minus their decays, with a lower bound in later layers (Qin et al. 2024)."""
from torch.nn.functional import silu

from definitions.recurrences import memories, of_heads, rms

SETTINGS = [{"head_channels": 5}, {"head_channels": 2, "lower_bound": 0.3, "bidirectional": False}]


def layer(x, valid, w, settings, about):
    width = settings["head_channels"] or min(128, about.width // 4)
    q, g, v = (x @ w["in_weight"].T).chunk(3, 2)
    bound = w["bound"].sigmoid() if "bound" in w else 0
    f = bound + (1 - bound) * g.sigmoid()
    heads = (of_heads(t, about.width // width) for t in (silu(q), 1 - f, v, f))
    return rms(memories(valid, settings, *heads).flatten(2), w["norm_weight"]) @ w["out_weight"].T
