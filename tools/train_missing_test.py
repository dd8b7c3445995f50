"""Tests of train_missing with a stand-in for the program that counts steps in a file."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import tempfile
import textwrap
import types
import unittest

TOOL = pathlib.Path(__file__).resolve().parent / "train_missing"
loader = importlib.machinery.SourceFileLoader("train_missing", str(TOOL))
train_missing = importlib.util.module_from_spec(importlib.util.spec_from_loader("train_missing", loader))
loader.exec_module(train_missing)

# `suite status` reads records; `suite run` saves a step every 50 ms and, when it is stopped, ends with 3.
PROGRAM = textwrap.dedent('''\
    #!/usr/bin/env python3
    import json, pathlib, signal, sys, time
    words = sys.argv[1:]
    out = pathlib.Path(words[words.index("--out") + 1])
    STEPS = {"text-quick-s0": 4, "text-slow-s0": 1000, "image-quick-s0": 4}

    def record_of(name):
        path = out / name / "record.json"
        return json.loads(path.read_text()) if path.exists() else {"steps": 0, "status": "waiting"}

    if words[1] == "status":
        rows = []
        for name, steps in STEPS.items():
            task, model, _ = name.split("-")
            record = record_of(name)
            rows.append({"task": task, "model": model, "folder": str(out / name), "state": record["status"],
                         "steps": record["steps"], "planned_steps": steps})
        print(json.dumps(rows))
        sys.exit(0)

    name = words[words.index("--only") + 1]
    if name == "image-quick-s0":
        sys.exit("lra: no data")
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    step = record_of(name)["steps"]
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    while step < STEPS[name] and not stop:
        time.sleep(0.05)
        step += 1
        (folder / "progress").write_text(str(step))
    weights = folder / "checkpoints" / f"step_{step}"
    weights.mkdir(parents=True, exist_ok=True)
    (weights / "model.safetensors").write_bytes(b"w" * 100)
    (weights / "optimizer.safetensors").write_bytes(b"o" * 100)
    for link in ("latest", "best"):
        path = folder / "checkpoints" / link
        path.unlink(missing_ok=True)
        path.symlink_to(weights.name)
    done = step == STEPS[name]
    for file in ("config.toml", "metrics.jsonl"):
        (folder / file).write_text(file)
    (folder / "record.json").write_text(json.dumps({
        "steps": step, "status": "done" if done else "stopped", "checkpoint": "best", "test": {"accuracy": 0.5}}))
    sys.exit(0 if done else 3)
    ''')


class Quiet:
    def busy(self):
        return False


class BusyForAWhile:
    """Another program begins to compute when the run has made steps, and ends two looks after the run was saved."""

    def __init__(self, folder):
        self.folder, self.looks_left = folder, 2

    def busy(self):
        if not (self.folder / "record.json").exists():
            return (self.folder / "progress").exists()
        self.looks_left -= 1
        return self.looks_left >= 0


class TrainMissing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        program = self.root / "lra"
        program.write_text(PROGRAM, encoding="utf-8")
        program.chmod(0o755)
        self.results = self.root / "results"
        self.results.mkdir()
        (self.results / "hours.csv").write_text("task,model,hours\ntext,quick,0.5\ntext,slow,30\nimage,quick,0.1\n",
                                                encoding="utf-8")

    def steps_of(self, name):
        """Steps that a run has made so far, saved or not."""
        progress = self.root / "work" / name / "progress"
        return int(progress.read_text() or 0) if progress.exists() else 0

    def run_queue(self, until=lambda: False, others=None, **changes):
        args = types.SimpleNamespace(suite="suite.toml", results=str(self.results), work=str(self.root / "work"),
                                     program=str(self.root / "lra"), data=None, until=None, most_hours=None, only=None,
                                     minutes=None)
        vars(args).update(changes)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            queue = train_missing.Queue(args)
            queue.others = others or Quiet()
            queue.prepare_child = os.setsid
            queue.seconds_left = lambda: 0 if until() else 60
            queue.work_off()
        return said.getvalue()

    def record(self, name):
        return json.loads((self.results / name / "record.json").read_text(encoding="utf-8"))

    def test_a_finished_run_moves_with_its_chosen_weights_and_nothing_else(self):
        said = self.run_queue(only=["text-quick-s0"])
        self.assertIn("finished: text-quick-s0: 50.00 %", said)
        self.assertIn("nothing is missing", said)
        files = sorted(str(p.relative_to(self.results / "text-quick-s0"))
                       for p in (self.results / "text-quick-s0").rglob("*") if not p.is_dir())
        self.assertEqual(["checkpoints/step_4/model.safetensors", "config.toml", "metrics.jsonl", "record.json"], files)
        self.assertEqual("step_4", os.readlink(self.results / "text-quick-s0" / "checkpoints" / "best"))
        self.assertFalse((self.root / "work" / "text-quick-s0").exists())

    def test_goes_from_the_cheapest_to_the_dearest_and_past_a_failure(self):
        said = self.run_queue(until=lambda: self.steps_of("text-slow-s0") > 2)
        order = [line.split()[2] for line in said.splitlines() if ": training" in line]
        self.assertEqual(["image-quick-s0", "text-quick-s0", "text-slow-s0"], order)
        self.assertIn("failed: image-quick-s0", said)
        self.assertIn("text-quick-s0: 50.00 %", said)

    def test_an_unfinished_run_resumes_from_the_results_alone(self):
        self.run_queue(until=lambda: self.steps_of("text-slow-s0") > 2, only=["text-slow-s0"])
        first = self.record("text-slow-s0")["steps"]
        self.assertGreater(first, 0)
        os.rename(self.root / "work", self.root / "lost")
        said = self.run_queue(until=lambda: self.steps_of("text-slow-s0") > first, only=["text-slow-s0"])
        self.assertIn(f"({first:,} of 1,000 steps", said)
        self.assertGreater(self.record("text-slow-s0")["steps"], first)

    def test_stops_saved_while_another_program_computes(self):
        others = BusyForAWhile(self.root / "work" / "text-slow-s0")
        said = self.run_queue(until=lambda: others.looks_left < -2, others=others, only=["text-slow-s0"])
        self.assertIn("another program computes: waiting", said)
        self.assertEqual(2, said.count("training text-slow-s0"))

    def test_leaves_out_what_takes_longer_than_asked(self):
        said = self.run_queue(most_hours=1, only=["text-quick-s0", "text-slow-s0"])
        self.assertNotIn("training text-slow-s0", said)
        self.assertIn("nothing is missing", said)


if __name__ == "__main__":
    unittest.main()
