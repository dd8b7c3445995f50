#!/usr/bin/env bash
# timm 1.0.31, mmengine 0.10.7, ema-pytorch 0.8.3, torch-ema 0.3, pytorch-ignite 0.5.5 (torch 2.13.0, CPU): moving averages of a
# model with complex parameters. Guess: the average of a complex number is that of its two parts. Seen: timm's ModelEmaV3 keeps the
# last complex weights, and mmengine's averages keep those of the first update, whatever comes later; both average what is
# real. Neither says so, and timm's does average them if it leaves buffers out. timm's ModelEmaV2, ema-pytorch, torch-ema,
# ignite and torch's AveragedModel treat both alike.
# So an averaged model may have the eigenvalues of the first or the last step; poles are better parameters of real dtype.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy mmengine==0.10.7 ema-pytorch==0.8.3 torch-ema==0.3 pytorch-ignite==0.5.5
"$folder/venv/bin/pip" install -q --no-deps timm==1.0.31  # one file of it, without torchvision
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import importlib.metadata
import runpy

import ema_pytorch
import mmengine.model
import torch
import torch_ema
from ignite.engine import Engine
from ignite.handlers import EMAHandler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

timm = runpy.run_path(str(importlib.metadata.distribution("timm").locate_file("timm/utils/model_ema.py")))
STEPS = 50

class Pole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.whole = torch.nn.Parameter(torch.zeros((), dtype=torch.cfloat))
        self.parts = torch.nn.Parameter(torch.zeros(2))

    def set(self, step):
        with torch.no_grad():
            self.parts.copy_(torch.tensor([1.0, 2.0]) * step)
            self.whole.copy_(torch.view_as_complex(self.parts.detach()))

def by_timm(name, **settings):
    def make(model):
        average = timm[name](model, 0.9, **settings)
        return lambda: average.update(model), lambda: average.module
    return make

def by_update(make_average):
    def make(model):
        average = make_average(model)
        return lambda: average.update_parameters(model), lambda: average.module
    return make

def by_ema_pytorch(model):
    average = ema_pytorch.EMA(model, beta=0.9, update_after_step=0, update_every=1)
    return average.update, lambda: average.ema_model

def by_torch_ema(model):
    average, copy = torch_ema.ExponentialMovingAverage(model.parameters(), 0.9), Pole()
    return average.update, lambda: (average.copy_to(copy.parameters()), copy)[1]

def by_ignite(model):
    average, engine = EMAHandler(model, momentum=0.1), Engine(lambda engine, batch: model.set(batch))
    average.attach(engine, name="momentum")
    return lambda: None, lambda: (engine.run(range(1, STEPS + 1)), average.ema_model)[1]

averages = {"timm ModelEmaV3": (by_timm("ModelEmaV3"), "the last"),
            "timm ModelEmaV3 without buffers": (by_timm("ModelEmaV3", exclude_buffers=True), "the average"),
            "timm ModelEmaV2": (by_timm("ModelEmaV2"), "the average"),
            "mmengine ExponentialMovingAverage": (by_update(
                lambda m: mmengine.model.ExponentialMovingAverage(m, momentum=0.1)), "the first"),
            "mmengine StochasticWeightAverage": (by_update(mmengine.model.StochasticWeightAverage), "the first"),
            "torch AveragedModel": (by_update(
                lambda m: AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.9))), "the average"),
            "ema-pytorch": (by_ema_pytorch, "the average"),
            "torch-ema": (by_torch_ema, "the average"),
            "ignite EMAHandler": (by_ignite, "the average")}
for name, (make, expected) in averages.items():
    model = Pole()
    update, result = make(model)
    for step in range(1, STEPS + 1):
        model.set(step)
        update()
    average = result()
    whole, parts = average.whole.item(), torch.view_as_complex(average.parts.detach()).item()
    assert 20 < parts.real < 45, name
    values = {"the average": parts, "the last": STEPS * (1 + 2j), "the first": 1 + 2j}
    found = [key for key, value in values.items() if abs(whole - value) < 1e-3]
    print(f"{name:34} complex {whole:.1f}, its parts {parts:.1f}: {', '.join(found)}")
    assert found == [expected], name
PYTHON
