"""State spaces and recurrences, by the packages that compute them. Signatures are those of packages.exact.

None of them knows padding: the driver compares without.
"""
import os

import torch
from LRU_pytorch import LRU
from mambapy.mamba import MambaBlock, MambaConfig
from s5.s5_model import S5SSM
from torch.nn.functional import gelu

from packages.carry import WIDTH, call

os.environ["RWKV_V7_ON"] = "1"  # what rwkv reads as it is imported
from rwkv.model import RWKV_x070_TMix_seq as time_mixing  # noqa: E402


def mamba(x, valid, w, settings):
    """mambapy, one direction, whose convolution numbers its taps from the oldest token on"""
    states, rank = w["a_log"].shape[2], w["step_weight"].shape[2]
    module = MambaBlock(MambaConfig(WIDTH, 1, dt_rank=rank, d_state=states,
                                    expand_factor=settings["expand"], d_conv=settings["conv_width"]))
    weights = {"in_proj.weight": w["in_weight"], "out_proj.weight": w["out_weight"],
               "conv1d.weight": w["conv_weight"][0].flip(1)[:, None], "conv1d.bias": w["conv_bias"][0],
               "x_proj.weight": w["select_weight"][0, 0], "dt_proj.weight": w["step_weight"][0],
               "dt_proj.bias": w["step_bias"][0], "A_log": w["a_log"][0], "D": w["skip"][0]}
    return call(module, weights, x)


def s5(x, valid, w, settings):
    """s5-pytorch, in which a conjugate pair counts once: its C is twice ours"""
    poles, width = torch.complex(w["lambda_re"], w["lambda_im"]), x.shape[2]
    unused = torch.eye(len(poles), dtype=poles.dtype)
    module = S5SSM(poles, unused, unused, width, len(poles), 1e-3, 0.1, bcInit="complex_normal",
                   bidir=settings["bidirectional"])
    c = torch.complex(w["c"][:, :, 0], w["c"][:, :, 1]).flatten(1)
    weights = {"Lambda": poles, "B": torch.view_as_real(torch.complex(*w["b"])), "C": 2 * c,
               "D": w["skip"], "log_step": w["dt"].view_as(module.log_step)}
    outputs = [torch.func.functional_call(module, weights, (example,)) for example in x]
    return gelu(torch.stack(outputs), approximate="tanh")


def lru(x, valid, w, settings):
    """lru-pytorch, one direction; its D is a whole matrix"""
    module = LRU(x.shape[2], x.shape[2], len(w["nu_log"]))
    weights = {"nu_log": w["nu_log"], "theta_log": w["theta_log"], "gamma_log": w["gamma_log"],
               "B": torch.complex(*w["b"]), "C": torch.complex(w["c"][:, 0, 0], w["c"][:, 0, 1]),
               "D": torch.diag(w["skip"])}
    return gelu(torch.func.functional_call(module, weights, (x,)), approximate="tanh")


def rwkv7(x, valid, w, settings):
    """rwkv, its authors' package: the time mixing of a first layer, whose values it does not mix; one example at a time"""
    width, heads = x.shape[2], x.shape[2] // settings["head_channels"]
    zeros, state = x.new_zeros(width), torch.zeros(heads, width // heads, width // heads)
    down, up = ([w[f"{name}_{way}_weight"].T for name in ("decay", "rate", "gate")] for way in ("in", "out"))
    rest = (w["decay_bias"], down[0], up[0], w["rate_bias"], down[1], up[1], zeros, zeros[:, None], zeros[None],
            down[2], up[2], w["removed_key"], w["rated_key"], w["bonus"],
            *(w[f"{name}_weight"].T for name in ("r", "k", "v", "out")), w["norm_weight"], w["norm_bias"])
    return torch.stack([time_mixing(0, heads, width // heads, example, zeros, zeros, state, *w["mix"], *rest)[0]
                        for example in x])
