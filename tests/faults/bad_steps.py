#!/usr/bin/env python3
"""Numbers that are not finite, in every model: caught in their step, never saved, and passed by?

    LRA_PROGRAM=build/lra python3 tests/faults/bad_steps.py [--quick] [--build FOLDER]

Two faults that a run can really meet. "token": one token has weights so large that a forward pass
over it is not finite, and one review of the training data holds that token, so one step of every
epoch is bad. "update": a learning rate under which each update makes a weight infinite. With
train.on_nonfinite = stop, skip and roll_back; runs that passed bad steps are also cut off in the
middle and resumed, and must end with the same bytes. Every number of every checkpoint is read with
the safetensors package. --quick takes three models and records nothing; the full form takes all and
writes docs/results/scorecard/12-nan.json.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
from safetensors.numpy import load_file

from shared import result, runs

PROGRAM = os.path.realpath(os.environ["LRA_PROGRAM"])
MARK = "~"
REVIEWS, BATCH, STEPS, POISONED_AT = 20, 4, 20, 2
EPOCH = REVIEWS // BATCH
SETTINGS = {"task.length": 64, "task.validation": '"test"', "model.layers": 1, "model.heads": 2,
            "model.embed_dim": 16, "model.qkv_dim": 16, "model.mlp_dim": 16,
            "train.batch_size": BATCH, "train.steps": STEPS, "train.eval_every": EPOCH,
            "train.eval_examples": 0, "train.checkpoint_every": 2, "train.keep_checkpoints": 100,
            "train.warmup_steps": 0, "train.log_every": 1, "train.max_roll_backs": 9}
EXPLODING = {"train.learning_rate": "1e38", "train.weight_decay": "100.0",
             "train.schedule": '"constant"'}
DONE, DIVERGED = 0, 4
LATE, SAVED, POLICY = KINDS = ("caught in another step", "saved though not finite", "policy not kept")


def write_reviews(folder):
    """aclImdb with REVIEWS training reviews; the first one holds MARK."""
    for split in ("train", "test"):
        for label, rating in (("neg", 2), ("pos", 9)):
            for i in range(REVIEWS // 2):
                path = folder / "aclImdb" / split / label / f"{i}_{rating}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                text = ("bad " if label == "neg" else "good ") * (1 + i)
                marked = (split, label, i) == ("train", "neg", 0)
                path.write_text((MARK if marked else "") + text, encoding="utf-8")


@dataclasses.dataclass
class Ended:
    """How a run ended."""
    folder: pathlib.Path
    code: int

    @property
    def record(self):
        return json.loads((self.folder / "record.json").read_text(encoding="utf-8"))

    def steps(self, kind):
        """Steps of the lines of one kind in metrics.jsonl."""
        lines = (self.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [line["step"] for line in map(json.loads, lines) if line["kind"] == kind]

    def checkpoints(self):
        """Step numbers of the checkpoints, ascending."""
        return sorted(int(path.name[5:]) for path in (self.folder / "checkpoints").glob("step_*"))

    def bytes_of_last(self):
        """Both files of the last checkpoint."""
        folder = self.folder / "checkpoints" / f"step_{self.checkpoints()[-1]}"
        return [(folder / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer")]


class Trial:
    """Runs of one model."""

    def __init__(self, model, root, build):
        self.model, self.root, self.build = model, root, build
        self.counts = {"runs": 0, "checkpoints read": 0, "bad steps": 0, **dict.fromkeys(KINDS, 0)}

    def expect(self, condition, kind, what):
        """Counts what is not as it must be under one of KINDS."""
        if not condition:
            self.counts[kind] += 1
            print(f"WRONG ({kind}) {self.model}: {what}")

    def lra(self, folder, *words):
        """Runs the program; nothing but a known ending is accepted."""
        done = subprocess.run([PROGRAM, "train", *words, "--data", str(self.root / "data"), "--quiet",
                               "--threads", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, check=False)
        self.counts["runs"] += 1
        if done.returncode not in (DONE, DIVERGED):
            raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr}")
        return Ended(folder, done.returncode)

    def start(self, name, settings):
        folder = self.root / f"{self.model}-{name}"
        sets = [word for key, value in {**SETTINGS, **settings}.items()
                for word in ("--set", f"{key}={value}")]
        return self.lra(folder, "text", self.model, "--preset", "small", "--out", str(folder), *sets)

    def cut_off(self, run, name, step):
        """A copy of a run as if it had been killed after a checkpoint."""
        folder = self.root / f"{self.model}-{name}"
        shutil.copytree(run.folder, folder, symlinks=True)
        for later in Ended(folder, 0).checkpoints():
            if later > step:
                shutil.rmtree(folder / "checkpoints" / f"step_{later}")
        record = Ended(folder, 0).record
        record["status"] = "running"
        del record["record_hash"]
        (folder / "record.json").write_text(json.dumps(record), encoding="utf-8")
        return folder

    def resume(self, folder):
        return self.lra(folder, "--resume", str(folder))

    def expect_finite(self, run, last_step, what):
        """Every number of every checkpoint; none is of a step after `last_step`."""
        for step in run.checkpoints():
            self.expect(step <= last_step, SAVED, f"{what}: a checkpoint of step {step}")
            for path in (run.folder / "checkpoints" / f"step_{step}").glob("*.safetensors"):
                finite = all(numpy.isfinite(tensor).all() for tensor in load_file(path).values())
                self.expect(finite, SAVED, f"{what}: {path.name} of step {step} is not finite")
            self.counts["checkpoints read"] += 1

    def poisoned(self, policy):
        """A run that goes on from a poisoned checkpoint."""
        healthy = self.start(f"healthy-{policy}", {"train.on_nonfinite": f'"{policy}"'})
        self.expect(healthy.code == DONE, POLICY, f"{policy}: the healthy run did not end well")
        folder = self.cut_off(healthy, policy, POISONED_AT)
        subprocess.run([f"{self.build}/tests/faults/bad_steps", "poison", str(folder),
                        str(ord(MARK) + 1)], check=True)
        return self.resume(folder)

    def passes(self, policy, bad):
        """skip or roll_back: the bad steps, no others, are passed; a resume changes nothing."""
        run = self.poisoned(policy)
        record = run.record
        self.counts["bad steps"] += len(bad)
        self.expect(run.code == DONE, POLICY, f"{policy}: exit code {run.code}")
        self.expect(run.steps(policy) == bad, LATE, f"{policy}: passed {run.steps(policy)}, not {bad}")
        count = record.get("skipped_steps" if policy == "skip" else "roll_backs")
        self.expect(count == len(bad), POLICY, f"{policy}: the record counts {count}")
        self.expect(numpy.isfinite(record["test"]["loss"]), POLICY, f"{policy}: bad test loss")
        self.expect_finite(run, STEPS, policy)
        for step in (bad[0] // 2 * 2, (bad[-1] + 1) // 2 * 2):
            again = self.resume(self.cut_off(run, f"{policy}-{step}", step))
            self.expect(again.bytes_of_last() == run.bytes_of_last(), POLICY,
                        f"{policy}: resumed at {step}, it ended with other bytes")

    def token(self):
        stopped = self.poisoned("stop")
        first = stopped.record["steps"] + 1
        bad = self.poisoned_steps()
        self.expect(stopped.code == DIVERGED, POLICY, f"stop: exit code {stopped.code}")
        self.expect(first == bad[0] and f"at step {first}" in stopped.record["failure"],
                    LATE, f"stop: {stopped.record['failure']}, not at step {bad[0]}")
        self.expect_finite(stopped, first - 1, "stop")
        for policy in ("skip", "roll_back"):
            self.passes(policy, bad)

    def poisoned_steps(self):
        """The steps after the poisoning whose batch holds the marked review, one in every epoch."""
        told = subprocess.run([f"{self.build}/tests/faults/bad_steps", "steps", "0", str(REVIEWS),
                               str(BATCH), str(STEPS)], capture_output=True, text=True, check=True)
        return [step for step in map(int, told.stdout.split()) if step > POISONED_AT]

    def update(self):
        stopped = self.start("update-stop", {**EXPLODING, "train.on_nonfinite": '"stop"'})
        self.expect(stopped.code == DIVERGED and
                    stopped.record["failure"] == "a weight is not finite at step 1",
                    LATE, f"update, stop: {stopped.record['failure']}")
        self.expect_finite(stopped, 0, "update, stop")
        for policy, count, limit in (("skip", "skipped_steps", 10), ("roll_back", "roll_backs", 9)):
            run = self.start(f"update-{policy}", {**EXPLODING, "train.on_nonfinite": f'"{policy}"'})
            self.expect(run.code == DIVERGED and run.record.get(count) == limit,
                        POLICY, f"update, {policy}: exit code {run.code} after {run.record.get(count)}")
            self.expect_finite(run, limit, f"update, {policy}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", default=os.path.dirname(PROGRAM))
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names = ["transformer", "reformer", "performer"] if arguments.quick else runs.models()
    totals = {}
    for model in names:
        with tempfile.TemporaryDirectory() as root:
            write_reviews(pathlib.Path(root) / "data")
            trial = Trial(model, pathlib.Path(root), arguments.build)
            trial.token()
            trial.update()
        for name, count in trial.counts.items():
            totals[name] = totals.get(name, 0) + count
        print(f"{model}: {trial.counts}", flush=True)
    print(f"in all: {totals}")
    wrong = any(totals[kind] for kind in KINDS)
    if not arguments.quick:
        result.record(12, "nan", {"models": len(names), "faults": 2, "policies": 3, **totals},
                      "red" if wrong else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/bad_steps.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
