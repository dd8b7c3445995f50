"""lra analyze controls and transfer, and training with their settings, in plain PyTorch float64.

The model is that of transformer_reference.py, with every mixer: cut into blocks that are encoded
apart, with shorter and longer texts, with the positions of a smaller image.
Loss (to 1e-5) and accuracy must agree. Shuffled tokens give another loss, except to a run that was
trained on them: that one is evaluated on the same ones.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch

from transformer_reference import (LAYERS, LISTOPS_DATA, PROGRAM, Model, figures, image_examples, lra,
                                   make_examples, models, short_settings, words_of)

FIELD, LENGTHS = 16, (60, 220)


def is_bound(model):
    return hasattr(LAYERS[model], "LENGTH_BOUND")


class Blocks(Model):
    """Blocks of tokens that know nothing of each other; CLS in front of each."""

    def __init__(self, run, length, field):
        super().__init__(run, length)
        self.field, self.max_length = field, field + self.max_length - self.length

    def read(self, x):
        cls = int(self.config["model"]["pooling"] == "cls")
        blocks = x[cls:].split(self.field)
        read = [super(Blocks, self).read(torch.cat([x[:cls], block])) for block in blocks]
        return sum(len(b) * r for b, r in zip(blocks, read)) / (len(x) - cls)


class Stretched(Model):
    """Positions of a smaller image, each for a square of pixels."""

    def __init__(self, run, side, own):
        super().__init__(run, side * side)
        self.side, self.own = side, own

    def positions(self, count):
        cls = count - self.side**2
        place = np.arange(self.side) * self.own // self.side
        square = (place[:, None] * self.own + place).reshape(-1)
        table = super().positions(cls + self.own**2)
        return torch.cat([table[:cls], table[cls + torch.from_numpy(square)]])


def expect(said, model, examples, name):
    loss, confusion = figures(model, examples, model.w["head.output.weight"].shape[0])
    accuracy = sum(row[i] for i, row in enumerate(confusion)) / len(examples)
    assert said["num_examples"] == len(examples), name
    assert abs(said["loss"] - loss) <= 1e-5, f"{name}: {loss:.6f}, lra says {said['loss']:.6f}"
    assert abs(said["accuracy"] - accuracy) < 1e-9, f"{name}: {accuracy}, lra says {said}"
    return abs(said["loss"] - loss)


def train(scratch, task, model, settings):
    run = scratch / f"{task}-{model}-{len(list(scratch.iterdir()))}"
    common = ["train.steps=4", "train.warmup_steps=1", "train.batch_size=4", "model.layers=2",
              "train.learning_rate=0.01", "train.precision=fp32"]
    lra("train", task, model, "--data", scratch / "data", "--out", run,
        *words_of(common + settings))
    return run


def analysed(run, kind, *words):
    said = json.loads(lra("analyze", kind, run, "--json", *words))
    return said[0]["analysis"][kind]["scores"]


def compare_controls(scratch, task, model, examples, settings, lengths):
    run = train(scratch, task, model, settings)
    lists = ["--lengths", ",".join(map(str, lengths))] if lengths else []
    said = analysed(run, "controls", "--data", scratch / "data", "--fields", FIELD, *lists)
    own = Model(run)
    references = [("none", own), ("shuffled tokens", None),
                  ("receptive field", Blocks(run, own.length, FIELD)),
                  *(("length", Model(run, length)) for length in lengths)]
    assert [c["change"] for c in said] == [change for change, _ in references], said
    worst, name = 0, f"{task} {model} {' '.join(settings)}"
    for control, (change, reference) in zip(said, references):
        learned = own.config["model"]["positions"] == "learned"
        if change != "none" and reference and (
                is_bound(model) or change == "length" and learned and
                reference.length > own.length):
            assert "score" not in control and "belongs to sequences" in control["refused"], control
        elif reference:
            worst = max(worst, expect(control["score"], reference, examples, f"{name}: {change}"))
        else:
            assert control["score"]["loss"] != said[0]["score"]["loss"], name
    print(f"ok: {name}: losses at most {worst:.1e} apart")


def compare_trained(scratch, model, examples):
    """Trained and evaluated in blocks, all mixers: their parameters are those of a block."""
    run = train(scratch, "text", model, ["task.length=150", f"model.receptive_field={FIELD}",
                                         "model.pooling=cls", *short_settings(model)])
    said = json.loads(lra("eval", run, "--json", "--data", scratch / "data"))
    said["num_examples"] = said["examples"]
    reference = Blocks(run, 150, FIELD)
    print(f"ok: {model} trained in blocks: loss "
          f"{expect(said, reference, examples, model):.1e} apart")
    refused = subprocess.run([PROGRAM, "analyze", "span", str(run), "--data",
                              str(scratch / "data"), "--quiet"], capture_output=True)
    assert refused.returncode == 2 and b"sees blocks of 16 tokens" in refused.stderr, refused


def compare_transfer(scratch, model, positions, examples):
    run = train(scratch, "pathfinder", model,
                ["model.pooling=cls", "task.input=tokens", f"model.positions={positions}",
                 *short_settings(model)])
    said = analysed(run, "transfer", "--to", "pathfinder64", "--data", scratch / "data")
    assert [c["value"] for c in said] == ["stretched", "continued"]
    stretched = Stretched(run, 64, 32)
    for name in stretched.w:
        if name.endswith(".mixer.dt"):
            stretched.w[name] = stretched.w[name] + math.log(32 / 64)
    worst = expect(said[0]["score"], stretched, examples, f"{model} stretched")
    if positions == "learned":
        assert "can be stretched" in said[1]["refused"], said
    else:
        worst = max(worst, expect(said[1]["score"], Model(run, 64 * 64), examples, "continued"))
    print(f"ok: {model} from Pathfinder to 64 x 64, {positions}: losses at most {worst:.1e} apart")


def compare_shuffled(scratch):
    """A run that was trained on shuffled tokens is evaluated on them, and on the same ones."""
    run = train(scratch, "text", "local", ["task.length=150", "train.token_order=shuffled"])
    said = analysed(run, "controls", "--data", scratch / "data", "--fields", 64)
    assert said[0]["score"] == said[1]["score"], said
    print("ok: a run on shuffled tokens")


def main():
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        text, listops = make_examples(scratch, 12)
        for task, count in (("pathfinder", 20), ("pathfinder64", 2)):
            lra("data", "make", task, "--train", count, "--val", 2, "--test", 2, "--out",
                scratch / "data" / task)
        large = image_examples(scratch / "data" / "pathfinder64", 64 * 64)
        for model in models():
            own = short_settings(model)
            compare_controls(scratch, "text", model, text,
                             ["task.length=150", "model.pooling=cls", "model.positions=sinusoid",
                              *own], LENGTHS)
            compare_controls(scratch, "listops", model, listops,
                             ["task.length=180", *LISTOPS_DATA, "model.pooling=mean",
                              "model.positions=learned", *own], ())
            compare_trained(scratch, model, text)
        for positions in ("learned", "sinusoid"):
            compare_transfer(scratch, "transformer", positions, large)
        compare_transfer(scratch, "s4d", "sinusoid", large)
        compare_shuffled(scratch)


if __name__ == "__main__":
    main()
