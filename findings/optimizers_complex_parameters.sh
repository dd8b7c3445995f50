#!/usr/bin/env bash
# schedulefree 1.4.1, adan-pytorch 0.1.0, came-pytorch 0.1.3, pytorch_optimizer 4.1.0 (torch 2.13.0, CPU): complex parameters,
# as layers of state spaces have them. Guess: as torch's own Adam, each treats a complex number as its two parts, or refuses it.
# Seen: these four neither refuse it nor reach the minimum that they reach from the parts: they square complex gradients, so that
# their second moments have a sign. Many others of pytorch_optimizer refuse; its AdaBelief and ADOPT agree with the parts.
# So a model's poles are better parameters of real dtype, viewed as complex in forward.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy schedulefree==1.4.1 adan-pytorch==0.1.0 came-pytorch==0.1.3 \
  pytorch_optimizer==4.1.0
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from adan_pytorch import Adan
from came_pytorch import CAME
from pytorch_optimizer import AdaBelief, ADOPT, Yogi
from schedulefree import AdamWScheduleFree

target = torch.complex(torch.linspace(-1, 1, 8), torch.linspace(2, -1, 8))

def distance(make, as_parts):
    """The largest distance from the minimum of |z - target|^2 after 400 steps from (1 + i) / 2."""
    start = torch.full((8,), 0.5 + 0.5j)
    p = torch.nn.Parameter(torch.view_as_real(start).clone() if as_parts else start)
    number = lambda: torch.view_as_complex(p) if as_parts else p
    optimizer = make([p])
    getattr(optimizer, "train", int)()
    for _ in range(400):
        optimizer.zero_grad()
        (number() - target).abs().square().sum().backward()
        optimizer.step()
    getattr(optimizer, "eval", int)()
    return (number() - target).abs().max().item()

rows = {"torch Adam": (lambda p: torch.optim.Adam(p, lr=0.01), True),
        "AdaBelief": (lambda p: AdaBelief(p, lr=0.01), True),
        "ADOPT": (lambda p: ADOPT(p, lr=0.01), True),
        "AdamWScheduleFree": (lambda p: AdamWScheduleFree(p, lr=0.02), False),
        "Adan": (lambda p: Adan(p, lr=0.01), False),
        "CAME": (lambda p: CAME(p, lr=0.02), False),
        "Yogi": (lambda p: Yogi(p, lr=0.01), False)}
for name, (make, agrees) in rows.items():
    whole, parts = distance(make, False), distance(make, True)
    print(f"{name:18} {whole:.3f} from the minimum as a complex number, {parts:.3f} as two parts")
    assert abs(whole - parts) < 1e-4 if agrees else whole > 5 * parts
PYTHON
