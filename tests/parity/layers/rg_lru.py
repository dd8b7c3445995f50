"""The gated linear recurrence of Griffin, behind a short convolution (De et al. 2024)."""
import torch

from definitions.directions import convolved, in_halves
from definitions.recurrences import gated_states, of_heads, softplus
from definitions.state_spaces import gelu

SETTINGS = [{"blocks": 2}, {"inner_dim": 6, "blocks": 3, "conv_width": 2, "bidirectional": False}]


def sizes(settings, about):
    inner = settings["inner_dim"] or about.width
    return {"inner": inner, "width": inner // settings["blocks"]}


def states(_, a, v):
    """Inputs keep the variance of the states; the first token of a direction enters as it is."""
    scale = (1 - a[1:].square()).clamp_min(2.5e-7).sqrt()
    return gated_states(a, torch.cat([v[:1], scale * v[1:]]))


def layer(x, valid, w, settings, about):
    linear = lambda t, name: t @ w[name + ".weight"].T + w[name + ".bias"]  # noqa: E731
    mixed = convolved(linear(x, "input"), valid, w["conv_weight"], settings) + w["conv_bias"]
    blocks = of_heads(mixed, settings["blocks"])
    r, i = ((torch.einsum("blhp,hqp->blhq", blocks, w[name + "_weight"]).flatten(2) + w[name + "_bias"]).sigmoid()
            for name in "ai")
    a = (-8 * r * softplus(w["lambda"])).exp()
    return linear(in_halves(states, valid, settings, a, i * mixed) * gelu(linear(x, "gate")), "output")
