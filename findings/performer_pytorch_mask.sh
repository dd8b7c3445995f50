#!/usr/bin/env bash
# performer-pytorch 1.1.4 (torch 2.13.0, CPU): a mask of padding hides the values of padded tokens, not their keys.
# Guess: with the mask, what stands behind a sequence cannot matter. Seen: other numbers at the padded positions change the
# outputs of the tokens by a fifth of their norm, since padded keys stay in the denominator.
# So a padded batch and the same examples alone are different functions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy performer-pytorch==1.1.4
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from performer_pytorch import SelfAttention

torch.manual_seed(0)
layer = SelfAttention(64, heads=4, dim_head=16).eval()
x = torch.randn(2, 256, 64)
valid = torch.arange(256) < torch.tensor([[256], [200]])
other = torch.where(valid[..., None], x, 3 * x + 1)
with torch.no_grad():
    before, after = (layer(t, mask=valid)[1, :200] for t in (x, other))
    whole = [layer(t, mask=valid)[0] for t in (x, other)]
share = ((after - before).norm() / before.norm()).item()
print(f"outputs of the 200 tokens, other numbers at 56 padded positions: {100 * share:.0f} % off")
assert torch.equal(*whole), "an example without padding changed, too"
assert share > 0.05
PYTHON
