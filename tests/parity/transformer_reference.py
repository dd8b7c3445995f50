"""The whole model once more in plain PyTorch float64, against what lra eval says of a run.

Weights come from the run's model.safetensors, what mixers draw from its seed, examples from the
exported official files, mixers from their definitions in tests/parity/layers, everything between them
from the papers. Loss (to 1e-5), accuracy and confusion matrix of both must agree, for every mixer
(with LRA_QUICK one of each family) and for both kinds of positions, pooling and classifier.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib

import numpy as np
import torch
import torch.nn.functional as functional

try:
    from safetensors.torch import load_file
except ImportError:
    print("skipped: no safetensors package")
    sys.exit(77)

from definitions import draws
from definitions.every_layer import About, every_layer
from definitions.program import PROGRAM, default_settings

LAYERS = every_layer()
torch.set_num_threads(1)

# Ids of the published vocabulary; 0 is padding. Parentheses of the curried form are not tokens.
LISTOPS_IDS = {word: 1 + i for i, word in enumerate(
    ["[MIN", "[MAX", "[MED", "[SM", "]", *map(str, range(10))])}


def lra(*words):
    done = subprocess.run([PROGRAM, *map(str, words), "--threads", "1", "--quiet"], check=True,
                          stdout=subprocess.PIPE)
    return done.stdout


def listops_examples(folder, split):
    lines = (folder / "listops-1000" / f"basic_{split}.tsv").read_text().splitlines()[1:]
    for line in lines:
        source, target = line.split("\t")
        words = source.replace("(", " ").replace(")", " ").split()
        yield [LISTOPS_IDS[word] for word in words], int(target)


def text_examples(folder, split):
    for label, name in enumerate(("neg", "pos")):
        for path in sorted((folder / "aclImdb" / split / name).iterdir()):
            yield [byte + 1 for byte in path.read_bytes()], label


def sinusoids(length, width):
    channel = torch.arange(width, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** (
        -2 * torch.div(channel, 2, rounding_mode="floor") / width)
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos())


class Model:
    """One sequence at a time, without any padding. Images have no length among their settings."""

    def __init__(self, run, length=None):
        self.config = tomllib.loads((run / "config.toml").read_text())
        self.w = {name: t.double() for name, t in
                  load_file(run / "checkpoints" / "latest" / "model.safetensors").items()}
        # Some settings are in a run's file only where they are not the default.
        self.mixer = {**default_settings(self.config["run"]["model"]), **self.config["mixer"]}
        self.length = length or self.config["task"]["length"]
        self.max_length = self.length + int(self.config["model"]["pooling"] == "cls")

    def norm(self, x, name):
        weight = self.w[name + ".weight"]
        if self.config["model"]["norm"] == "rms":
            return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight
        bias = self.w[name + ".bias"]
        if self.config["model"]["norm"] == "batch":
            mean, variance = (self.w[name + key] for key in (".running_mean", ".running_var"))
            return (x - mean) / (variance + 1e-5).sqrt() * weight + bias
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight + bias

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    @staticmethod
    def layer(prefix):
        """encoder.layers.I.mixer. -> I"""
        return int(prefix.split(".")[2])

    def about(self, prefix):
        model = self.config["model"]
        return About(model["embed_dim"], model["heads"], model["qkv_dim"] // model["heads"], self.max_length,
                     self.layer(prefix), self.config["run"]["seed"], prefix, self.stream[None])

    def tensors(self, prefix):
        return {name.removeprefix(prefix): t for name, t in self.w.items() if name.startswith(prefix)}

    def apply(self, x, w, about):
        """The mixer with the weights w; x [L, D]"""
        valid = torch.ones(1, len(x), dtype=torch.bool)
        return LAYERS[self.config["run"]["model"]].layer(x[None], valid, w, self.mixer, about)[0]

    def mix(self, x, prefix):
        return self.apply(x, self.tensors(prefix), self.about(prefix))

    def positions(self, count):
        """Encodings that are added to the first tokens, CLS counted."""
        if self.config["model"]["positions"] == "none":
            return 0
        learned = self.w.get("embedding.position")
        width = self.config["model"]["embed_dim"]
        return sinusoids(count, width) if learned is None else learned[:count]

    def embed(self, ids):
        x = self.w["embedding.token"][torch.tensor(ids[:self.length])]
        if self.config["model"]["pooling"] == "cls":
            x = torch.cat([self.w["embedding.cls"][None], x])
        return x + self.positions(len(x))

    def read(self, x):
        """Maps embedded tokens to the vector that is classified."""
        for layer in range(self.config["model"]["layers"]):
            block = f"encoder.layers.{layer}."
            self.stream = x
            x = x + self.mix(self.norm(x, block + "norm1"), block + "mixer.")
            if self.config["model"]["feed_forward"] == "none":
                continue
            hidden = self.linear(self.norm(x, block + "norm2"), block + "mlp.fc1")
            hidden = functional.gelu(hidden, approximate="tanh")
            x = x + self.linear(hidden, block + "mlp.fc2")
        x = self.norm(x, "encoder.norm")
        return x[0] if self.config["model"]["pooling"] == "cls" else x.mean(0)

    def logits(self, ids):
        x = self.read(self.embed(ids))
        if self.config["model"]["classifier"] == "mlp":
            x = functional.relu(self.linear(x, "head.hidden"))
        return self.linear(x, "head.output")


def figures(model, examples, num_classes):
    loss, confusion = 0.0, [[0] * num_classes for _ in range(num_classes)]
    for ids, label in examples:
        logits = model.logits(ids)
        loss -= logits.log_softmax(-1)[label].item()
        confusion[label][logits.argmax().item()] += 1
    return loss / len(examples), confusion


def words_of(settings):
    return [word for setting in settings for word in ("--set", setting)]


def check_features(model):
    """A Performer's features are saved with the weights, but nothing learns them: they are those of the run's seed."""
    for layer in range(model.config["model"]["layers"]):
        name = f"encoder.layers.{layer}.mixer.features"
        key = draws.weight_key(model.config["run"]["seed"], name)
        drawn = draws.performer_features(key, *model.w[name].shape)
        assert np.abs(model.w[name].numpy() - drawn).max() <= 1e-6, name


def compare(scratch, task, model, examples, settings):
    run = scratch / f"{task}-{model}-{len(list(scratch.iterdir()))}"
    common = ["train.steps=4", "train.warmup_steps=1", "train.batch_size=4",
              "train.learning_rate=0.01", "train.precision=fp32"]
    lra("train", task, model, "--data", scratch / "data", "--out", run,
        *words_of(common + settings))
    said = json.loads(lra("eval", run, "--json", "--data", scratch / "data"))
    assert said["examples"] == len(examples), said["examples"]
    reference = Model(run)
    loss, confusion = figures(reference, examples, len(said["confusion"]))
    name = f"{task} {model} {' '.join(settings)}"
    assert abs(loss - said["loss"]) <= 1e-5 * max(1, loss), f"{name}: loss {loss:.6f}, lra says {said['loss']:.6f}"
    assert confusion == said["confusion"], f"{name}: {confusion}, lra says {said['confusion']}"
    right = sum(row[i] for i, row in enumerate(confusion))
    assert abs(said["accuracy"] - right / len(examples)) < 1e-9, f"{name}: {said['accuracy']}"
    if model == "performer":
        check_features(reference)
    print(f"ok: {name}: loss {loss:.6f}, {abs(loss - said['loss']):.1e} apart")


# Settings of the examples; a run must name them, too.
LISTOPS_DATA = ["task.min_length=20", "task.max_length=200"]


def short_settings(model):
    """Settings under which short sequences meet every part of the mechanism."""
    settings = getattr(LAYERS[model], "SHORT", {})
    return [f"mixer.{key}={json.dumps(value)}" for key, value in settings.items()]


# One of each family; the results of each mixer alone, mixers_from_python.py compares.
FAMILIES = {"transformer", "bigbird", "reformer", "synthesizer", "performer", "s4d", "mega", "mamba", "gated_deltanet",
            "long_conv"}


def models():
    """Every mixer that is defined, with LRA_QUICK of FAMILIES; that none is missing, mixers_from_python.py checks."""
    names = [model["name"] for model in json.loads(lra("list", "models", "--json"))["models"]]
    wanted = FAMILIES if os.environ.get("LRA_QUICK") else LAYERS.keys()
    return [name for name in names if name in LAYERS.keys() & wanted]


def write_reviews(folder):
    """40 made-up reviews of very different lengths, some cut by task.length."""
    for split in ("train", "test"):
        for label, ratings in (("neg", 1), ("pos", 7)):
            place = folder / "aclImdb" / split / label
            place.mkdir(parents=True)
            for i in range(10):
                text = f"{label} \u6620\u753b {split} " * (1 + 3 * (i * 7 % 10))
                (place / f"{i}_{ratings + i % 4}.txt").write_text(text[:1 + 40 * i])


def make_examples(scratch, num_listops):
    """Prepares Text and ListOps in scratch/data; the test examples of both."""
    data, official = scratch / "data", scratch / "official"
    lra("data", "make", "listops", "--train", 60, "--val", 4, "--test", num_listops, "--seed", 5,
        *words_of(LISTOPS_DATA), "--out", data / "listops")
    lra("data", "export", "listops", data / "listops", *words_of(LISTOPS_DATA), "--out", official)
    write_reviews(official)
    lra("data", "import", "text", official, "--out", data / "text")
    return list(text_examples(official, "test")), list(listops_examples(official, "test"))


def image_examples(folder, num_pixels):
    """Test examples as the prepared folder holds them: its layout is that of data/dataset.h."""
    (shard,) = json.loads((folder / "manifest.json").read_text())["splits"]["test"]
    data, count = (folder / shard["file"]).read_bytes(), shard["num_examples"]
    labels = np.frombuffer(data, "<i4", count, 64)
    pixels = np.frombuffer(data[-count * num_pixels:], np.uint8).reshape(count, num_pixels)
    return [(list(map(int, image)), int(label)) for image, label in zip(pixels, labels)]


def main():
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        text, listops = make_examples(scratch, 40)
        cls = ["model.pooling=cls", "model.positions=sinusoid"]
        mean = ["model.pooling=mean", "model.positions=learned"]
        for model in models():
            own = short_settings(model)
            compare(scratch, "text", model, text, ["task.length=150", *cls, *own])
            compare(scratch, "listops", model, listops,
                    ["task.length=180", *LISTOPS_DATA, *mean, *own])
        compare(scratch, "text", "s4d", text, ["task.length=150"])
        compare(scratch, "text", "local", text, ["mixer.block=7", "model.classifier=linear", *mean])
        compare(scratch, "text", "linformer", text, ["mixer.rank=9", "model.heads=4"])


if __name__ == "__main__":
    main()
