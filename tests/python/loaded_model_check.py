"""lra.arena.load and the runs around it: predictions are those of `lra eval`, for every kind of task."""

import copy
import csv
import fcntl
import hashlib
import importlib
import json
import os
import pathlib
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("LRA_BUILD", str(pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent))
os.environ.setdefault("LRA_CONFIGS", str(ROOT / "configs"))
os.environ["OMP_NUM_THREADS"] = "1"

import lra
import numpy as np
import torch
import torch.nn.utils.prune
from lra._code import importing, source_files
from lra._run import half_width95
from lra._words import flat, in_python, settings_words, toml

try:
    import pandas
except ImportError:
    pandas = None

TINY = {
    "train": {"steps": np.int64(6), "batch_size": 4, "eval_every": 3, "memory_check": "off", "patience": None},
    "model": {"layers": 2, "heads": np.int32(2), "embed_dim": 16, "qkv_dim": 16, "mlp_dim": 16},
}
LAYER = '''
import torch


class Mean(torch.nn.Module):
    def __init__(self, dim, scale=1.0):
        super().__init__()
        self.mix, self.scale = torch.nn.Linear(dim, dim), scale
        self.register_buffer("shift", torch.zeros(dim))

    def forward(self, x, mask):
        x = x * mask.unsqueeze(-1)
        return self.scale * self.mix(x.sum(1, keepdim=True) / mask.sum(1)[:, None, None]).expand_as(x) + self.shift


class Fails(Mean):
    """Raises in the fourth training step."""

    calls = 0

    def forward(self, x, mask):
        self.calls += self.training
        if self.calls >= 4:
            raise ValueError("my own mistake")
        return super().forward(x, mask)


class Bag(torch.nn.Module):
    def __init__(self, vocab_size, num_classes):
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(vocab_size, 8, padding_idx=0)
        self.head = torch.nn.Linear(8, num_classes)

    def forward(self, tokens):
        return self.head(self.embedding(tokens))
'''


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.data = cls.folder / "data"
        (cls.folder / "my_layers.py").write_text(LAYER)
        sys.path.insert(0, str(cls.folder))
        os.environ["PYTHONPATH"] = str(cls.folder)  # of the processes that train
        lra.data.make("listops", cls.data / "listops", train=64, val=16, test=40)

    @classmethod
    def tearDownClass(cls):
        sys.path.remove(str(cls.folder))
        cls.scratch.cleanup()

    def train(self, task, layer, out, **more):
        tiny = TINY if layer else {**TINY, "model": {}}
        settings = {**tiny, **more.pop("settings", {})}
        return lra.arena.train(task, layer, out=self.folder / out, settings=settings, data=self.data, quiet=True, **more)


class LoadedModel(Folder):
    def check(self, task, run, **load):
        """Predictions of the test split are those of the evaluation; returns model and split."""
        model, split = lra.arena.load(run), lra.data.load(task, "test", self.data, **load)
        predictions = model.predict(split)
        written = self.folder / "written.csv"
        written.unlink(missing_ok=True)
        lra._program.run(["eval", str(run.folder), "--predictions", str(written), "--quiet"])
        with open(written, newline="") as file:
            rows = list(csv.DictReader(file))
        names = sorted({row["label"] for row in rows} | {row["prediction"] for row in rows})
        numbers = {name: int(name) if name.isdigit() else i for i, name in enumerate(names)}
        self.assertEqual(predictions.classes.tolist(), [numbers[row["prediction"]] for row in rows])
        right = (predictions.classes.numpy() == split.labels).mean()
        self.assertEqual(right, run.test_accuracy)
        self.assertTrue(torch.allclose(predictions.probabilities.sum(1), torch.ones((), dtype=torch.float64)))
        return model, split, predictions

    def same(self, model, examples, expected):
        found = model.predict(examples)
        self.assertLess(float((found.probabilities - expected).abs().max()), 1e-5)

    def test_listops_in_expressions_arrays_batches_and_slices(self):
        run = self.train("listops", "local", "listops")
        model, split, all_of = self.check("listops", run)
        expected = all_of.probabilities
        self.same(model, [split.decode(i) for i in range(5)], expected[:5])
        self.same(model, [split[i].tokens for i in (3, 1)], expected[[3, 1]])
        self.same(model, [split[3], split[1]], expected[[3, 1]])
        self.same(model, split[10:20:3], expected[10:20:3])
        self.same(model, split.batch([5, 6], trim=False), expected[[5, 6]])
        tensor = torch.from_numpy(split.batch([5, 6]).tokens)
        self.assertLess(float((model(tensor).detach().double().softmax(1) - expected[[5, 6]]).abs().max()), 1e-5)

    def test_it_is_a_torch_module_with_gradients(self):
        run = self.train("listops", "s4d", "module")
        model = lra.arena.load(run, "last", device=torch.device("cpu"))
        self.assertEqual(sum(p.numel() for p in model.parameters()), run.record["num_parameters"])
        self.assertFalse(model.training)
        tokens = torch.tensor([lra.data.listops_ids("[MAX 2 [MIN 3 4 ] ]").tolist()])
        before = model(tokens)
        self.assertTrue(torch.equal(before, model(tokens)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.nn.functional.cross_entropy(model.train()(tokens), torch.tensor([3])).backward()
        self.assertTrue(all(p.grad is not None for p in model.parameters() if p.requires_grad))
        twin = copy.deepcopy(model)
        optimizer.step()
        self.assertFalse(torch.equal(before, model.eval()(tokens)))
        self.assertTrue(torch.equal(before, twin.eval()(tokens)))
        self.assertTrue(torch.equal(model(tokens), pickle.loads(pickle.dumps(model))(tokens)))
        model.to("cpu").float()
        for wrong in (lambda: model.half(), lambda: model.to("meta")):
            with self.assertRaisesRegex(lra.Error, "stays where it is"):
                wrong()
        for wrong, said in (([["a"]], "expected token ids"), (["[MAX x ]"], "'x' is not a word"), ("[MAX 2 ]", "a list")):
            with self.subTest(said), self.assertRaisesRegex(lra.Error, said):
                model.predict(wrong)
        with self.assertRaisesRegex(ValueError, "whole numbers from 0 to"):
            model(torch.tensor([[99]]))
        with self.assertRaisesRegex(lra.Error, "step_4.*checkpoint="):
            lra.arena.load(run, "step_4")

    def test_texts(self):
        for split in ("train", "test"):
            for label in ("neg", "pos"):
                (self.folder / "aclImdb" / split / label).mkdir(parents=True)
                for i in range(20):
                    text = f"{split} {label} {i} " + "good bad"[4 * (i % 2):][:4] * i + "é"
                    (self.folder / "aclImdb" / split / label / f"{i}_{i % 10}.txt").write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lra.data.import_files("text", self.folder / "aclImdb", self.data / "text")
            run = self.train("text", "linformer", "text", settings={"task.length": 64})
            model, split, all_of = self.check("text", run)
        texts = [split.decode(i) for i in range(len(split))]
        self.same(model, texts, all_of.probabilities)
        self.same(model, [text.encode() for text in texts[:3]], all_of.probabilities[:3])

    def test_pictures(self):
        lra.data.make("pathfinder", self.data / "pathfinder", train=40, val=10, test=20)
        run = self.train("pathfinder", "linear_transformer", "pictures")
        model, split, all_of = self.check("pathfinder", run)
        pictures = [split.decode(i) for i in range(4)]
        self.same(model, pictures, all_of.probabilities[:4])
        self.same(model, np.stack(pictures), all_of.probabilities[:4])
        with self.assertRaisesRegex(lra.Error, "expected 1024"):
            model.predict([pictures[0][:5]])
        values = self.train("pathfinder", "linear_transformer", "values", settings={"task.input": "values"})
        model, split, all_of = self.check("pathfinder", values)
        self.same(model, pictures, all_of.probabilities[:4])

    def test_pairs(self):
        rows = "".join(f'{{"first": "text {i} {"ab"[i % 2]}", "second": "other {i} {"ab"[i // 2 % 2]}", "label": "{"no yes".split()[i % 3 % 2]}"}}\n'
                       for i in range(200))
        (self.folder / "pairs.jsonl").write_text(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lra.data.import_files("custom", self.folder / "pairs.jsonl", self.data / "pairs",
                                  settings=["task.sequences=first,second"])
            run = self.train("custom:pairs", "transformer", "pairs")
            model, split, all_of = self.check("custom:pairs", run)
        pairs = [split.decode(i) for i in range(6)]
        self.same(model, pairs, all_of.probabilities[:6])
        self.same(model, split.batch([0, 1]), all_of.probabilities[:2])
        with self.assertRaisesRegex(lra.Error, "expected \\(first, second\\)"):
            model.predict(["one text"])

    def test_own_layers_and_whole_models(self):
        import my_layers

        layer = self.train("listops", my_layers.Mean, "layer", arguments={"scale": np.float32(0.5)})
        model, *_ = self.check("listops", layer)
        self.assertIn("encoder.layers.1.mixer.mix.weight", dict(model.named_parameters()))
        self.assertIn("encoder.layers.0.mixer.shift", dict(model.named_buffers()))
        self.assertEqual(model.changed_code, "")
        self.check("listops", self.train("listops", None, "whole", model=my_layers.Bag))
        tokens = torch.from_numpy(lra.data.load("listops", "test", self.data).batch([0, 1]).tokens)
        generators = (lambda: torch.rand(()).item(), np.random.rand, random.random)
        for draw in generators:
            with self.subTest(draw):
                drawn = {draw() for _ in range(3) if model(tokens) is not None}
                self.assertEqual(len(drawn), 3, "generators of the caller go on")
        pruned = lra.arena.load(layer)
        torch.nn.utils.prune.l1_unstructured(pruned.get_submodule("encoder.layers.1.mixer.mix"), "weight", amount=1.0)
        with self.assertRaisesRegex(RuntimeError, "weights of a loaded model were replaced, pruned or parametrized"):
            pruned(tokens)
        exported = lra.arena.export(layer, self.folder / "exported")
        split = lra.data.load("listops", "test", self.data)
        self.assertTrue(torch.equal(lra.arena.load(exported).predict(split[:4]).classes, model.predict(split[:4]).classes))

    def test_what_cannot_be_loaded(self):
        masked = self.train("listops", "local", "masked", settings={"train": {**TINY["train"], "objective": "masked"}})
        with self.assertRaisesRegex(lra.Error, "lra.arena.load"):
            lra.arena.load(masked)
        with self.assertRaisesRegex(lra.Error, "nowhere: is not the folder of a run.*lra.arena.train"):
            lra.arena.load(self.folder / "nowhere")


class RunInPython(Folder):
    def test_a_run_shows_itself(self):
        runs = self.train("listops", "local", "seeds", seed=np.array([3, 4]))
        self.assertEqual([run.folder.name for run in runs], ["seeds-s3", "seeds-s4"])
        self.assertEqual([run.record["seed"] for run in runs], [3, 4])
        run = runs[0]
        line = repr(run)
        self.assertNotIn("\n", line)
        self.assertRegex(line, r"Local Attention on Long ListOps, small, seed 3: test accuracy [\d.]+ % \([\d.]+ to [\d.]+\), \d+ k")
        page = run._repr_html_()
        for part in ("<svg", "<polyline", "best trivial baseline", "free-for-all"):
            self.assertIn(part, page)
        self.assertEqual(lra.arena.open_run(run.folder), run)
        with self.assertRaisesRegex(lra.Error, "is not a run"):
            lra.arena.open_run(self.folder)

    def test_the_interval_is_that_of_the_report(self):
        run = self.train("listops", "local", "interval")
        cells = lra._program.run(["report", str(run.folder), "--format", "csv"]).splitlines()
        header, row = [line.split(",") for line in cells[:2]]
        half = 100 * half_width95(run.test_accuracy, run.record["test"]["num_examples"])
        column = next(i for i, name in enumerate(header) if "95" in name or "interval" in name)
        self.assertAlmostEqual(float(row[column]), half, places=2, msg=header)

    def test_an_existing_run_is_replaced_only_when_asked(self):
        self.train("listops", "local", "twice")
        with self.assertRaises(lra.Error) as caught:
            self.train("listops", "local", "twice")
        self.assertIn("overwrite=True", str(caught.exception))
        self.assertNotIn("--", str(caught.exception))
        self.assertEqual(self.train("listops", "local", "twice", seed=1, overwrite=True).record["seed"], 1)
        (self.folder / "mine").mkdir()
        with self.assertRaisesRegex(lra.Error, "is not a run"):
            self.train("listops", "local", "mine", overwrite=True)
        self.assertTrue((self.folder / "mine").is_dir())

    def test_a_run_that_is_replaced_survives_mistakes(self):
        run = self.train("listops", "local", "good")
        record, weights = (run.folder / "record.json").read_bytes(), run.record["weights_hash"]

        def refused(said, layer="local", **more):
            with self.assertRaisesRegex(lra.Error, said) as caught:
                self.train("listops", layer, "good", overwrite=True, **more)
            self.assertEqual((run.folder / "record.json").read_bytes(), record)
            self.assertEqual(lra.arena.evaluate(run)["accuracy"], run.test_accuracy)
            self.assertFalse((self.folder / "good-replaced").exists())
            return str(caught.exception)

        refused("steps_", settings={"train.steps_": 3})
        refused("transformr", layer="transformr")
        said = refused("my own mistake", layer="my_layers:Fails")
        self.assertIn(f"the run that failed is now in {run.folder}-failed", said)
        self.assertEqual(lra.arena.open_run(f"{run.folder}-failed").status, "failed")
        with open(run.folder / ".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            refused("another process is training this run")
        for other in ("notes.txt", "checkpoints/other/record.json"):
            (run.folder / other).parent.mkdir(exist_ok=True)
            (run.folder / other).write_text("mine")
            refused(f"holds '{other}'")
            (run.folder / other).unlink()
        self.assertEqual(self.train("listops", "local", "good", seed=1, overwrite=True).record["seed"], 1)
        self.assertNotEqual(lra.arena.open_run(run.folder).record["weights_hash"], weights)
        self.assertFalse((self.folder / "good-replaced").exists())

    def test_only_a_run_is_replaced(self):
        for name, text in (("list", "[]"), ("other", '{"kind": "suite"}'), ("broken", "{")):
            (self.folder / name).mkdir()
            (self.folder / name / "record.json").write_text(text)
            with self.subTest(name), self.assertRaisesRegex(lra.Error, "is not a (run|record)"):
                self.train("listops", "local", name, overwrite=True)
            self.assertTrue((self.folder / name / "record.json").is_file())

    @unittest.skipIf(pandas is None, "no pandas")
    def test_tables(self):
        runs = self.train("listops", "local", "tables", seed=[0])
        frame = pandas.DataFrame(lra.results(self.folder / "tables-s0", settings=True))
        self.assertEqual(frame["train.batch_size"].tolist(), [4])
        self.assertEqual(frame["model.heads"].tolist(), [2])
        self.assertEqual(runs.frame()["seed"].tolist(), [0])
        metrics, curve = runs[0].metrics(), runs[0].curve()
        self.assertEqual(set(metrics["kind"]) - {"train"}, {"val", "test"})
        self.assertEqual(curve.index.tolist(), [3, 6])
        self.assertTrue(((curve.low < curve.accuracy) & (curve.accuracy < curve.high)).all())
        predictions = runs[0].predictions()
        self.assertEqual(len(predictions), 40)
        self.assertLessEqual(set(predictions["label"]), set("0123456789"))  # texts, as 007 may be one
        self.assertEqual((predictions["label"] == predictions["prediction"]).mean(), runs[0].test_accuracy)
        self.assertIn("length", predictions)


class Sweep(Folder):
    def test_a_sweep_chooses_by_validation_and_resumes(self):
        import my_layers

        settings = {
            "train": {"steps": 4, "batch_size": 4, "eval_every": 2, "memory_check": "off",
                      "learning_rate": lra.arena.log_uniform(1e-4, 1e-2)},
            "model": {**TINY["model"], "layers": [1, 2]}}

        def sweep():
            return lra.arena.sweep(
                "listops", [my_layers.Mean, "local"], settings, seed=np.array([0, 1]), tries=2,
                out=self.folder / "sweep", data=self.data, quiet=True)

        found = sweep()
        self.assertEqual([(run.record["model_title"], run.record["seed"]) for run in found.chosen],
                         [("Local Attention", 0), ("Local Attention", 1), ("Mean", 0), ("Mean", 1)])
        files = sorted((self.folder / "sweep").rglob("record.json"))
        runs = [lra.arena.open_run(file.parent) for file in files]
        self.assertEqual(len(runs), 8)
        for model in ("Local Attention", "Mean"):
            scores = {}
            for run in runs:
                if run.record["model_title"] == model:
                    tried = run.record["config"]["train"]["learning_rate"], run.record["config"]["model"]["layers"]
                    scores.setdefault(tried, []).append(run.record["val"]["accuracy"])
            chosen = [run for run in found.chosen if run.record["model_title"] == model][0].record
            best = chosen["config"]["train"]["learning_rate"], chosen["config"]["model"]["layers"]
            self.assertEqual(len(scores), 2)
            self.assertEqual(sum(scores[best]), max(map(sum, scores.values())))
            self.assertEqual((chosen["tuning"]["tried"], chosen["tuning"]["varied"]),
                             (2, ["train.learning_rate", "model.layers"]))
        self.assertEqual(sum(run.test_accuracy is not None for run in runs), 4)
        other = shutil.copytree(self.folder / "sweep" / "listops-local-s0", self.folder / "sweep" / "other")
        record = json.loads((other / "record.json").read_text())
        (other / "record.json").write_text(json.dumps({**record, "seed": 5}))
        (self.folder / "sweep" / "listed").mkdir()
        (self.folder / "sweep" / "listed" / "record.json").write_text("[]")
        self.assertEqual(sweep().chosen, found.chosen)
        shutil.rmtree(other), shutil.rmtree(self.folder / "sweep" / "listed")
        with self.assertWarnsRegex(UserWarning, "sweep/tries: left out; runs of a sweep that were not chosen"):
            self.assertEqual(len(lra.results(self.folder / "sweep")), 4)
        with self.assertRaisesRegex(lra.Error, "is of a sweep with other layers, or other settings"):
            lra.arena.sweep("listops", "local", {"model.layers": [1, 2]}, out=self.folder / "sweep", data=self.data)
        times = [file.stat().st_mtime_ns for file in files]
        self.assertEqual(sweep().chosen, found.chosen)
        self.assertEqual([file.stat().st_mtime_ns for file in files], times)

    def test_what_a_suite_refuses_is_told(self):
        with self.assertRaisesRegex(lra.Error, "steps"):
            lra.arena.sweep("listops", "local", {"train.stps": [1, 2]}, out=self.folder / "wrong", data=self.data, quiet=True)

    def test_a_suite_of_somebody_else_stays(self):
        file = self.folder / "theirs" / "suite.toml"
        file.parent.mkdir()
        file.write_text("# my own notes\n")
        with self.assertRaisesRegex(lra.Error, "is another suite"):
            lra.arena.sweep("listops", "local", {"model.layers": [1, 2]}, out=file.parent, data=self.data, quiet=True)
        self.assertEqual(file.read_text(), "# my own notes\n")


class KeptSource(unittest.TestCase):
    def keep(self, place, text):
        (place / "source").mkdir(parents=True, exist_ok=True)
        (place / "source/cell_1.py").write_text(text)

    def record(self, run, **more):
        run.mkdir(parents=True, exist_ok=True)
        code = hashlib.sha256(b"mine = 1\n").hexdigest()
        (run / "record.json").write_text(json.dumps({"model": "cell_1:C", "python": {"source_sha256": code}, **more}))

    def test_code_is_that_of_the_run_or_of_its_sweep(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            for place, run, more, found in (
                ("a", "a", {}, True), ("b", "b/run", {}, False), ("c", "c/deep/run", {}, False),
                ("d", "d/tries/run", {}, True), ("e", "e/run", {"tuning": {"tried": 2}}, True),
                ("f", "f/tries/deep/run", {}, False), ("g", "g", {"model": "other:C"}, False),
            ):
                with self.subTest(run):
                    self.keep(folder / place, "mine = 1\n")
                    self.record(folder / run, **more)
                    files = source_files(folder / run)
                    self.assertEqual(files, {"cell_1": folder / place / "source/cell_1.py"} if found else {})
            self.keep(folder / "a", "theirs = 1\n")
            with self.assertRaisesRegex(lra.Error, "cell_1.py: is not the code that the run was trained with"):
                lra.arena.load(folder / "a")
            said = subprocess.run([sys.executable, "-m", "lra", "eval", folder / "a"], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
            self.assertEqual((said.returncode, said.stderr.count("\n")), (2, 1), said.stderr)

    def test_what_lies_beside_is_not_imported(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            self.keep(folder, "mine = 1\n")
            self.record(folder)
            (folder / "source/beside_it.py").write_text("raise SystemExit('executed')\n")
            with importing(folder):
                self.assertEqual(importlib.import_module("cell_1").mine, 1)
                with self.assertRaises(ModuleNotFoundError):
                    importlib.import_module("beside_it")


class Interrupts(Folder):
    def interrupted(self, call, ready):
        """What a script says that gets Ctrl-C, as of a terminal, when ready() is true."""
        # A shell that starts the tests in the background leaves SIGINT ignored.
        script = ("import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
                  f"import lra\n{call}\nprint('went on')")
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, cwd=self.folder, start_new_session=True,
                              env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{self.folder}"}) as process:
            while not ready() and process.poll() is None:
                time.sleep(0.1)
            # To the script alone, as `kill` sends it; Ctrl-C of a terminal reaches no more than that.
            os.kill(process.pid, signal.SIGINT)
            output, errors = process.communicate(timeout=120)
        self.assertEqual((process.returncode, output), (-signal.SIGINT, ""), errors)
        return errors

    def test_ctrl_c_saves_and_stops_what_follows(self):
        settings = {"train": {**TINY["train"], "steps": 100000, "checkpoint_every": 2}, "model": TINY["model"]}
        settings, latest = dict(flat(settings)), self.folder / "long-s0/checkpoints/latest"
        said = self.interrupted(
            f"lra.arena.train('listops', 'local', seed=[0, 1], out='long', data='data', settings={settings}, quiet=True)",
            latest.exists)
        self.assertIn('KeyboardInterrupt: long-s0: saved and stopped; continue it with lra.arena.resume("long-s0")', said)
        self.assertEqual(lra.arena.open_run(self.folder / "long-s0").status, "stopped")
        self.assertFalse((self.folder / "long-s1").exists())
        before = os.readlink(latest)
        said = self.interrupted("lra.arena.resume('long-s0', quiet=True)", lambda: os.readlink(latest) != before)
        self.assertIn("KeyboardInterrupt: long-s0: saved and stopped", said)

    def test_a_kernel_that_is_killed_leaves_no_run_behind(self):
        settings = dict(flat({"train": {**TINY["train"], "steps": 100000, "checkpoint_every": 2}, "model": TINY["model"]}))
        script = f"import lra\nlra.arena.train('listops', 'local', out='killed', data='data', settings={settings}, quiet=True)"
        with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{self.folder}"}) as process:
            while not (self.folder / "killed/checkpoints/latest").exists() and process.poll() is None:
                time.sleep(0.1)
            process.kill()
        deadline = time.monotonic() + 60
        while lra.arena.open_run(self.folder / "killed").status != "stopped" and time.monotonic() < deadline:
            time.sleep(0.2)
        self.assertEqual(lra.arena.open_run(self.folder / "killed").status, "stopped")

    def test_ctrl_c_stops_a_sweep(self):
        settings = dict(flat({"train": {**TINY["train"], "steps": 100000}, "model": TINY["model"]}))
        settings["model.layers"] = [1, 2]
        said = self.interrupted(
            f"lra.arena.sweep('listops', 'local', {settings}, out='swept', data='data', quiet=True)", (self.folder / "swept/tries").exists)
        self.assertIn("KeyboardInterrupt: swept: saved and stopped; the same call resumes it", said)


class Words(unittest.TestCase):
    def test_values_of_every_kind(self):
        table = {"train": {"steps": np.int64(3), "learning_rate": np.float32(0.5), "patience": None},
                 "model.norm": "layer", "task.length": torch.tensor(7), "flag": np.bool_(True), "list": np.arange(2)}
        self.assertEqual(settings_words(table)[1::2], [
            "train.steps=3", "train.learning_rate=0.5", 'model.norm="layer"', "task.length=7", "flag=true", "list=[0, 1]"])
        self.assertEqual(dict(flat({"a": {"b": {"c": torch.device("cuda:1")}}})), {"a.b.c": "cuda:1"})
        self.assertEqual(lra.arena.log_uniform(np.float64(1e-4), 0.01), "0.0001:0.01:log")
        self.assertEqual(lra.arena.uniform(16, 256), "16:256")
        self.assertEqual(toml([True, "x"]), '[true, "x"]')
        with self.assertRaisesRegex(TypeError, "expected a number, a text or a list"):
            settings_words({"train.steps": object()})

    def test_advice_is_in_words_of_python(self):
        for message, expected in (
            ("choose another --out, or resume it with: build/lra train --resume runs/x",
             "choose another out=, or pass resume=True to continue it, or overwrite=True to replace it"),
            ("add --set model.pooling=mean", 'add settings={"model.pooling": "mean"}'),
            ("add --set train.steps=1e3, --set mixer.bias=true", 'add settings={"train.steps": 1e3}, arguments={"bias": True}'),
            ("lra: --device gpu: is not a device; expected cpu", 'device="gpu": is not a device; expected cpu'),
            ("lra: --seed -1: is no seed", "seed=-1: is no seed"),
            ("type: build/lra train listops transformer --preset small --device cpu --seed 0 --out runs/x --json",
             'type: lra.arena.train("listops", "transformer", ...)'),
            ("type: lra train custom:pairs local; or stop", 'type: lra.arena.train("custom:pairs", "local"); or stop'),
            ("--set mixer.blok: unknown", 'arguments={"blok": ...}: unknown'),
            ("put it there, or name the data folder with --data", "put it there, or name the data folder with data="),
            ("lra: resume it: /usr/bin/lra train --resume 'a/b'", 'resume it: lra.arena.resume("a/b")'),
            ("copied by lra data import text FILE --out data/text", 'copied by lra.data.import_files("text", ...)'),
        ):
            self.assertEqual(in_python(message), expected)

    def test_names_that_completion_shows(self):
        import inspect

        self.assertEqual(dir(lra), sorted(dir(lra)))
        self.assertLessEqual({"arena", "data", "nn", "results", "report", "__version__"}, set(dir(lra)))
        self.assertRegex(lra.__version__, r"^\d+\.\d+")
        for module in (lra, lra.arena, lra.data, lra.nn):
            self.assertFalse({"os", "json", "torch", "Path", "Any", "annotations"} & set(dir(module)), module)
            for name in dir(module):
                getattr(module, name)
        signature = inspect.signature(lra.nn.Linformer)
        self.assertEqual((signature.parameters["rank"].default, signature.parameters["rank"].annotation), (256, int))
        for kind in lra.nn.mixers().values():
            self.assertIn("dim", inspect.signature(kind).parameters)
            self.assertNotIn("settings", inspect.signature(kind).parameters)
        with self.assertRaisesRegex(lra.Error, "did you mean"):
            lra.nn.Linformer(8, rnk=2)


if __name__ == "__main__":
    unittest.main()
