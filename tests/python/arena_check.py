"""lra.arena and `python -m lra`: other people's layers under the program's trainer."""

import hashlib
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))
PROGRAM = pathlib.Path(os.environ["LRA_PROGRAM"]).resolve()
os.environ.setdefault("LRA_BUILD", str(PROGRAM.parent))
os.environ.setdefault("LRA_CONFIGS", str(ROOT / "configs"))

import lra
import torch
from lra._adapter import Shape, adapt

SHAPE = Shape(dim=16, heads=2, head_dim=8, max_length=64, layer=0)
TINY = {
    "train.steps": 6, "train.batch_size": 4, "train.eval_every": 3, "train.eval_examples": 8,
    "train.test_examples": 8, "train.checkpoint_every": 2, "model.layers": 2, "model.heads": 2,
    "model.embed_dim": 16, "model.qkv_dim": 16, "model.mlp_dim": 16, "task.length": 128,
    "train.memory_check": "off",
}

LAYERS = '''
import os
import sys
import torch


class Average(torch.nn.Module):
    """The running mean of a projection, with dropout: draws from torch's generator."""

    def __init__(self, dim, bias=True):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(dim, dim, bias=bias), torch.nn.Dropout(0.1))
        self.rate = torch.nn.Parameter(torch.ones(dim))
        self.rate._optim = {"lr": 1e-3, "weight_decay": 0.0}
        self.register_buffer("scale", torch.full((1,), 0.5))

    def forward(self, x, mask=None):
        print("what a layer prints is not part of a result")
        if mask is not None:
            x = x * mask.unsqueeze(-1)
        counts = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype)
        return self.scale * self.rate * self.inner(x).cumsum(1) / counts.unsqueeze(-1)


class Tuple(Average):
    def forward(self, x, lengths):
        return super().forward(x), "state"


class NoMask(torch.nn.Linear):
    def __init__(self, d_model):
        super().__init__(d_model, d_model)

    def forward(self, u):
        return super().forward(u)


class Total(NoMask):
    def forward(self, u):
        return super().forward(u).sum(1, keepdim=True).expand_as(u)


SHARED, ACTIVATION = [], torch.nn.GELU()


def shared(dim):
    if not SHARED:
        SHARED.append(NoMask(dim))
    return SHARED[0]


def shared_inside(dim):
    return torch.nn.Sequential(shared(dim), torch.nn.GELU())


def shared_weight(dim):
    made = NoMask(dim)
    if SHARED:
        made.weight = SHARED[0]
    SHARED[:] = [made.weight]
    return made


def shared_activation(dim):
    return torch.nn.Sequential(NoMask(dim), ACTIVATION)


class Fixed(torch.nn.Module):
    """Takes no other length than the longest."""

    def __init__(self, dim, max_length):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.ones(max_length, dim))

    def forward(self, x, mask):
        return x * self.weights


class Hostile(Average):
    """Does something wrong in the fourth training step."""

    def __init__(self, dim, deed="raise"):
        super().__init__(dim)
        self.deed, self.calls = deed, 0

    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        self.x = x
        self.calls += self.training
        return getattr(self, self.deed)(y) if self.calls >= 4 else y

    def nothing(self, y): return y
    def raises(self, y): raise ValueError("my own mistake\\nin two lines")
    def exits(self, y): sys.exit(0)
    def shape(self, y): return y[:, :-1]
    def batch(self, y): return y[:1]
    def dtype(self, y): return y.double()
    def kind(self, y): return "no tensor"
    def device(self, y): return y.to("meta")
    def nan(self, y): return y * float("nan")
    def in_place(self, y): self.x.relu_(); return y
    def forks(self, y): return y if os.fork() else y
    def backward(self, y): return Wrong.apply(y)


class Normalized(torch.nn.Module):
    """A whole model that normalizes over the batch."""

    def __init__(self, vocab_size, num_classes):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab_size, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.head = torch.nn.Linear(8, num_classes)

    def forward(self, tokens, lengths):
        return self.head(self.norm(self.embedding(tokens).sum(1) / lengths.unsqueeze(1)))


class Bag(torch.nn.Module):
    """A whole model, with an argument that has no default."""

    def __init__(self, vocab_size, num_classes, width):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab_size, width)
        self.head = torch.nn.Linear(width, num_classes)

    def forward(self, tokens, lengths):
        return self.head(self.embedding(tokens).sum(1) / lengths.unsqueeze(1))


class Drops(Average):
    """Drops in evaluation as well."""

    def forward(self, x, mask=None):
        return torch.nn.functional.dropout(super().forward(x, mask))


class Counted(NoMask):
    """Writes a line for each one that is made."""

    def __init__(self, d_model, layer_idx):
        super().__init__(d_model)
        with open(os.environ["COUNTED"], "a") as file:
            file.write(f"{layer_idx}\\n")


class NoMemoryTokens(NoMask):
    """Attends to "no memory tokens", too: an empty parameter."""

    def __init__(self, d_model):
        super().__init__(d_model)
        self.memory = torch.nn.Parameter(torch.randn(0, d_model))

    def forward(self, u):
        both = torch.cat([self.memory.expand(len(u), -1, -1), u], 1)
        return super().forward(both)[:, len(self.memory):]


class Drawn(NoMask):
    """Computes with buffers of the seed in other dtypes."""

    def __init__(self, d_model):
        super().__init__(d_model)
        self.register_buffer("order", torch.randperm(d_model))
        # A conjugate that is only noted, and the noted sign of its imaginary part.
        self.register_buffer("turn", torch.polar(torch.ones(d_model), torch.rand(d_model)).conj())
        self.register_buffer("tilt", self.turn.imag)
        self.register_buffer("keep", torch.rand(d_model) > 0.5)
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, u):
        if self.training:
            self.calls.add_(1)
        return (super().forward(u)[..., self.order] * self.turn).real * self.keep


class Unsaved(NoMask):
    def __init__(self, d_model):
        super().__init__(d_model)
        self.register_buffer("order", torch.arange(4).to(torch.uint16))


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y): return y.clone()
    @staticmethod
    def backward(ctx, gradient): raise RuntimeError("no gradient today")
'''


class Arena(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        (cls.folder / "their_layers.py").write_text(LAYERS)
        cls.variables = {
            **os.environ, "PYTHONPATH": f"{cls.folder}{os.pathsep}{ROOT / 'python'}",
            "LRA_DATA": str(cls.folder / "data"), "OMP_NUM_THREADS": "1",
        }
        os.environ.update(cls.variables)
        sys.path.append(str(cls.folder))
        cls.layers = importlib.import_module("their_layers")
        lra.data.make("listops", cls.folder / "data" / "listops", train=64, val=16, test=16)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def lra(self, *words, settings=None):
        sets = [f"--set={key}={json.dumps(value)}" for key, value in (settings or {}).items()]
        return subprocess.run(
            [sys.executable, "-m", "lra", *words, *sets], cwd=self.folder, env=self.variables,
            capture_output=True, text=True)

    def train(self, layer, out, **more):
        tiny = {key: value for key, value in TINY.items() if layer or not key.startswith("model.")}
        settings = {**tiny, **more.pop("settings", {})}
        return lra.arena.train("listops", layer, out=self.folder / out, settings=settings, quiet=True, **more)

    def test_the_program_s_own_models_give_the_bits_of_the_program(self):
        theirs = self.train("lra.nn:BigBird", "bigbird-python")  # which draws from the seed
        ours = self.lra("train", "listops", "bigbird", "--out", "bigbird-program", "--quiet", settings=TINY)
        self.assertEqual(ours.returncode, 0, ours.stderr)
        record = json.loads((self.folder / "bigbird-program/record.json").read_text())
        for field in ("weights_hash", "num_parameters", "division", "train", "val", "test"):
            self.assertEqual(theirs.record.get(field), record.get(field), field)

    def test_the_program_s_own_models_keep_their_groups(self):
        ours = self.lra("train", "listops", "s4d", "--out", "s4d-program", "--quiet", settings=TINY)
        self.assertEqual(ours.returncode, 0, ours.stderr)
        record = json.loads((self.folder / "s4d-program/record.json").read_text())
        config = record["config"]
        self.assertEqual(set(config["groups"]), {"c", "dt", "ssm"})
        settings = {f"{part}.{key}": value for part in ("model", "train") for key, value in config[part].items()}
        for name, group in config["groups"].items():
            settings.update({f"groups.{name}.{key}": value for key, value in group.items()})
        theirs = self.train("lra.nn:S4D", "s4d-python", arguments=config["mixer"], settings=settings)
        self.assertEqual(theirs.record["config"]["groups"], config["groups"])
        self.assertEqual(theirs.record["weights_hash"], record["weights_hash"])
        defaults = self.train("lra.nn:S4D", "s4d-defaults").record["config"]["groups"]
        self.assertEqual(defaults["ssm"]["learning_rate"], 1e-3)
        self.assertEqual(defaults["ssm"]["weight_decay"], 0)

    def test_a_record_says_whose_code_it_is(self):
        run = self.train("their_layers:Average", "average", arguments={"bias": False})
        record = run.record
        self.assertEqual((run.status, record["model"], record["model_title"]), ("done", "their_layers:Average", "Average"))
        self.assertEqual(record["python"]["source_sha256"],
                         hashlib.sha256((self.folder / "their_layers.py").read_bytes()).hexdigest())
        self.assertIn("torch", record["python"]["packages"])
        self.assertEqual(record["config"]["mixer"], {"bias": False, "class": "their_layers:Average"})
        self.assertEqual(record["config"]["groups"]["optim1"]["learning_rate"], 1e-3)
        self.assertFalse([text for text in record.get("warnings", []) if "forward of" in text])
        names = weights_of(self.folder / "average")
        self.assertIn("encoder.layers.1.mixer.inner.0.weight", names)
        self.assertIn("encoder.layers.0.mixer.scale", names)

    def test_a_run_that_failed_resumes_to_the_bits_of_one_that_did_not(self):
        whole = self.train("their_layers:Hostile", "whole", arguments={"deed": "nothing"}, settings={"model.layers": 1})
        with self.assertRaisesRegex(lra.Error, "my own mistake"):
            self.train("their_layers:Hostile", "half", arguments={"deed": "raises"}, settings={"model.layers": 1})
        # Its counter of calls begins again.
        ended = self.lra("train", "--resume", "half", "--quiet")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        record = json.loads((self.folder / "half/record.json").read_text())
        self.assertEqual((record["status"], record["weights_hash"]), ("done", whole.record["weights_hash"]))

    def test_a_layer_with_an_empty_parameter_trains_further_and_is_exported(self):
        run = self.train("their_layers:NoMemoryTokens", "further", settings={"train.test_examples": 16})
        self.assertIn("encoder.layers.1.mixer.memory", weights_of(self.folder / "further"))
        self.assertFalse([text for text in run.record.get("warnings", []) if "forward of" in text])
        steps = run.record["steps"]
        longer = lra.arena.resume(run, settings={"train.steps": steps + 2}, quiet=True)
        self.assertEqual((longer.status, longer.record["steps"]), ("done", steps + 2))
        self.assertEqual(len(longer.record["earlier_parts"]), 1)
        with self.assertRaisesRegex(lra.Error, "model.layers"):
            lra.arena.resume(run, settings={"model.layers": 3})
        checked = self.lra("report", "further", "--check")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        folder = lra.arena.export(longer, self.folder / "exported")
        self.assertEqual(lra.arena.evaluate(folder)["accuracy"], longer.test_accuracy)

    def test_self_pretraining(self):
        masked = self.train("their_layers:NoMask", "masked", settings={"train.objective": "masked"})
        self.assertEqual((masked.status, masked.division), ("done", "pretraining"))
        self.assertGreater(masked.record["val"]["num_positions"], 8)
        tuned = self.train("their_layers:NoMask", "tuned", init_from=masked, settings={"train.test_examples": 16})
        self.assertEqual((tuned.status, tuned.division), ("done", "self-pretrained"))
        self.assertEqual(lra.arena.evaluate(tuned)["accuracy"], tuned.test_accuracy)
        other = self.train("their_layers:NoMask", "partial", init_from=self.folder / "masked", init_partial=True)
        self.assertEqual(other.status, "done")
        rows = {row["folder"]: row for row in lra.results(self.folder)}
        self.assertIsNone(rows[str(self.folder / "masked")]["test_accuracy"])
        self.assertIsNotNone(rows[str(self.folder / "tuned")]["test_accuracy"])

    def test_published_results_have_the_rows_of_the_paper(self):
        rows = lra.literature()
        paper = [row for row in rows if row["source"].startswith("Long Range Arena")]
        self.assertEqual(len(paper), 11)
        self.assertIn(("Performer", 65.4, "FAIL"), [(row["model"], row["text"], row["pathx"]) for row in paper])
        self.assertTrue(any(row["note"] for row in rows))

    def test_a_whole_model_may_normalize_over_the_batch(self):
        run = self.train(None, "normalized", model="their_layers:Normalized",
                         settings={"train.trim_padding": False, "train.memory_check": "warn"})
        self.assertEqual(run.record["status"], "done")

    def test_results_tell_copies_and_weights_are_those_of_the_record(self):
        folder = self.folder / "told"
        self.lra("train", "listops", "s4d", "--out", str(folder / "one"), "--quiet", settings=TINY)
        self.assertTrue(torch.equal(lra.nn.weights(str(folder / "one"), 0)["c"],
                                    lra.nn.weights(str(folder / "one"), 0, "latest")["c"]))
        shutil.copytree(folder / "one", folder / "two")
        with self.assertWarnsRegex(UserWarning, "two: the same run as .*one"):
            rows = lra.results(folder)
        self.assertEqual(len({row["data_hash"] for row in rows}), 1)
        self.lra("train", "listops", "s4d", "--out", str(folder / "three"), "--seed", "5", "--quiet", settings=TINY)
        for name in ("three", "two"):
            target = (folder / name / "checkpoints/latest").resolve() / "model.safetensors"
            if name == "three":
                weights = target.read_bytes()
            else:
                target.write_bytes(weights)
        with self.assertRaisesRegex(lra.Error, "seed 5"):
            lra.nn.weights(str(folder / "two"), 0)

    def test_a_record_doubts_what_a_layer_computes(self):
        run = self.train("their_layers:Drops", "drops")
        said = [text for text in run.record["warnings"] if text.startswith("forward of their_layers:Drops ")]
        self.assertEqual(len(said), 1, said)
        self.assertIn("other results in evaluation", said[0])

    def test_a_class_is_made_twice_for_each_layer(self):
        own_sizes = {key: value for key, value in TINY.items() if key.startswith("train.") or key == "model.layers"}
        for name, settings, made in (
            ("bf16", {**own_sizes, "train.precision": "bf16"}, "0 0 1 1"),
            ("other-sizes", TINY, "0 0 0 1 1"),  # once for the preset's groups, which are compared
        ):
            with self.subTest(name):
                counted = self.folder / f"counted-{name}.txt"
                self.variables["COUNTED"] = str(counted)
                ended = self.lra("train", "listops", "their_layers:Counted", "--out", f"counted-{name}", "--quiet",
                                 settings=settings)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertEqual(" ".join(sorted(counted.read_text().split())), made)

    def test_buffers_of_every_dtype_are_saved_and_begun_with(self):
        from safetensors.torch import load_file

        def buffers(name):
            state = load_file(self.folder / name / "checkpoints/latest/model.safetensors")
            return {name: tensor for name, tensor in state.items() if name.split(".")[-1] in ("order", "turn", "keep")}

        first = self.train("their_layers:Drawn", "drawn", settings={"train.test_examples": 16})
        drawn = buffers("drawn")
        self.assertEqual(len(drawn), 6)
        self.assertEqual(drawn["encoder.layers.0.mixer.turn"].shape, (16, 2))
        second = self.train("their_layers:Drawn", "drawn-from", seed=1, init_from=first)
        self.assertEqual(second.status, "done")
        for name, tensor in buffers("drawn-from").items():
            self.assertTrue(torch.equal(drawn[name], tensor), name)
        self.assertEqual(lra.arena.evaluate(first)["accuracy"], first.test_accuracy)
        longer = lra.arena.resume(first, settings={"train.steps": first.record["steps"] + 2}, quiet=True)
        self.assertEqual(longer.status, "done")
        self.assertTrue(all(torch.equal(drawn[name], tensor) for name, tensor in buffers("drawn").items()))
        with self.assertRaisesRegex(lra.Error, "buffer order is torch.uint16, which checkpoints do not hold"):
            self.train("their_layers:Unsaved", "unsaved")

    def test_an_evaluation_says_that_the_code_changed(self):
        (self.folder / "parts" / "deep").mkdir(parents=True)
        source = ("import parts.act\nfrom their_layers import NoMask\n"
                  "class Changing(NoMask):\n    def forward(self, u): return parts.act.act(super().forward(u))\n")
        (self.folder / "changing.py").write_text(source)
        (self.folder / "parts/act.py").write_text("from .deep.inner import factor\ndef act(x): return x * factor()\n")
        (self.folder / "parts/deep/inner.py").write_text("def factor(): return 2\n")
        (self.folder / "parts/other.py").write_text("")
        self.train("changing:Changing", "changing")
        (self.folder / "parts/other.py").write_text("# nobody imports it\n")
        self.assertNotIn("source of", self.lra("eval", "changing", "--quiet").stdout)
        (self.folder / "parts/deep/inner.py").write_text("def factor(): return 3\n")
        said = self.lra("eval", "changing", "--quiet").stdout
        self.assertIn("warning: the source of changing:Changing changed since the run", said)
        (self.folder / "changing.py").write_text(
            source + "    def __init__(self, dim):\n        super().__init__(dim)\n"
            "        self.more = __import__('torch').nn.Linear(dim, dim)\n")
        ended = self.lra("eval", "changing", "--quiet")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("the source of changing:Changing changed since the run: ", ended.stderr)
        self.assertNotIn("restore it", ended.stderr)

    def test_tuples_lengths_and_other_names_are_understood(self):
        self.assertEqual(self.train("their_layers:Tuple", "tuple").status, "done")

    def test_a_record_warns_of_padding_that_takes_part(self):
        record = self.train("their_layers:Total", "total").record
        self.assertIn("forward of their_layers:Total takes no mask: padding takes part", record["warnings"])

    def test_layers_share_no_weights(self):
        with self.assertRaisesRegex(lra.Error, "reuses a NoMask of an earlier layer; expected new modules at each call"):
            self.train("their_layers:shared", "shared")
        for made_by, kind in ((self.layers.shared_inside, "NoMask"), (self.layers.shared_weight, "Parameter")):
            self.layers.SHARED.clear()
            first = adapt(made_by, {}, SHAPE)
            with self.assertRaisesRegex(TypeError, f"reuses a {kind} of an earlier layer"):
                adapt(made_by, {}, SHAPE)
            del first
        self.assertEqual(self.train("their_layers:shared_activation", "shared-activation").status, "done")

    def test_without_trimming_every_batch_has_the_full_length(self):
        settings = {"task.length": 2000, "train.trim_padding": False}
        self.assertEqual(self.train("their_layers:Fixed", "fixed", settings=settings).status, "done")

    def test_a_whole_model_trains_and_is_evaluated_and_not_analyzed(self):
        run = self.train(None, "bag", model="their_layers:Bag", arguments={"width": 8}, preset="release",
                         settings={"train.test_examples": 16})
        self.assertEqual((run.status, run.division), ("done", "free-for-all"))
        self.assertEqual(run.record["division_reason"], "a whole model instead of a layer of the encoder")
        self.assertEqual(set(weights_of(self.folder / "bag")), {
            "model.embedding.weight", "model.head.weight", "model.head.bias"})
        self.assertEqual(run.record["num_parameters"], 17 * 8 + 8 * 10 + 10)
        evaluated = self.lra("eval", "bag", "--quiet", "--json")
        self.assertEqual(evaluated.returncode, 0, evaluated.stderr)
        self.assertEqual(json.loads(evaluated.stdout)["accuracy"], run.test_accuracy)
        for kind in ("span", "embeddings"):
            with self.subTest(kind):
                ended = self.lra("analyze", kind, "bag", "--quiet")
                self.assertEqual((ended.returncode, len(ended.stderr.splitlines())), (2, 1), ended.stderr)
                self.assertIn("their_layers:Bag: is a whole model, without the encoder that this command works on",
                              ended.stderr)
        for setting in ({"model.layers": 2}, {"train.recompute": True}):
            with self.assertRaisesRegex(lra.Error, "is of the encoder; a whole model has arguments of its class, mixer.NAME"):
                self.train(None, "refused", model="their_layers:Bag", arguments={"width": 8}, settings=setting)

    def test_a_hostile_forward_is_told(self):
        for deed, said in (
            ("shape", "WrongShape: forward returned [4, "),
            ("batch", "WrongShape: forward returned [1, "),
            ("dtype", "TypeError: forward returned torch.float64; expected torch.float32"),
            ("kind", "TypeError: forward returned str; expected a tensor"),
            ("device", "ValueError: forward returned a tensor on meta; expected cpu"),
            ("in_place", "ValueError: forward changes its input in place"),
        ):
            layer, x = adapt(self.layers.Hostile, {"deed": deed}, SHAPE), torch.ones(4, 64, 16)
            layer.module.calls = 3  # the next one is the fourth
            with self.subTest(deed), self.assertRaises((TypeError, ValueError)) as caught:
                layer(x, None, None, (True, 0.0, 0.0, False, 1, 1, 1, 0))
            self.assertIn(said, f"{type(caught.exception).__name__}: {caught.exception}")

    def test_a_hostile_module_ends_the_run_with_one_line(self):
        for deed, said in (
            ("raises", "ValueError: my own mistake in two lines (their_layers.py:"),
            ("exits", "SystemExit: sys.exit(0) was called"),
            ("shape", "WrongShape: forward returned [4, "),
            ("backward", "no gradient today"),
        ):
            with self.subTest(deed):
                ended = self.lra(
                    "train", "listops", "their_layers:Hostile", "--out", f"hostile-{deed}", "--quiet",
                    settings={**TINY, "mixer.deed": deed, "model.layers": 1})
                self.assertEqual(ended.returncode, 2, ended.stderr)
                self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
                self.assertIn(said, ended.stderr)
                record = json.loads((self.folder / f"hostile-{deed}/record.json").read_text())
                self.assertEqual(record["status"], "failed")
                self.assertIn(said, record["failure"])
                self.assertTrue(weights_of(self.folder / f"hostile-{deed}"))

    def test_two_ranks_train_a_python_class(self):
        alone = self.train("their_layers:NoMask", "alone", settings={"train.accumulate": 2}).record
        ended = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "lra", "train",
             "listops", "their_layers:NoMask", "--out", "ranks", "--quiet",
             *(f"--set={key}={json.dumps(value)}" for key, value in TINY.items())],
            cwd=self.folder, env=self.variables, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        record = json.loads((self.folder / "ranks/record.json").read_text())
        self.assertEqual((record["status"], record["provenance"]["ranks"]), ("done", 2))
        self.assertAlmostEqual(record["val"]["loss"], alone["val"]["loss"], places=4)

    def test_nan_is_a_matter_of_the_guard(self):
        run = self.train("their_layers:Hostile", "nan", arguments={"deed": "nan"})
        self.assertEqual(run.status, "diverged")

    def test_what_is_forked_does_not_train(self):
        self.assertEqual(self.train("their_layers:Hostile", "forks", arguments={"deed": "forks"}).status, "done")

    def test_mistakes_are_one_line(self):
        for layer, arguments, said in (
            ("no_such_module:X", {}, "ModuleNotFoundError: No module named 'no_such_module'"),
            ("their_layers:NoSuch", {}, "has no attribute 'NoSuch'"),
            ("their_layers:Average", {"bais": True}, "takes no argument 'bais'; known: dim, bias"),
            (torch.nn.Linear(2, 2), {}, "an object of Linear was given; give the class"),
        ):
            with self.subTest(layer), self.assertRaises(lra.Error) as caught:
                self.train(layer, "mistake", arguments=arguments)
            self.assertEqual(caught.exception.exit_code, 2)
            self.assertIn(said, str(caught.exception))
        self.assertFalse((self.folder / "mistake").exists())

    def test_a_class_of_a_script_trains_and_has_a_name_in_its_process(self):
        script = self.folder / "script.py"
        script.write_text(
            "import lra\n"
            "from their_layers import Average, Tuple\n"
            "class Mine(Average): pass\n"
            "lra.mixer('average')(Mine)\n"
            "lra.mixer('average')(Mine)\n"
            "for name, kind in (('average', Tuple), ('linformer', Average)):\n"
            "    try: lra.mixer(name)(kind)\n"
            "    except lra.Error as error: print(error)\n"
            "if __name__ == '__main__':\n"
            f"    run = lra.arena.train('listops', 'average', out='named', settings={TINY!r}, quiet=True)\n"
            "    print(run.record['model'], run.status)\n")
        ended = subprocess.run([sys.executable, str(script)], cwd=self.folder, env=self.variables, capture_output=True, text=True)
        self.assertEqual(ended.stdout.splitlines(), [
            "lra.mixer: 'average' is the name of __main__:Mine; choose another",
            "lra.mixer: 'linformer' is the name of a model of the program; choose another",
            "script:Mine done"], ended.stderr)

    def test_an_installed_package_names_its_layers(self):
        site = self.folder / "site"  # as pip leaves it
        (site / "named_layers-1.dist-info").mkdir(parents=True)
        (site / "named_layers.py").write_text("from their_layers import Average\nclass Decay(Average): pass\n")
        (site / "named_layers-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: named-layers\nVersion: 1\n")
        (site / "named_layers-1.dist-info/entry_points.txt").write_text("[lra.mixers]\ndecay = named_layers:Decay\n")
        sets = [f"--set={key}={json.dumps(value)}" for key, value in TINY.items()]
        ended = subprocess.run(
            [sys.executable, "-c", "from lra._program import main; main()", "train", "listops", "decay", "--quiet",
             "--out", "decay", *sets], cwd=self.folder, capture_output=True, text=True,
            # What stands behind an option is no model.
            env={**self.variables, "PYTHONPATH": f"{site}{os.pathsep}{self.variables['PYTHONPATH']}"})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        record = json.loads((self.folder / "decay/record.json").read_text())
        self.assertEqual(record["model"], "named_layers:Decay")

    def test_the_program_hands_a_python_class_to_the_interpreter(self):
        ended = subprocess.run(
            [PROGRAM, "model", "compare", "listops", "their_layers:Average", "--json"],
            cwd=self.folder, env={**self.variables, "LRA_INTERPRETER": sys.executable}, capture_output=True, text=True)
        self.assertEqual(json.loads(ended.stdout)["model"], "their_layers:Average", ended.stderr)
        alone = {k: v for k, v in self.variables.items() if k != "LRA_INTERPRETER"}
        ended = subprocess.run(
            [PROGRAM, "model", "compare", "listops", "their_layers:Average"],
            cwd=self.folder, env=alone, capture_output=True, text=True)
        self.assertEqual((ended.returncode, len(ended.stderr.splitlines())), (2, 1), ended.stderr)
        self.assertIn("python -m lra", ended.stderr)

    def test_a_suite_trains_models_of_both_kinds(self):
        sets = "\n".join(f"{key} = {json.dumps(value)}" for key, value in TINY.items())
        (self.folder / "suite.toml").write_text(
            'name = "both"\ntasks = ["listops"]\nmodels = ["local", "their_layers:Average"]\nseeds = [0]\n'
            'preset = "small"\n' + "[set]\n" + sets + "\n")
        # A job's script starts the same interpreter.
        ended = self.lra("suite", "submit", "suite.toml", "--slurm", "--dry-run", "--out", "submitted")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        ended = subprocess.run(
            ["bash", "submitted/slurm/array-1.sbatch"], cwd=self.folder, capture_output=True, text=True,
            env={**self.variables, "SLURM_ARRAY_TASK_ID": "1"})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual([row["model"] for row in lra.results(self.folder / "submitted")], ["their_layers:Average"])
        ended = self.lra("suite", "run", "suite.toml", "--out", "submitted", "--quiet")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        rows = {row["model"]: row for row in lra.results(self.folder / "submitted")}
        self.assertEqual(set(rows), {"local", "their_layers:Average"})
        self.assertTrue(rows["their_layers:Average"]["python"])
        self.assertEqual(rows["local"]["suspect"], [])
        self.assertTrue(all(row["status"] == "done" for row in rows.values()))
        page = lra.report(self.folder / "submitted", out=self.folder / "report.html")
        self.assertIn("Average", page.path.read_text())
        self.assertEqual(self.lra("report", "submitted", "--check").returncode, 0)
        # The command of an installed package knows an interpreter.
        lra._program.run(["report", str(self.folder / "submitted"), "--check"])


def weights_of(run):
    from safetensors import safe_open

    with safe_open(run / "checkpoints/latest/model.safetensors", "np") as file:
        return list(file.keys())


if __name__ == "__main__":
    unittest.main()
