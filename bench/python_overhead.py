#!/usr/bin/env python3
"""What the way through Python costs, and what lra.data is worth.

    LRA_PROGRAM=build/lra .venv/bin/python bench/python_overhead.py [--repeats 7] [--parts loop,mixers,loader]

In turn, A B A B; a figure is the median of the ratios of each turn, beside the lowest and the highest.

loop      a Transformer in plain PyTorch under `python -m lra train` (as a whole model), over the same module
          in a bare loop of PyTorch with fused AdamW: seconds of a step. At most 1.03 is promised.
mixers    lra.nn layers under `python -m lra train`, over `lra train` with the same model and, which is
          checked, the same weights in the end: seconds of training. At most 1.02 is promised.
loader    batches of lra.data, over a DataLoader of PyTorch without workers that reads the same examples from
          PNG files with Pillow, and from a TSV file with csv: GB of int64 tokens per second.

Reads the package in python/; needs torch, NumPy and Pillow.
"""
import argparse
import csv
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import result_tables as tables

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
os.environ.update(LRA_BUILD=str(pathlib.Path(tables.program()).resolve().parent), LRA_CONFIGS=str(ROOT / "configs"),
                  PYTHONPATH=f"{ROOT / 'bench'}{os.pathsep}{ROOT / 'python'}")

import lra  # noqa: E402
import numpy as np
import torch
from PIL import Image

MODELS = {"transformer": "Transformer", "linformer": "Linformer", "performer": "Performer", "s4d": "S4D"}
LENGTH, BATCH, STEPS = 256, 8, 16
LOADED = 32  # examples in a batch of the loaders
COMMON = ("train.eval_every=1000000", "train.checkpoint_every=1000000", "train.eval_examples=8",
          "train.test_examples=8", "train.memory_check=off", "train.trim_padding=false",
          f"task.length={LENGTH}", f"train.batch_size={BATCH}", f"train.steps={STEPS}", "model.embed_dim=256",
          "model.qkv_dim=256", "model.mlp_dim=1024", "model.heads=4", "model.layers=4")


def train(program, words, folder, a):
    """The record of `lra train listops WORDS`."""
    command = [*program, "train", "listops", *words, "--out", str(folder), "--threads", str(a.threads), "--data",
               str(a.data), "--quiet", *tables.set_words(COMMON)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "record.json").read_text())


def step_seconds(file):
    """The median time between the beginnings of two training passes; the first few warm up."""
    data = file.read_bytes()
    times = struct.unpack(f"{len(data) // 8}d", data)
    return statistics.median(b - a for a, b in zip(times[4:], times[5:]))


def loop(a, scratch, turn):
    bare, driven = scratch / f"bare{turn}", scratch / f"driven{turn}"
    facts = {"steps": STEPS, "batch": BATCH, "length": LENGTH, "threads": a.threads}
    subprocess.run([sys.executable, ROOT / "bench/python_classifier.py", json.dumps(facts)], check=True,
                   env={**os.environ, "LRA_BENCH_TIMES": str(bare)})
    os.environ["LRA_BENCH_TIMES"] = str(driven)
    words = ["python_classifier:Transformer", "--set", "mixer.whole=true"]
    train([sys.executable, "-m", "lra"], words, scratch / f"loop{turn}", a)
    del os.environ["LRA_BENCH_TIMES"]
    return {"Transformer": step_seconds(driven) / step_seconds(bare)}


def mixers(a, scratch, turn):
    ratios = {}
    for model, kind in MODELS.items():
        program = train([tables.program()], [model], scratch / f"{model}{turn}", a)
        given = [f"mixer.{key}={json.dumps(value)}" for key, value in program["config"]["mixer"].items()]
        for section in ("model", "train"):
            given += [f"{section}.{key}={json.dumps(value)}" for key, value in program["config"][section].items()]
        for group, settings in program["config"].get("groups", {}).items():
            given += [f"groups.{group}.{key}={json.dumps(value)}" for key, value in settings.items()]
        python = train([sys.executable, "-m", "lra"], [f"lra.nn:{kind}", *tables.set_words(given)],
                       scratch / f"{model}{turn}-python", a)
        assert python["weights_hash"] == program["weights_hash"], model
        ratios[model] = python["train_seconds"] / program["train_seconds"]
    return ratios


class Pictures(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.png"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with Image.open(self.files[index]) as image:
            return torch.from_numpy(np.asarray(image.convert("L"), dtype=np.int64).ravel())


class Lines(torch.utils.data.Dataset):
    """Source and Target, as the official files of ListOps are commonly read."""

    def __init__(self, file, vocabulary):
        with open(file, newline="") as text:
            self.rows = list(csv.DictReader(text, delimiter="\t"))
        self.ids = {word: number for number, word in enumerate(vocabulary, start=1)}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.tensor([self.ids[word] for word in self.rows[index]["Source"].split()])


def padded(examples):
    return torch.nn.utils.rnn.pad_sequence(examples, batch_first=True)


def speed(batches):
    begin, size = time.perf_counter(), 0
    for tokens in batches:
        size += tokens.size * 8 if isinstance(tokens, np.ndarray) else tokens.numel() * 8
    return size / 1e9 / (time.perf_counter() - begin)


def loader(a, scratch, turn):
    torch.set_num_threads(a.threads)
    pictures = lra.data.load("pathfinder", "train", a.pictures)
    lines = lra.data.load("listops", "train", a.data)
    if turn == 0:
        (scratch / "png").mkdir()
        for i in range(len(pictures)):
            Image.fromarray(pictures.decode(i)).save(scratch / "png" / f"{i:06}.png")
        with open(scratch / "lines.tsv", "w") as file:
            file.write("Source\tTarget\n")
            file.writelines(f"{lines.decode(i)}\t{lines[i].label}\n" for i in range(len(lines)))
    vocabulary = sorted({word for i in range(len(lines)) for word in lines.decode(i).split()})
    sides = {"pictures": (pictures, Pictures(scratch / "png")), "listops": (lines, Lines(scratch / "lines.tsv", vocabulary))}
    ratios = {}
    for name, (ours, theirs) in sides.items():
        steps = len(ours) // LOADED
        rival = torch.utils.data.DataLoader(theirs, LOADED, shuffle=True, collate_fn=padded, drop_last=True)
        fast, slow = speed(batch.tokens for batch in ours.loader(LOADED, steps=steps)), speed(rival)
        ratios[name] = fast / slow
        ratios[f"{name}: GB/s of lra"] = fast
    return ratios


PARTS = {"loop": loop, "mixers": mixers, "loader": loader}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--out", type=pathlib.Path, help="folder for python_overhead.json")
    a = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
    results = {"provenance": tables.provenance(a.threads)}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        a.data = lra.data.make("listops", scratch / "listops", train=2000, val=16, test=16)
        if "loader" in a.parts:
            a.pictures = lra.data.make("pathfinder", scratch / "pathfinder", train=2000, val=16, test=16)
        for part in a.parts.split(","):
            turns = [PARTS[part](a, scratch, turn) for turn in range(a.repeats)]
            results[part] = {name: [turn[name] for turn in turns] for name in turns[0]}
            for name, ratios in results[part].items():
                print(f"{part:8}{name:28}{statistics.median(ratios):8.3f}  ({min(ratios):.3f} to {max(ratios):.3f})",
                      flush=True)
    if a.out:
        (a.out / "python_overhead.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
