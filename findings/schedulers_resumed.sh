#!/usr/bin/env bash
# warmup-scheduler 0.3 and timm 1.0.31 (torch 2.13.0, CPU), beside torch, pytorch-warmup 0.2.0, ignite 0.5.5 and mmengine 0.10.7:
# learning rates of a run of 40 steps that was saved at step 15 (state_dict of optimizer and scheduler, torch.save) and resumed with
# new objects. Guess: the rates are those of the whole run. Seen: after GradualWarmupScheduler the rate stays where it was resumed, or
# where its warm-up ended, and never falls again: 0.096 instead of 0.001 in the end. Its state is the scheduler that follows, with the
# optimizer of the saved run, so that scheduler sets the rates of a copy; its file also holds the weights and Adam's state once more.
# timm's PlateauLRScheduler saves no count of bad epochs, so it lowers the rate later. The others are exact; nothing says so.
# So a resumed run is best checked against the rates of its log.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy warmup-scheduler==0.3 pytorch-warmup==0.2.0 pytorch-ignite==0.5.5 mmengine==0.10.7
"$folder/venv/bin/pip" install -q --no-deps timm==1.0.31  # its schedulers, without torchvision
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import importlib.metadata
import io
import sys
import types

import ignite.handlers.param_scheduler as ignite
import mmengine.optim.scheduler as mmengine
import pytorch_warmup
import torch
from torch.optim import lr_scheduler as torch_schedulers
from warmup_scheduler import GradualWarmupScheduler

sys.modules["timm"] = types.ModuleType("timm")
sys.modules["timm"].__path__ = [str(importlib.metadata.distribution("timm").locate_file("timm"))]
import timm.scheduler

STEPS, STOP = 40, 15

class Group:
    """Schedulers that a loop steps together; `step` takes the number of the step."""
    def __init__(self, schedulers, step):
        self.schedulers, self.step = schedulers, step

    def state_dict(self):
        return [scheduler.state_dict() for scheduler in self.schedulers]

    def load_state_dict(self, states):
        for scheduler, state in zip(self.schedulers, states, strict=True):
            scheduler.load_state_dict(state)

def one(scheduler):
    return Group([scheduler], lambda t: scheduler.step())

def cosine(optimizer, steps):
    return torch_schedulers.CosineAnnealingLR(optimizer, steps)

def of_torch(optimizer):
    return one(torch_schedulers.SequentialLR(
        optimizer, [torch_schedulers.LinearLR(optimizer, 0.1, total_iters=20), cosine(optimizer, 20)], [20]))

def of_pytorch_warmup(optimizer):
    warmup, schedule = pytorch_warmup.LinearWarmup(optimizer, 20), cosine(optimizer, STEPS)
    def step(t):
        with warmup.dampening():
            schedule.step()
    return Group([warmup, schedule], step)

def of_ignite(optimizer):
    scheduler = ignite.create_lr_scheduler_with_warmup(cosine(optimizer, 20), 0.0, 20, 0.1)
    return Group([scheduler], lambda t: scheduler(None))

def of_mmengine(optimizer):
    schedulers = [mmengine.LinearLR(optimizer, 0.001, begin=0, end=20),
                  mmengine.CosineAnnealingLR(optimizer, T_max=20, begin=20, end=STEPS)]
    return Group(schedulers, lambda t: [scheduler.step() for scheduler in schedulers])

def of_timm(optimizer):
    scheduler = timm.scheduler.CosineLRScheduler(optimizer, STEPS, warmup_t=20, warmup_lr_init=1e-3)
    return Group([scheduler], lambda t: scheduler.step(t + 1))

def of_timm_plateau(optimizer):
    scheduler = timm.scheduler.PlateauLRScheduler(optimizer, patience_t=3)
    return Group([scheduler], lambda t: scheduler.step(t + 1, 1.0))

def gradual(warmup):
    return lambda optimizer: one(GradualWarmupScheduler(optimizer, 1.0, warmup, cosine(optimizer, STEPS - warmup)))

def rates(make, resumed):
    def new():
        optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1000))], 0.1)
        return optimizer, make(optimizer)
    (optimizer, scheduler), found, sizes = new(), [], None
    for t in range(STEPS):
        if resumed and t == STOP:
            files = [io.BytesIO(), io.BytesIO()]
            for file, part in zip(files, (optimizer, scheduler)):
                torch.save(part.state_dict(), file)
                file.seek(0)
            sizes = [len(file.getvalue()) for file in files]
            optimizer, scheduler = new()
            optimizer.load_state_dict(torch.load(files[0]))
            scheduler.load_state_dict(torch.load(files[1], weights_only=False))
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.param_groups[0]["params"][0].grad = torch.ones(1000)
        optimizer.step()
        scheduler.step(t)
    return torch.tensor(found, dtype=torch.float64), sizes

for name, make, exact in (("warmup-scheduler, 10 steps", gradual(10), False), ("warmup-scheduler, 20 steps", gradual(20), False),
                          ("timm plateau", of_timm_plateau, False), ("timm cosine", of_timm, True), ("torch", of_torch, True),
                          ("pytorch-warmup", of_pytorch_warmup, True), ("ignite", of_ignite, True), ("mmengine", of_mmengine, True)):
    (whole, _), (again, sizes) = rates(make, False), rates(make, True)
    wrong = int(((whole - again).abs() > 1e-9).sum())
    print(f"{name:26} {wrong:2} of {STEPS} rates differ; the last is {whole[-1]:.2g}, resumed {again[-1]:.2g}; "
          f"{sizes[0]} bytes of the optimizer, {sizes[1]} of the scheduler")
    assert (wrong == 0) == exact, name
    if "warmup-scheduler" in name:
        assert again[-1] > 20 * whole[-1] and (again[STOP + 10:] == again[-1]).all() and sizes[1] > sizes[0]
PYTHON
