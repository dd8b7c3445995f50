"""TensorBoard's own reader gets from a run's event files what metrics.jsonl says."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("skipped: no tensorboard package")
    sys.exit(77)

PROGRAM = os.environ["LRA_PROGRAM"]


def lra(*words):
    subprocess.run([PROGRAM, *map(str, words), "--threads", "1", "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)


def expected_scalars(run):
    """tag -> [(step, value)], from metrics.jsonl."""
    scalars = {}
    for text in (run / "metrics.jsonl").read_text().splitlines():
        line = json.loads(text)
        step, kind = line.pop("step"), line.pop("kind")
        line.pop("examples", None)
        for name, value in line.items():
            scalars.setdefault(f"{kind}/{name}", []).append((step, float(numpy.float32(value))))
    return scalars


def read_scalars(run):
    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)]
            for tag in events.Tags()["scalars"]}


def main():
    with tempfile.TemporaryDirectory() as scratch:
        run, data = pathlib.Path(scratch) / "run", pathlib.Path(scratch) / "data"
        lra("data", "make", "listops", "--train", 40, "--val", 8, "--test", 8,
            "--out", data / "listops")
        settings = ["train.steps=9", "train.log_every=2", "train.eval_every=4",
                    "train.batch_size=4", "task.length=64"]
        lra("train", "listops", "linformer", "--data", data, "--out", run,
            *[word for s in settings for word in ("--set", s)])
        expected, found = expected_scalars(run), read_scalars(run)
        assert sorted(found) == sorted(expected), f"tags {sorted(found)}, not {sorted(expected)}"
        for required in ("train/loss", "train/learning_rate", "val/accuracy", "test/accuracy"):
            assert required in found, f"no {required}"
        assert [step for step, _ in found["train/loss"]] == [2, 4, 6, 8]
        assert [step for step, _ in found["val/loss"]] == [4, 8, 9]
        for tag, values in expected.items():
            assert found[tag] == values, f"{tag}: {found[tag]}, not {values}"
        print(f"ok: {len(found)} tags, {sum(map(len, found.values()))} values")


main()
