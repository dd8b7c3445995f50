#!/usr/bin/env bash
# h-transformer-1d 0.1.9 (torch 2.13.0, CPU): hierarchical attention without a causal mask, 256 tokens. Guess: every
# token depends on all 256, the far ones through coarse levels. Seen: the first token depends on exactly the first 128,
# the last one on the last 128: the two halves never meet, at every length. A task whose answer joins both ends cannot be
# learned by one such layer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy h-transformer-1d==0.1.9
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from h_transformer_1d.h_transformer_1d import HAttention1D

torch.manual_seed(0)
layer = HAttention1D(64, heads=4, dim_head=16).eval()

def seen(length, token):
    x = torch.randn(1, length, 64, requires_grad=True)
    layer(x)[0, token].sum().backward()
    places = x.grad[0].abs().sum(1).nonzero().flatten()
    return int(places.min()), int(places.max()), len(places)

for length in (256, 1024):
    first, last = seen(length, 0), seen(length, length - 1)
    print(f"{length} tokens: the first depends on {first[0]} to {first[1]}, the last on {last[0]} to {last[1]}")
    assert first == (0, length // 2 - 1, length // 2) and last == (length // 2, length - 1, length // 2)
PYTHON
