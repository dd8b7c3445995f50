"""Helpers of all comparisons with packages: sizes, heads, and weights copied into modules."""
import torch

HEADS, HEAD_DIM = 4, 16
WIDTH = HEADS * HEAD_DIM  # most packages know no other width


def project(x, weight, parts=1):
    """[B, L, D] -> `parts` tensors [B, H, L, E]"""
    y = torch.nn.functional.linear(x, weight)
    return y.view(*x.shape[:2], parts, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4).unbind(0)


def merged(y, w):
    """[B, H, L, E] -> [B, L, D]"""
    return joined(y.transpose(1, 2).flatten(2), w)


def joined(y, w):
    """Heads side by side [B, L, H E] -> [B, L, D]"""
    return torch.nn.functional.linear(y, w["output.weight"])


def call(module, weights, *arguments, **options):
    """The module in evaluation with our weights for its parameters; biases that we have not are 0.

    The result is differentiable with respect to the weights. Every parameter must be given and
    every weight must find its parameter, in the same shape.
    """
    dtype = next(iter(weights.values())).dtype
    parameters = dict(module.named_parameters())
    for name, parameter in parameters.items():
        if name in weights:
            assert weights[name].shape == parameter.shape, f"{name}: {tuple(parameter.shape)}"
        else:
            assert name.endswith("bias"), f"parameter {name} has no counterpart"
    assert not weights.keys() - parameters.keys(), f"unknown {weights.keys() - parameters.keys()}"
    values = {name: weights[name] if name in weights else torch.zeros_like(p, dtype=dtype)
              for name, p in parameters.items()}
    module = module.to(dtype).eval()
    return torch.func.functional_call(module, values, arguments, options)
