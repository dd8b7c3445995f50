"""lra.arena and `python -m lra`: other people's layers under the program's trainer."""

import hashlib
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


class Causal(torch.nn.Module):
    """Needs no mask, since padding comes last."""

    def __init__(self, dim):
        super().__init__()
        self.gru = torch.nn.GRU(dim, dim, batch_first=True)

    def forward(self, x):
        return self.gru(x)[0]


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
        self.register_buffer("turn", torch.polar(torch.ones(d_model), torch.rand(d_model)))
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
        settings = {**TINY, **more.pop("settings", {})}
        return lra.arena.train("listops", layer, out=self.folder / out, settings=settings, quiet=True, **more)

    def test_the_program_s_own_models_give_the_bits_of_the_program(self):
        for model, kind in (("linformer", "Linformer"), ("bigbird", "BigBird")):
            with self.subTest(model):
                theirs = self.train(f"lra.nn:{kind}", f"{model}-python")
                ours = self.lra("train", "listops", model, "--out", f"{model}-program", "--quiet", settings=TINY)
                self.assertEqual(ours.returncode, 0, ours.stderr)
                record = json.loads((self.folder / f"{model}-program/record.json").read_text())
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
        self.assertEqual(len(record["python"]["source_sha256"]), 64)
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

    def test_a_finished_run_trains_further_and_is_exported(self):
        run = self.train("their_layers:NoMask", "further", settings={"train.test_examples": 16})
        steps = run.record["steps"]
        longer = lra.arena.resume(run, settings={"train.steps": steps + 2}, quiet=True)
        self.assertEqual((longer.status, longer.record["steps"]), ("done", steps + 2))
        self.assertEqual(len(longer.record["earlier_parts"]), 1)
        with self.assertRaisesRegex(lra.Error, "model.layers"):
            lra.arena.resume(run, settings={"model.layers": 3})
        folder = lra.arena.export(longer, self.folder / "exported")
        self.assertEqual(lra.arena.evaluate(folder)["accuracy"], longer.test_accuracy)

    def test_self_pretraining(self):
        masked = self.train("their_layers:NoMask", "masked", settings={"train.objective": "masked"})
        self.assertEqual((masked.status, masked.division), ("done", "pretraining"))
        self.assertGreater(masked.record["val"]["num_positions"], 8)
        for init_from in (masked, self.folder / "masked"):
            name = f"tuned-{type(init_from).__name__}"
            tuned = self.train("their_layers:NoMask", name, init_from=init_from, settings={"train.test_examples": 16})
            self.assertEqual((tuned.status, tuned.division), ("done", "self-pretrained"))
        self.assertEqual(lra.arena.evaluate(tuned)["accuracy"], tuned.test_accuracy)
        other = self.train("their_layers:NoMask", "partial", init_from=masked, init_partial=True)
        self.assertEqual(other.status, "done")
        rows = {row["folder"]: row for row in lra.results(self.folder)}
        self.assertIsNone(rows[str(self.folder / "masked")]["test_accuracy"])
        self.assertIsNotNone(rows[str(self.folder / name)]["test_accuracy"])

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
            ("preset", own_sizes, "0 0 1 1"), ("bf16", {**own_sizes, "train.precision": "bf16"}, "0 0 1 1"),
            ("other-sizes", TINY, "0 0 0 1 1"),  # once for the preset's groups, which are compared
        ):
            with self.subTest(name):
                counted = self.folder / f"counted-{name}.txt"
                self.variables["COUNTED"] = str(counted)
                ended = self.lra("train", "listops", "their_layers:Counted", "--out", f"counted-{name}", "--quiet",
                                 settings=settings)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertEqual(" ".join(sorted(counted.read_text().split())), made)

    def test_a_layer_with_an_empty_parameter_trains_and_resumes_and_is_exported(self):
        run = self.train("their_layers:NoMemoryTokens", "empty", settings={"train.test_examples": 16})
        self.assertEqual(run.status, "done")
        self.assertIn("encoder.layers.1.mixer.memory", weights_of(self.folder / "empty"))
        self.assertFalse([text for text in run.record.get("warnings", []) if "forward of" in text])
        longer = lra.arena.resume(run, settings={"train.steps": run.record["steps"] + 2}, quiet=True)
        self.assertEqual(longer.status, "done")
        checked = self.lra("report", "empty", "--check")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        folder = lra.arena.export(longer, self.folder / "exported-empty")
        self.assertEqual(lra.arena.evaluate(folder)["accuracy"], longer.test_accuracy)

    def test_buffers_of_every_dtype_are_saved_and_begun_with(self):
        from safetensors.torch import load_file

        def buffers(name):
            state = load_file(self.folder / name / "checkpoints/latest/model.safetensors")
            return {name: tensor for name, tensor in state.items() if name.split(".")[-1] in ("order", "turn", "keep")}

        first = self.train("their_layers:Drawn", "drawn", settings={"train.test_examples": 16})
        drawn = buffers("drawn")
        self.assertEqual(len(drawn), 6)
        self.assertEqual(drawn["encoder.layers.0.mixer.turn"].shape, (16, 2))
        alone = self.train("their_layers:Drawn", "drawn-alone", seed=1)
        self.assertFalse(all(torch.equal(drawn[name], tensor) for name, tensor in buffers("drawn-alone").items()))
        second = self.train("their_layers:Drawn", "drawn-from", seed=1, init_from=first)
        self.assertEqual((alone.status, second.status), ("done", "done"))
        for name, tensor in buffers("drawn-from").items():
            self.assertTrue(torch.equal(drawn[name], tensor), name)
        self.assertEqual(lra.arena.evaluate(first)["accuracy"], first.test_accuracy)
        longer = lra.arena.resume(first, settings={"train.steps": first.record["steps"] + 2}, quiet=True)
        self.assertEqual(longer.status, "done")
        self.assertTrue(all(torch.equal(drawn[name], tensor) for name, tensor in buffers("drawn").items()))
        with self.assertRaisesRegex(lra.Error, "buffer order is torch.uint16, which checkpoints do not hold"):
            self.train("their_layers:Unsaved", "unsaved")

    def test_an_evaluation_says_that_the_code_changed(self):
        source = "from their_layers import NoMask\nclass Changing(NoMask): pass\n"
        (self.folder / "changing.py").write_text(source)
        self.train("changing:Changing", "changing")
        self.assertNotIn("source of", self.lra("eval", "changing", "--quiet").stdout)
        (self.folder / "changing.py").write_text(source + "# as before\n")
        said = self.lra("eval", "changing", "--quiet").stdout
        self.assertIn("warning: the source of changing:Changing changed since the run", said)
        (self.folder / "changing.py").write_text(
            source.replace("pass", "") + "    def __init__(self, dim):\n        super().__init__(dim)\n"
            "        self.more = __import__('torch').nn.Linear(dim, dim)\n")
        ended = self.lra("eval", "changing", "--quiet")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("the source of changing:Changing changed since the run: ", ended.stderr)
        self.assertNotIn("restore it", ended.stderr)

    def test_an_evaluation_says_that_imported_code_changed(self):
        (self.folder / "parts" / "deep").mkdir(parents=True)
        (self.folder / "importing.py").write_text(
            "import parts.act\nfrom their_layers import NoMask\n"
            "class Importing(NoMask):\n    def forward(self, u): return parts.act.act(super().forward(u))\n")
        (self.folder / "parts/act.py").write_text("from .deep.inner import factor\ndef act(x): return x * factor()\n")
        (self.folder / "parts/deep/inner.py").write_text("def factor(): return 2\n")
        (self.folder / "parts/other.py").write_text("")
        self.train("importing:Importing", "importing")
        (self.folder / "parts/other.py").write_text("# nobody imports it\n")
        self.assertNotIn("source of", self.lra("eval", "importing", "--quiet").stdout)
        (self.folder / "parts/deep/inner.py").write_text("def factor(): return 3\n")
        said = self.lra("eval", "importing", "--quiet").stdout
        self.assertIn("warning: the source of importing:Importing changed since the run", said)

    def test_the_code_of_a_class_in_one_file_has_the_hash_of_the_file(self):
        file = self.folder / "their_layers.py"
        record = self.train("their_layers:NoMask", "one-file").record
        self.assertEqual(record["python"]["source_sha256"], hashlib.sha256(file.read_bytes()).hexdigest())

    def test_tuples_lengths_and_other_names_are_understood(self):
        self.assertEqual(self.train("their_layers:Tuple", "tuple").status, "done")

    def test_a_record_warns_of_padding_that_takes_part(self):
        record = self.train("their_layers:Total", "total").record
        self.assertIn("forward of their_layers:Total takes no mask: padding takes part", record["warnings"])
        for layer in ("Causal", "NoMask"):
            record = self.train(f"their_layers:{layer}", f"without-{layer}").record
            self.assertNotIn("takes no mask", str(record.get("warnings")), layer)

    def test_layers_share_no_weights(self):
        for layer, kind in (("shared", "NoMask"), ("shared_inside", "NoMask"), ("shared_weight", "Parameter")):
            with self.subTest(layer), self.assertRaises(lra.Error) as caught:
                self.train(f"their_layers:{layer}", layer)
            self.assertIn(
                f"reuses a {kind} of an earlier layer; expected new modules at each call", str(caught.exception))
            self.assertEqual(len(str(caught.exception).splitlines()), 1)
        self.assertEqual(self.train("their_layers:shared_activation", "shared-activation").status, "done")

    def test_without_trimming_every_batch_has_the_full_length(self):
        settings = {"task.length": 2000, "train.trim_padding": False}
        self.assertEqual(self.train("their_layers:Fixed", "fixed", settings=settings).status, "done")

    def test_a_whole_model_trains_and_has_a_place_of_its_own(self):
        run = lra.arena.train(
            "listops", model="their_layers:Bag", out=self.folder / "bag", settings=TINY, arguments={"width": 8},
            preset="release", quiet=True)
        self.assertEqual((run.status, run.division), ("done", "free-for-all"))
        self.assertEqual(run.record["division_reason"], "a whole model instead of a layer of the encoder")
        self.assertEqual(set(weights_of(self.folder / "bag")), {
            "model.embedding.weight", "model.head.weight", "model.head.bias"})
        self.assertEqual(run.record["num_parameters"], 17 * 8 + 8 * 10 + 10)

    def test_a_hostile_module_ends_the_run_with_one_line(self):
        for deed, said in (
            ("raises", "ValueError: my own mistake in two lines (their_layers.py:"),
            ("exits", "SystemExit: sys.exit(0) was called"),
            ("shape", "WrongShape: forward returned [4, "),
            ("batch", "WrongShape: forward returned [1, "),
            ("dtype", "TypeError: forward returned torch.float64; expected torch.float32"),
            ("kind", "TypeError: forward returned str; expected a tensor"),
            ("device", "ValueError: forward returned a tensor on meta; expected cpu"),
            ("in_place", "ValueError: forward changes its input in place"),
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

    def test_a_whole_model_is_evaluated_and_not_analyzed(self):
        self.train(None, "whole-bag", model="their_layers:Bag", arguments={"width": 8}, settings={"train.test_examples": 16})
        record = json.loads((self.folder / "whole-bag/record.json").read_text())
        evaluated = self.lra("eval", "whole-bag", "--quiet", "--json")
        self.assertEqual(evaluated.returncode, 0, evaluated.stderr)
        self.assertEqual(json.loads(evaluated.stdout)["accuracy"], record["test"]["accuracy"])
        whole = "their_layers:Bag: is a whole model, without the encoder that this command works on"
        for words in (("analyze", "span", "whole-bag"), ("analyze", "controls", "whole-bag"),
                      ("analyze", "embeddings", "whole-bag")):
            with self.subTest(words):
                ended = self.lra(*words, "--quiet")
                self.assertEqual((ended.returncode, len(ended.stderr.splitlines())), (2, 1), ended.stderr)
                self.assertIn(whole, ended.stderr)

    def test_two_ranks_train_a_python_class_and_a_model_of_the_program(self):
        ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        sets = [f"--set={key}={json.dumps(value)}" for key, value in TINY.items()]
        for layer in ("their_layers:NoMask", "linformer"):
            with self.subTest(layer):
                alone = self.train(layer, f"alone-{layer}", settings={"train.accumulate": 2}).record
                words = ["train", "listops", layer, "--out", f"ranks-{layer}", "--quiet", *sets]
                ended = subprocess.run([*ranks, "-m", "lra", *words], cwd=self.folder, env=self.variables,
                                       capture_output=True, text=True)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                record = json.loads((self.folder / f"ranks-{layer}/record.json").read_text())
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

    def test_a_class_of_a_script_trains(self):
        script = self.folder / "script.py"
        script.write_text(
            "import lra, torch\n"
            "from their_layers import Average\n"
            "class Mine(Average): pass\n"
            f"if __name__ == '__main__':\n"
            f"    run = lra.arena.train('listops', Mine, out='mine', settings={TINY!r}, quiet=True)\n"
            "    print(run.record['model'], run.status)\n")
        ended = subprocess.run([sys.executable, str(script)], cwd=self.folder, env=self.variables, capture_output=True, text=True)
        self.assertEqual(ended.stdout, "script:Mine done\n", ended.stderr)

    def test_a_name_stands_for_a_class_in_its_process(self):
        script = self.folder / "named.py"
        script.write_text(
            "import lra\n"
            "from their_layers import Average, Tuple\n"
            "lra.mixer('average')(Average)\n"
            "lra.mixer('average')(Average)\n"
            "for name, kind in (('average', Tuple), ('linformer', Average)):\n"
            "    try: lra.mixer(name)(kind)\n"
            "    except lra.Error as error: print(error)\n"
            "if __name__ == '__main__':\n"
            f"    run = lra.arena.train('listops', 'average', out='named', settings={TINY!r}, quiet=True)\n"
            "    print(run.record['model'])\n")
        ended = subprocess.run([sys.executable, str(script)], cwd=self.folder, env=self.variables, capture_output=True, text=True)
        self.assertEqual(ended.stdout.splitlines(), [
            "lra.mixer: 'average' is the name of their_layers:Average; choose another",
            "lra.mixer: 'linformer' is the name of a model of the program; choose another",
            "their_layers:Average"], ended.stderr)

    def test_an_installed_package_names_its_layers(self):
        package = self.folder / "package"
        package.mkdir()
        (package / "named_layers.py").write_text("from their_layers import Average\nclass Decay(Average): pass\n")
        (package / "pyproject.toml").write_text(
            '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
            '[project]\nname = "named-layers"\nversion = "1"\n[tool.setuptools]\npy-modules = ["named_layers"]\n'
            '[project.entry-points."lra.mixers"]\ndecay = "named_layers:Decay"\n')
        site = self.folder / "site"
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
             "--target", str(site), str(package)], check=True)
        variables = {**self.variables, "PYTHONPATH": f"{site}{os.pathsep}{self.variables['PYTHONPATH']}"}
        console = [sys.executable, "-c", "from lra._program import main; main()"]
        sets = [f"--set={key}={json.dumps(value)}" for key, value in TINY.items()]
        # What stands behind an option is no model.
        for number, words in enumerate(([*console], [sys.executable, "-m", "lra"])):
            out = "decay" if number == 0 else "decay-again"
            ended = subprocess.run([*words, "train", "listops", "decay", "--quiet", "--out", out, *sets],
                                   cwd=self.folder, env=variables, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            record = json.loads((self.folder / out / "record.json").read_text())
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
        ended = self.lra("suite", "run", "suite.toml", "--out", "both", "--quiet")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        rows = {row["model"]: row for row in lra.results(self.folder / "both")}
        self.assertEqual(set(rows), {"local", "their_layers:Average"})
        self.assertTrue(rows["their_layers:Average"]["python"])
        self.assertEqual(rows["local"]["suspect"], [])
        self.assertTrue(all(row["status"] == "done" for row in rows.values()))
        page = lra.report(self.folder / "both", out=self.folder / "report.html")
        self.assertIn("Average", page.path.read_text())
        self.assertEqual(self.lra("report", "both", "--check").returncode, 0)
        # The command of an installed package knows an interpreter.
        lra._program.run(["report", str(self.folder / "both"), "--check"])


def weights_of(run):
    from safetensors import safe_open

    with safe_open(run / "checkpoints/latest/model.safetensors", "np") as file:
        return list(file.keys())


if __name__ == "__main__":
    unittest.main()
