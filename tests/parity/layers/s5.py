"""One diagonal state space that all channels share (Smith et al. 2023)."""
import torch

from definitions.state_spaces import complex_of, diagonal_states, gated, read_states

SETTINGS = [{"states": 8, "blocks": 2}, {"states": 6, "shared_step": True, "output": "half_glu2"},
            {"states": 12, "blocks": 3, "c_init": "complex_normal", "bidirectional": False},
            {"c_init": "trunc_standard_normal", "clip_poles": True, "output": "none"}]


def sizes(settings, about):
    pairs = settings["states"] // 2
    return {"P": pairs, "steps": 1 if settings["shared_step"] else pairs}


def layer(x, valid, w, settings, about):
    real = w["lambda_re"].clamp_max(-1e-4) if settings["clip_poles"] else w["lambda_re"]
    rate = torch.complex(real, w["lambda_im"])
    pole = (rate * w["dt"].exp()).exp()
    b = ((pole - 1) / rate)[:, None] * complex_of(w["b"], 0)
    twice = {**w, "c": 2 * w["c"]}  # a state stands for a conjugate pair
    return gated(read_states(x, valid, twice, settings, diagonal_states(pole, b)), w, settings["output"])
