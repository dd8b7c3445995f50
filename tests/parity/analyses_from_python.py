"""lra analyze against the same figures from dense float64 arrays.

Weights come from a run's model.safetensors, examples from the exported official files. The model is
that of transformer_reference.py, one example at a time: its attention weights [H, S, S] are what
its mixers make of unit vectors as values. From them span, rollout and their figures are computed
by their definitions, for every mixer that has some (with LRA_QUICK one of each family);
similarities of embeddings by theirs; reach by gradients of autograd and by layers that get windows.
"""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np

try:
    from safetensors.numpy import load_file
except ImportError:
    print("skipped: no safetensors package")
    sys.exit(77)

import torch
from controls_from_python import Blocks, is_bound
from definitions.philox import Stream, derive_key
from transformer_reference import (LAYERS, LISTOPS_DATA, PROGRAM, Model, figures, image_examples, lra,
                                   make_examples, models, short_settings, sinusoids, words_of)


# A weight that inputs are multiplied with has so many parts, of which so many make no values.
PARTS = {"qkv.weight": (3, 2), "query_value.weight": (2, 1), "key_value.weight": (2, 1), "value.weight": (1, 0),
         "global_key_value.weight": (2, 1), "query.weight": (1, 1), "global_query.weight": (1, 1),
         "hidden.weight": (1, 1)}


def with_unit_values(w, length, heads):
    """Weights with which an attention layer of inputs that end with unit vectors returns its attention weights."""
    made = {**w, "output.weight": torch.eye(heads * length, dtype=torch.float64)}
    for name in PARTS.keys() & w.keys():
        parts, others = PARTS[name]
        made[name] = torch.nn.functional.pad(w[name][:len(w[name]) // parts * others], (0, length))
        if others < parts:
            unit = torch.eye(length, dtype=torch.float64).repeat(heads, 1)
            made[name] = torch.cat([made[name], torch.nn.functional.pad(unit, (w[name].shape[1], 0))])
    return made


class Attention(Model):
    """A model that notes the attention weights of every layer."""

    def mix(self, x, prefix):
        length, heads = len(x), self.config["model"]["heads"]
        both = torch.cat([x, torch.eye(length, dtype=torch.float64)], 1)
        y = self.apply(both, with_unit_values(self.tensors(prefix), length, heads), self.about(prefix))
        self.layers.append(y.unflatten(1, (heads, length)).transpose(0, 1))
        return super().mix(x, prefix)

    def weights(self, ids):
        """The layers' [H, S, S], CLS in front where there is one; and the logits."""
        self.layers = []
        logits = self.logits(ids)
        return torch.stack(self.layers).numpy(), logits.numpy()


USE_ANALYSIS, PLACES, WINDOW = 7, 4, 16
# Gradients of the references in Python take seconds; a first token that is none is looked at with these.
REACH_WITH_CLS = {("text", "transformer"), ("text", "s4d")}


class Passages(Model):
    """A model that notes what passes through its layers, some of which may get windows."""

    in_windows = ()

    def windowed(self, x, prefix):
        cls, stream, parts = int(self.config["model"]["pooling"] == "cls"), self.stream, []
        for begin in range(cls, len(x), WINDOW):
            rows = [*range(cls), *range(begin, min(len(x), begin + WINDOW))]
            self.stream = stream[rows]
            parts.append(super().mix(x[rows], prefix))
        front = sum(part[:cls] * (len(part) - cls) for part in parts) / (len(x) - cls)
        return torch.cat([front, *(part[cls:] for part in parts)])

    def mix(self, x, prefix):
        y = self.windowed(x, prefix) if self.layer(prefix) in self.in_windows else super().mix(x, prefix)
        self.passages.append((x, y))
        return y

    def norm(self, x, name):
        y = super().norm(x, name)
        if name == "encoder.norm":
            self.passages.append((self.entered, y))
        return y

    def embed(self, ids):
        self.passages, self.entered = [], super().embed(ids).detach().requires_grad_()
        return self.entered


def drawn_place(norms, stream):
    """A place with a probability in proportion to its norm."""
    rest, last = stream.uniform() * norms.sum(), None
    for place in np.flatnonzero(norms):
        last, rest = place, rest - norms[place]
        if rest < 0:
            break
    return last


def add_gradients(model, ids, example, sums):
    """Shares of gradients by distance, and of equal ones, of each layer and of all."""
    score = model.logits(ids).max()
    asked = torch.autograd.grad(score, [y for _, y in model.passages], retain_graph=True)
    for n, ((x, y), u) in enumerate(zip(model.passages, asked)):
        stream, norms = Stream(derive_key(0, USE_ANALYSIS, example, n)), u.norm(dim=1).numpy()
        for _ in range(PLACES):
            place = drawn_place(norms, stream)
            (gradient,) = torch.autograd.grad(y, x, u * (torch.arange(len(u)) == place)[:, None], retain_graph=True)
            share = gradient.norm(dim=1).numpy()
            apart = np.abs(np.arange(len(share)) - place)
            np.add.at(sums[n][0], apart, share / share.sum())
            np.add.at(sums[n][1], apart, 1 / len(share))


def within(by_distance):
    return int(np.argmax(by_distance.cumsum() >= 0.9 * by_distance.sum() * (1 - 1e-12)))


def check_reach(run, examples, where):
    said = analyze("reach", run, *where, "--fields", WINDOW)["reach"]
    model, layers = Passages(run), len(said["layers"]) - 1
    longest = max(len(ids[:model.length]) for ids, _ in examples) + 1
    sums = np.zeros((layers + 1, 2, longest))
    for example, (ids, _) in enumerate(examples):
        add_gradients(model, ids, example, sums)
    worst = 0
    for layer, (gradients, equal) in zip(said["layers"], sums):
        octaves = [gradients[0], *(gradients[2**n:2**(n + 1)].sum() for n in range(longest.bit_length()))]
        shares = np.array(octaves[:len(layer["shares"])]) / gradients.sum()
        worst = max(worst, near(shares, layer["shares"], f"shares of {layer['layer']}", 1e-3))
        assert abs(within(gradients) - layer["distance"]) <= 1, (layer, within(gradients))
        assert within(equal) == layer["equal"], (layer, within(equal))
    own, *scores = said["scores"]
    assert [s["change"] for s in scores] == [f"{layer['layer']} in windows of" for layer in said["layers"]]
    for n, score in enumerate(scores):
        if is_bound(model.config["run"]["model"]):
            assert "score" not in score and "belongs to sequences" in score["refused"], score
            continue
        model.in_windows = range(layers) if n == layers else (n,)
        cut = model
        if n == layers and model.config["model"]["pooling"] == "cls":
            cut = Blocks(run, model.length, WINDOW)
        loss, _ = figures(cut, examples, model.w["head.output.weight"].shape[0])
        worst = max(worst, near(loss, score["score"]["loss"], score["change"], 1e-4))
    return worst


def span_of(weights, distance, first):
    """[layers, H]: the mean over queries from `first` on, keys before it left out.

    A query that sees nothing else counts for nothing; where none sees a token, as in an example of
    one token, the span is 0.
    """
    kept = weights[..., first:, first:]
    mass = kept.sum(-1)
    sees = mass > 1e-6
    spans = np.where(sees, (kept * distance).sum(-1) / np.where(sees, mass, 1), 0)
    return spans.sum(-1) / np.maximum(sees.sum(-1), 1)


def rollout_of(weights, has_cls):
    size = weights.shape[-1]
    total = np.eye(size)
    for layer in weights:
        mixed = layer.mean(0) + np.eye(size)
        total = mixed / mixed.sum(-1, keepdims=True) @ total
    return total[0] if has_cls else total.mean(0)


def near(mine, said, name, error=1e-4):
    mine, said = np.asarray(mine, float), np.asarray(said, float)
    assert mine.shape == said.shape, f"{name}: {mine.shape}, lra says {said.shape}"
    apart = np.abs(mine - said).max() / max(1.0, np.abs(mine).max())
    assert apart <= error, f"{name}: {mine.tolist()}, lra says {said.tolist()}"
    return apart


def analyze(kind, run, *words):
    (said,) = json.loads(lra("analyze", kind, run, "--json", *words))
    assert json.loads(pathlib.Path(said["file"]).read_text()) == said["analysis"]
    return said["analysis"]


def picture_size(path):
    """Width and height of a PNG whose pixels can be unpacked."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    packed, at = b"", 8
    while at < len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        packed += data[at + 8:at + 8 + size] if data[at + 4:at + 8] == b"IDAT" else b""
        at += size + 12
    assert (depth, colour) == (8, 2) and len(zlib.decompress(packed)) == height * (3 * width + 1)
    return width, height


def check_spans(said, layers, has_cls, side):
    first = int(has_cls)
    figures = {"tokens": [], "with_cls": [], "pixels": []}
    for weights in layers:
        size = weights.shape[-1]
        place = np.arange(size - first)
        apart = np.abs(place[:, None] - place)
        figures["tokens"].append(span_of(weights, apart, first))
        if has_cls:
            every = np.abs(np.arange(size)[:, None] - np.arange(size))
            figures["with_cls"].append(span_of(weights, every, 0))
        if side:
            y, x = place // side, place % side
            grid = np.hypot(y[:, None] - y, x[:, None] - x)
            figures["pixels"].append(span_of(weights, grid, first))
            near(grid.mean(), said["pixels"]["uniform"], "uniform in pixels", 1e-9)
    worst = 0
    for name, spans in figures.items():
        if not spans:
            assert name not in said
            continue
        means = np.mean(spans, (1, 2))
        worst = max(worst, near(np.mean(spans, 0), said[name]["heads"], f"{name} by head"),
                    near(np.mean(spans, (0, 2)), said[name]["layers"], f"{name} by layer"),
                    near(np.mean(spans), said[name]["mean"], name),
                    near(np.std(means, ddof=1), said[name]["deviation"], f"{name}, deviation"))
    lengths = np.array([weights.shape[-1] - first for weights in layers], float)
    near(((lengths**2 - 1) / (3 * lengths)).mean(), said["tokens"]["uniform"], "uniform", 1e-9)
    sums = [weights.sum(-1) for weights in layers]
    near(min(s.min() for s in sums), said["least_row_sum"], "least row sum")
    near(max(s.max() for s in sums), said["largest_row_sum"], "largest row sum")
    return worst


def check_rollout(said, weights, logits, label, has_cls, pixels, token_text, ids):
    row = rollout_of(weights, has_cls)
    tokens = row[int(has_cls):] / row[int(has_cls):].sum()
    assert said["prediction"] == int(logits.argmax()) and said["label"] == label
    worst = near(-(tokens * np.log(tokens, where=tokens > 0, out=np.zeros_like(tokens))).sum() /
                 max(math.log(len(tokens)), 1e-9), said["entropy"], "entropy")
    if has_cls:
        near(row[0], said["cls_weight"], "weight of CLS", 1e-5)
    order = np.sort(tokens)[::-1][:10]
    near(order, [t["weight"] for t in said["top"]], "largest weights", 1e-5)
    for top in said["top"]:
        near(tokens[top["position"]], top["weight"], "weight of a token", 1e-5)
        assert top["text"] == token_text(ids[top["position"]]), top
    if pixels is not None:
        bright = pixels > pixels.mean()
        near(tokens[bright].sum(), said["bright_weight"], "weight on bright pixels", 1e-5)
        near(bright.mean(), said["bright_pixels"], "bright pixels", 1e-9)
    return worst


def check_embeddings(run, model, has_cls, side):
    said = analyze("embeddings", run)
    result, folder = said["embeddings"], run / "analysis"
    matrices = load_file(folder / result["matrices"])
    width = result["width"]
    position = model.w.get("embedding.position")
    if position is None:
        position = sinusoids(model.max_length, width)
    rows = {"token": model.w["embedding.token"], "position": position[int(has_cls):]}
    for name, row in rows.items():
        unit = row.numpy() / np.linalg.norm(row.numpy(), axis=1, keepdims=True)
        near(unit @ unit.T, matrices[name], f"similarity of {name}s", 1e-6)
    cosines = unit @ unit.T
    near([np.diagonal(cosines, n).mean() for n in range(1, 9)], result["by_distance"], "by distance")
    assert picture_size(folder / result["token_picture"])[0] == 3 * result["vocabulary"]
    # Tiles of at most eight rows and columns; short texts are shown whole.
    shown = min(side, 8) * (side + 1) + 1 if side else result["positions"]
    assert picture_size(folder / result["position_picture"])[0] == shown
    if side:
        grid = cosines.reshape(side, side, side, side)
        for name, axis in (("vertical", 0), ("horizontal", 1)):
            moved = grid if axis == 0 else grid.transpose(1, 0, 3, 2)
            means = [np.mean([moved[a, b, a + n, b] for a in range(side - n) for b in range(side)])
                     for n in range(1, 9)]
            near(means, result[name], name)
        token = rows["token"].numpy()
        unit = token / np.linalg.norm(token, axis=1, keepdims=True)
        i, j = np.triu_indices(len(unit), 1)
        near(np.corrcoef(j - i, (unit @ unit.T)[i, j])[0, 1], result["intensity_correlation"],
             "correlation of grays")


def byte_text(token):
    return chr(token - 1) if 0x20 <= token - 1 < 0x7f else f"\\x{token - 1:02x}"


def listops_text(token):
    return [None, "[MIN", "[MAX", "[MED", "[SM", "]", *map(str, range(10))][token]


def has_weights(model):
    return hasattr(LAYERS[model], "ATTENTION")


def compare(scratch, task, model, examples, settings, token_text, side=0):
    run = scratch / f"{task}-{model}-{len(list(scratch.iterdir()))}"
    common = ["train.steps=6", "train.warmup_steps=1", "train.batch_size=4", "train.eval_every=6",
              "train.learning_rate=0.02", "train.precision=fp32", "model.layers=2"]
    lra("train", task, model, "--data", scratch / "data", "--out", run,
        *words_of(common + settings))
    reference = Attention(run, side * side)
    has_cls = reference.config["model"]["pooling"] == "cls"
    name = f"{task} {model} {' '.join(settings)}"
    where = ["--split", "test", "--data", scratch / "data"]
    if task == "listops" or (task, model) in REACH_WITH_CLS:
        print(f"ok: {name}: reach at most {check_reach(run, examples, where):.1e} apart")
    if not has_weights(model):
        refused = subprocess.run([PROGRAM, "analyze", "span", str(run), "--split", "test", "--data",
                                  str(scratch / "data"), "--quiet"], capture_output=True)
        assert refused.returncode == 2 and b"no attention weights" in refused.stderr, refused
        assert not (run / "analysis" / "span.json").exists()
        print(f"ok: {name}: refused")
        return
    layers, logits = zip(*(reference.weights(ids) for ids, _ in examples))
    span = analyze("span", run, *where)
    assert span["num_examples"] == len(examples)
    worst = check_spans(span["span"], layers, has_cls, side)
    rollout = analyze("rollout", run, *where, "--index", ",".join(map(str, range(3))))["rollout"]
    for said, weights, scores, (ids, label) in zip(rollout["examples"], layers, logits, examples):
        pixels = np.array(ids, float) if side else None
        worst = max(worst, check_rollout(said, weights, scores, label, has_cls, pixels, token_text,
                                         ids[:reference.length]))
        width, height = picture_size(run / "analysis" / said["picture"])
        assert (width, height) == (2 * 256 + 16, 256) if side else width % 8 == 0
    check_embeddings(run, reference, has_cls, side)
    print(f"ok: {name}: spans and rollouts at most {worst:.1e} apart")


def main():
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        text, listops = make_examples(scratch, 4)
        lra("data", "make", "pathfinder", "--train", 20, "--val", 4, "--test", 4, "--out",
            scratch / "data" / "pathfinder")
        cls = ["model.pooling=cls", "model.positions=sinusoid"]
        mean = ["model.pooling=mean", "model.positions=learned"]
        for model in models():
            own = short_settings(model)
            if has_weights(model) or ("text", model) in REACH_WITH_CLS:
                compare(scratch, "text", model, text, ["task.length=150", *cls, *own], byte_text)
            compare(scratch, "listops", model, listops,
                    ["task.length=180", *LISTOPS_DATA, *mean, *own], listops_text)
        images = image_examples(scratch / "data" / "pathfinder", 32 * 32)
        compare(scratch, "pathfinder", "transformer", images,
                ["model.pooling=cls", "model.positions=learned"], str, side=32)


main()
