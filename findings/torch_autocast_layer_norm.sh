#!/usr/bin/env bash
# torch 2.13.0, CPU: a layer norm with float32 parameters under autocast to bfloat16.
# Guess: the gradient of its bias is a float32 sum, as that of a linear layer, since the parameter is float32. Seen: over 32,000
# tokens with a gradient of 1 it is 256 for each thread instead of 32,000. GroupNorm, BatchNorm1d, Conv1d and Linear give
# 32,000; autocast on a GPU computes layer norms in float32.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy
"$folder/venv/bin/python" - <<'PYTHON'
import torch

x = torch.randn(8, 4000, 16).bfloat16()


def gradient(layer, x):
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x)
    y.backward(torch.ones_like(y))
    assert layer.bias.grad.dtype == torch.float32
    return layer.bias.grad.unique().tolist()


across = x.transpose(1, 2).contiguous()
for layer, input in ((torch.nn.Linear(16, 16), x), (torch.nn.GroupNorm(4, 16), across),
                     (torch.nn.BatchNorm1d(16), across), (torch.nn.Conv1d(16, 16, 3, padding=1), across)):
    assert gradient(layer, input) == [32_000], layer
for threads in (1, 2):
    torch.set_num_threads(threads)
    found = gradient(torch.nn.LayerNorm(16), x)
    print(f"{threads} thread(s), LayerNorm: {found}")
    assert found == [256 * threads]
PYTHON
