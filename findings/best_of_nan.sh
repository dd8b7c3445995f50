#!/usr/bin/env bash
# torchmetrics 1.9.0 and pytorch-ignite 0.5.5 (torch 2.13.0, CPU): the best of several validations, one of which is NaN.
# Guess: the best finite one. Seen: MetricTracker.best_metric gives NaN and its epoch, whether large or small is good.
# ignite's ModelCheckpoint keeps the weights of a NaN that comes first for ever, and no later ones. With room for two, a NaN that
# comes second stays, and of 0.5, NaN, 0.7 and 0.8 it keeps 0.7 and NaN: the best are gone. A NaN that comes third is left out.
# So a score should be finite, as -inf or inf, before it chooses weights.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy torchmetrics==1.9.0 pytorch-ignite==0.5.5
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import math
import pathlib
import tempfile

import torch
from ignite.engine import Engine, Events
from ignite.handlers import ModelCheckpoint
from torchmetrics import MeanSquaredError, MetricTracker

nan = math.nan
for maximize in (False, True):
    tracker = MetricTracker(MeanSquaredError(), maximize=maximize)
    for prediction in (3.0, 1.0, nan, 2.0):
        tracker.increment()
        tracker.update(torch.tensor([prediction]), torch.zeros(1))
    value, epoch = tracker.best_metric(return_step=True)
    print(f"MetricTracker, maximize={maximize}: {value} in epoch {epoch} of 9, 1, NaN, 4")
    assert math.isnan(value) and epoch == 2

def kept(scores, room):
    """The scores of the weights that are kept after the last validation."""
    folder, engine = tempfile.mkdtemp(dir="."), Engine(lambda engine, score: score)
    handler = ModelCheckpoint(folder, n_saved=room, score_function=lambda e: e.state.output, score_name="score")
    engine.add_event_handler(Events.ITERATION_COMPLETED, handler, {"model": torch.nn.Linear(1, 1)})
    engine.run(scores)
    return sorted(file.stem.split("=")[1] for file in pathlib.Path(folder).iterdir())

for scores, room, expected in (([0.5, 0.7, 0.8, 0.6], 1, ["0.8000"]), ([nan, 0.5, 0.7, 0.8], 1, ["nan"]),
                               ([0.5, nan, 0.7, 0.8], 1, ["0.8000"]), ([0.5, nan, 0.7, 0.8], 2, ["0.7000", "nan"]),
                               ([0.8, nan, 0.5, 0.7], 2, ["0.8000", "nan"]), ([0.5, 0.7, nan, 0.8], 2, ["0.7000", "0.8000"])):
    found = kept(scores, room)
    print(f"ignite, room for {room}: keeps {found} of {scores}")
    assert found == expected
PYTHON
