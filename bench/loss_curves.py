"""Training losses of lra beside those of plain PyTorch, from equal weights on equal batches.

  LRA_PROGRAM=build/lra python3 bench/loss_curves.py [--models A,B] [--steps 200] [--out docs/results]

For each model, presets "small" on generated ListOps of 20 to 200 tokens, without dropout and with layer norm:
lra trains in float32, and the whole model of tests/parity/transformer_reference.py, in float64 by autograd and
torch.optim.Adam, takes the same steps. Writes loss_curves.md with relative differences and loss_curves.svg.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import tomllib

import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python"), str(ROOT / "tests/parity")]
import lra.data
import result_tables as tables
from transformer_reference import LAYERS, LISTOPS_DATA, Model, lra as run_lra, short_settings, words_of

COMMON = ["train.batch_size=8", "train.log_every=1", "train.schedule=constant", "train.weight_decay=0",
          "train.clip_norm=0", "model.norm=layer", "model.dropout=0", "model.attention_dropout=0",
          "model.layers=2", "model.pooling=mean", "task.length=200", "train.eval_examples=8", "train.test_examples=8",
          "train.on_nonfinite=stop", "train.precision=fp32"]
OF_MODEL = {"long_conv": ["mixer.kernel_dropout=0"]}
RATE = 1e-3


class Trained(Model):
    """The reference with parameters that learn."""

    def __init__(self, run):
        super().__init__(run)
        buffers = getattr(LAYERS[self.config["run"]["model"]], "BUFFERS", ())
        self.parameters = [t for name, t in self.w.items() if name.rpartition(".")[2] not in buffers]
        for parameter in self.parameters:
            parameter.requires_grad_()

    def loss(self, batch):
        logits = torch.stack([self.logits(tokens[:length].tolist())
                              for tokens, length in zip(batch.tokens, batch.lengths)])
        return torch.nn.functional.cross_entropy(logits, torch.from_numpy(batch.labels))


def train(model, run, data, steps, rate, groups=()):
    """Metrics of training steps of lra with one rate for all parameters, none of which decays."""
    settings = [*COMMON, *LISTOPS_DATA, *short_settings(model), *OF_MODEL.get(model, []), f"train.steps={steps}",
                f"train.eval_every={steps}", f"train.learning_rate={rate}",
                f"train.warmup_steps={min(20, steps)}"]
    for group in groups:
        settings += [f"groups.{group}.learning_rate={rate}", f"groups.{group}.weight_decay=0"]
    run_lra("train", "listops", model, "--data", data, "--out", run, *words_of(settings))
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [row for row in rows if row["kind"] == "train"]


def reference_losses(start, rows, batches, config):
    """Losses of Trained from the weights in the run `start`, with the learning rates of `rows`."""
    model = Trained(start)
    adam = torch.optim.Adam(model.parameters, betas=(config["beta1"], config["beta2"]), eps=config["eps"])
    losses = []
    for row, batch in zip(rows, batches):
        adam.param_groups[0]["lr"] = row["learning_rate"]
        adam.zero_grad()
        loss = model.loss(batch)
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses


def compare(model, scratch, split, a):
    train(model, scratch / f"{model}-groups", scratch / "data", 1, RATE)
    groups = tomllib.loads((scratch / f"{model}-groups/config.toml").read_text()).get("groups", [])
    rows = train(model, scratch / model, scratch / "data", a.steps, RATE, groups)
    # A step this short leaves the initial weights as they are.
    train(model, scratch / f"{model}-start", scratch / "data", 1, 1e-30, groups)
    start = Trained(scratch / f"{model}-start")
    theirs = reference_losses(scratch / f"{model}-start", rows, split.loader(8, steps=a.steps),
                              start.config["train"])
    ours = [row["loss"] for row in rows]
    return {"model": model, "lra": ours, "pytorch": theirs}


def difference(row, steps):
    return max(abs(a - b) / b for a, b in zip(row["lra"][:steps], row["pytorch"][:steps]))


def chart(rows):
    """One panel for each model, 4 in a line: lra as a wide grey line, PyTorch as a thin black one on it."""
    width, height, columns = 240, 150, 4
    parts = []
    for n, row in enumerate(rows):
        left, top = n % columns * width + 40, n // columns * height + 24
        everything = row["lra"] + row["pytorch"]
        low, high = min(everything), max(everything)
        parts.append(f'<text x="{left}" y="{top - 8}">{row["model"]}: {low:.2f} to {high:.2f}</text>')
        for name, stroke in (("lra", 'stroke="#bbb" stroke-width="4"'), ("pytorch", 'stroke="#000"')):
            values = row[name]
            points = " ".join(f"{left + 180 * i / max(1, len(values) - 1):.1f},"
                              f"{top + 100 * (high - v) / (high - low):.1f}" for i, v in enumerate(values))
            parts.append(f'<polyline fill="none" {stroke} points="{points}"/>')
    size = columns * width, -(-len(rows) // columns) * height
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
            'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>'
            + "".join(parts) + "</svg>\n")


def page(rows, a):
    lines = [__doc__.split("\n\n")[2].strip(), "",
             f"Command: `LRA_PROGRAM=build/lra python3 bench/loss_curves.py --steps {a.steps}`.", "",
             "| model | first loss | last losses: lra, PyTorch | largest relative difference in 20 steps | in all |",
             "| --- | ---: | ---: | ---: | ---: |"]
    for row in rows:
        lines.append(f"| {row['model']} | {row['lra'][0]:.4f} | {row['lra'][-1]:.5f}, {row['pytorch'][-1]:.5f} | "
                     f"{difference(row, 20):.1e} | {difference(row, a.steps):.1e} |")
    return "\n".join(["# Losses beside PyTorch", "", *lines, "", "![loss curves](loss_curves.svg)", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default="transformer,s4d,s5,lru,mega,mamba,long_conv,chordmixer")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/results")
    a = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        run_lra("data", "make", "listops", "--train", 2000, "--val", 8, "--test", 8,
                *words_of(LISTOPS_DATA), "--out", scratch / "data/listops")
        split = lra.data.Split(scratch / "data/listops", "train", length=200)
        for model in a.models.split(","):
            rows.append(compare(model, scratch, split, a))
            print(f"{model}: {difference(rows[-1], 20):.1e} in 20 steps, "
                  f"{difference(rows[-1], a.steps):.1e} in all", flush=True)
            (a.out / "loss_curves.svg").write_text(chart(rows))
            (a.out / "loss_curves.md").write_text(page(rows, a))
    return max(difference(row, 20) for row in rows) > 1e-4


if __name__ == "__main__":
    sys.exit(main())
