#!/usr/bin/env bash
# pytorch_optimizer 4.1.0, schedulefree 1.4.1, madgrad 1.3, lion-pytorch 0.2.5 (torch 2.13.0, CPU): a parameter that is frozen for
# 5,000 steps, in the same group as one that is trained. Guess: its first steps are as long as those of a new parameter, as with
# torch's own optimizers. Seen: many count steps by group, and treat its empty moments as if they were full. AdaBelief, AdamP,
# AdamS, AdEMAMix, FlashAdamW, GaLore and both schedule-free AdamW begin with three rates instead of one, and most of them take
# six at the tenth step; LaProp begins with 32 rates, MADGRAD with 17, StableAdamW with a tenth of one.
# So add poles or embeddings as a group of their own when their training begins: then the first step is one rate.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy pytorch_optimizer==4.1.0 schedulefree==1.4.1 madgrad==1.3 lion-pytorch==0.2.5
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import lion_pytorch
import madgrad
import pytorch_optimizer as po
import schedulefree
import torch

RATE = 1e-3

def steps(make, frozen_for, own_group=False):
    """The lengths of the first ten steps with a gradient of 1, in rates."""
    torch.manual_seed(0)
    trained, late = (torch.nn.Parameter(torch.ones(1, 1)) for _ in range(2))
    optimizer = make([trained] if own_group else [trained, late], lr=RATE)
    getattr(optimizer, "train", int)()
    for _ in range(frozen_for):
        trained.grad = torch.randn(1, 1)
        optimizer.step()
    if own_group:
        optimizer.add_param_group({"params": [late]})
    path = [late.item()]
    for _ in range(10):
        trained.grad, late.grad = torch.randn(1, 1), torch.ones(1, 1)
        optimizer.step()
        path.append(late.item())
    return [(a - b) / RATE for a, b in zip(path, path[1:])]

rows = {"torch Adam": (torch.optim.Adam, 1), "torch NAdam": (torch.optim.NAdam, 1), "Lion": (lion_pytorch.Lion, 1),
        "AdaBelief": (po.AdaBelief, 3), "AdamP": (po.AdamP, 3), "AdamS": (po.AdamS, 3), "AdEMAMix": (po.AdEMAMix, 3),
        "FlashAdamW": (po.FlashAdamW, 3), "GaLore": (po.GaLore, 3), "ScheduleFreeAdamW": (po.ScheduleFreeAdamW, 3),
        "AdamWScheduleFree": (schedulefree.AdamWScheduleFree, 3), "MADGRAD": (madgrad.MADGRAD, 17), "LaProp": (po.LaProp, 30),
        "StableAdamW": (po.StableAdamW, 0.1)}
for name, (make, ratio) in rows.items():
    fresh, late = steps(make, 0), steps(make, 5_000)
    print(f"{name:18} first step {fresh[0]:5.2f} rates, frozen before {late[0]:6.2f}; tenth {fresh[9]:5.2f} and {late[9]:6.2f}")
    assert 0.85 * ratio < late[0] / fresh[0] < 1.15 * ratio, name
for make in (po.AdaBelief, schedulefree.AdamWScheduleFree):
    fresh, late = steps(make, 0), steps(make, 5_000, own_group=True)
    print(f"{make.__name__:18} first step {late[0]:.2f} rates in a group added when it begins")
    assert 0.95 < late[0] / fresh[0] < 1.05
PYTHON
