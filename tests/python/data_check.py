"""lra.data: arrays of prepared data, batches, the trainer's order, what a person sees."""

import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))
PROGRAM = pathlib.Path(os.environ["LRA_PROGRAM"]).resolve()
os.environ.setdefault("LRA_BUILD", str(PROGRAM.parent))
os.environ.setdefault("LRA_CONFIGS", str(ROOT / "configs"))

import lra
import numpy as np
from lra import _program, _random


def program(*words):
    return _program.run(words)


def tiny_reviews(folder):
    for split in ("train", "test"):
        for label in ("neg", "pos"):
            (folder / split / label).mkdir(parents=True)
            for i in range(20):
                text = f"{split} {label} review {i} " + "é" * i
                (folder / split / label / f"{i}_{i % 10}.txt").write_text(text)


def value_of(expression):
    """Nangia and Bowman's definition; MED of an even number of values is the floor of the mean."""
    stack = [[]]
    for word in expression.split():
        if word[0] == "[":
            stack.append([word])
        elif word == "]":
            name, *values = stack.pop()
            middle = sorted(values)[(len(values) - 1) // 2 : len(values) // 2 + 1]
            stack[-1].append({"[MIN": min(values), "[MAX": max(values), "[SM": sum(values) % 10,
                              "[MED": sum(middle) // len(middle)}[name])
        else:
            stack[-1].append(int(word))
    return stack[0][0]


class Imports(unittest.TestCase):
    def test_lra_imports_neither_torch_nor_numpy(self):
        code = "import lra, sys; assert not {'torch', 'numpy'} & set(sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})

    def test_data_needs_no_torch(self):
        code = "import lra.data, sys; assert 'torch' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})


class Random(unittest.TestCase):
    def test_philox_gives_the_published_words(self):
        # kat_vectors of Random123, philox4x32 10.
        ones = 0xFFFFFFFF
        for counter, key, expected in (
            ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
            ((ones,) * 4, ones << 32 | ones, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
            (
                (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), 0x299F31D0A4093822,
                (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
            ),
        ):
            self.assertEqual(tuple(map(int, _random.philox(counter, key))), expected)

    def test_a_permutation_reaches_every_place_once(self):
        for n in (1, 2, 3, 17, 1000):
            images = _random.permute(n, 5, np.arange(n))
            self.assertEqual(sorted(images.tolist()), list(range(n)))


class ListOps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.scratch.name)
        lra.data.make("listops", cls.root / "listops", train=300, val=20, test=20, seed=3)
        cls.train = lra.data.load("listops", "train", cls.root)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_arrays_are_views_of_the_file(self):
        (shard,) = self.train.arrays()
        self.assertEqual(shard.labels.size, 300)
        self.assertFalse(shard.tokens.flags.owndata)
        self.assertEqual(int(shard.offsets[-1]), shard.tokens.size)

    def test_the_decoded_expression_has_the_label_as_its_value(self):
        for index in range(len(self.train)):
            self.assertEqual(value_of(self.train.decode(index)), self.train[index].label)

    def test_examples_are_those_that_the_program_shows(self):
        for index in (0, 7, 299):
            shown = json.loads(program("data", "show", "listops", str(self.root / "listops"), "--index", str(index), "--json"))
            operators = [word[1:] for word in self.train.decode(index).split() if word[0] == "["]
            self.assertEqual([word for word in shown["text"].split()[4:] if word.isalpha()], operators)
            self.assertEqual(shown["label"], self.train[index].label)
            self.assertEqual(shown["length"], self.train[index].tokens.size)

    def test_a_batch_is_padded_masked_and_trimmed_as_the_trainer_does(self):
        batch = self.train.batch([5, 6, 7])
        lengths = [self.train[i].tokens.size for i in (5, 6, 7)]
        self.assertEqual(batch.lengths.tolist(), lengths)
        self.assertEqual(batch.tokens.shape, (3, min(2000, -(-max(lengths) // 32) * 32)))
        self.assertEqual(batch.mask.sum(1).tolist(), lengths)
        self.assertTrue((batch.tokens[~batch.mask] == 0).all() and (batch.tokens[batch.mask] > 0).all())
        self.assertEqual(self.train.batch([5], trim=False).tokens.shape, (1, 2000))

    def test_collate_gives_the_tensors_of_the_batch(self):
        import torch

        batch, expected = self.train.collate([self.train[3], self.train[9]]), self.train.batch([3, 9])
        for found, array in zip(batch, expected):
            self.assertTrue(torch.equal(found, torch.from_numpy(array)))

    def test_the_order_is_the_program_s_across_epochs_and_resumes(self):
        import torch

        _program.load_library()
        order = self.train.order(32, seed=11)
        for step in (0, 1, 9, 10, 100, 5000):
            expected = torch.ops.lra.batch_order(300, 32, 11, step)
            self.assertEqual(order.step(step).tolist(), list(expected))
        resumed = [b.tolist() for b in self.train.order(32, seed=11, first_step=9, steps=2)]
        self.assertEqual(resumed, [order.step(9).tolist(), order.step(10).tolist()])

    def test_ranks_share_a_batch_in_order(self):
        whole = self.train.order(32, seed=2).step(4).tolist()
        shares = [self.train.order(32, seed=2, rank=r, ranks=3).step(4).tolist() for r in range(3)]
        self.assertEqual(sum(shares, []), whole)

    def test_workers_of_a_dataloader_see_the_same_batches(self):
        import torch

        def batches(workers):
            loader = torch.utils.data.DataLoader(
                self.train, batch_sampler=self.train.order(16, steps=4), collate_fn=self.train.collate,
                num_workers=workers, multiprocessing_context="spawn" if workers else None)
            return [batch.tokens for batch in loader]

        for alone, shared in zip(batches(0), batches(2)):
            self.assertTrue(torch.equal(alone, shared))

    def test_a_split_pickles_as_a_path(self):
        text = pickle.dumps(self.train)
        self.assertLess(len(text), 1000)
        self.assertEqual(pickle.loads(text)[4].tokens.tolist(), self.train[4].tokens.tolist())

    def test_a_damaged_shard_is_refused_in_one_line(self):
        folder = self.root / "damaged"
        lra.data.make("listops", folder, train=10, val=5, test=5)
        shard = next(folder.glob("*train*"))
        shard.write_bytes(shard.read_bytes()[:-1])
        with self.assertRaisesRegex(lra.Error, "size in bytes"):
            lra.data.Split(folder, "train")

    def test_facts_are_checked_by_the_program(self):
        self.assertTrue(all(fact["ok"] for fact in lra.data.check("listops", self.root / "listops")))

    def test_an_unknown_task_is_an_error(self):
        with self.assertRaisesRegex(lra.Error, "unknown task 'lisops'"):
            lra.data.load("lisops")


class Text(unittest.TestCase):
    def test_heldout_examples_are_those_of_the_program(self):
        with tempfile.TemporaryDirectory() as scratch:
            tiny_reviews(pathlib.Path(scratch, "aclImdb"))
            val = lra.data.load("text", "val", scratch, validation="heldout")
            train = lra.data.load("text", "train", scratch, validation="heldout")
            self.assertEqual((len(val), len(train)), (4, 36))
            for index in range(4):
                shown = json.loads(program(
                    "data", "show", "text", str(val.folder), "--split", "val", "--index", str(index),
                    "--json", "--set", "task.validation=heldout"))
                self.assertEqual((shown["label"], shown["length"]), (val[index].label, val[index].tokens.size))
                self.assertIn(val.decode(index)[:15], shown["text"])
            self.assertEqual(len(lra.data.load("text", "val", scratch)), 40)
            encoded = val.decode(0).encode()
            self.assertEqual(val[0].tokens.tolist(), [byte + 1 for byte in encoded])


class Images(unittest.TestCase):
    def test_decodes_to_a_picture(self):
        with tempfile.TemporaryDirectory() as scratch:
            lra.data.make("pathfinder", pathlib.Path(scratch, "pathfinder"), train=20, val=5, test=5)
            train = lra.data.load("pathfinder", "train", scratch)
            picture = train.decode(3)
            self.assertEqual((picture.shape, picture.dtype), ((32, 32), np.uint8))
            self.assertEqual(picture.ravel().tolist(), train[3].tokens.tolist())
            self.assertTrue(train.batch([0, 1]).mask.all())


class OwnData(unittest.TestCase):
    def test_values_have_channels_and_tokens_are_ids(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            for name, sequence in (("values", [[0.5, 1.0], [2.0, 3.0]]), ("tokens", [3, 70000])):
                rows = [{name: sequence[: 1 + i % 2], "label": i % 2} for i in range(40)]
                for i, row in enumerate(rows):  # none equals another
                    row[name] = row[name] + ([[i, i]] if name == "values" else [i])
                text = "".join(json.dumps(row) + "\n" for row in rows)
                (root / f"{name}.jsonl").write_text(text)
                lra.data.import_files("custom", [root / f"{name}.jsonl"], root / name)
                train = lra.data.load(f"custom:{name}", "train", root)
                shown = json.loads(program("data", "show", "custom", str(root / name), "--index", "5", "--json"))
                self.assertEqual(train[5].tokens.tolist(), shown["tokens"][0])
                self.assertEqual(train[5].label, shown["label"])
                self.assertTrue(train.task.padded)
                batch = train.batch(range(8))
                self.assertEqual(batch.tokens.shape, (8, 3, 2) if name == "values" else (8, 3))
                self.assertEqual(batch.tokens.dtype, np.float32 if name == "values" else np.int64)
            self.assertEqual(train.vocabulary, 70002)

    def test_an_import_takes_one_path_and_settings(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            rows = "".join(f"b'a film about {i}',{i % 2}\n" for i in range(40))
            (root / "all.csv").write_text("text,grade\n" + rows)
            with self.assertRaisesRegex(lra.Error, "has no column of labels"):
                lra.data.import_files("custom", str(root / "all.csv"), root / "grades")
            with self.assertWarnsRegex(UserWarning, "grades: broken_text: "):
                lra.data.import_files("custom", str(root / "all.csv"), root / "grades", settings=["task.label=grade"])
            with self.assertWarnsRegex(UserWarning, "grades: broken_text: "):
                lra.data.load("custom:grades", "test", root)
            with self.assertWarnsRegex(UserWarning, "grades: broken_text: "):
                lra.data.check("custom", root / "grades")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                lra.data.import_files("custom", str(root / "all.csv"), root / "taken", settings=["task.label=grade"],
                                      accept=["broken_text"])
                lra.data.load("custom:taken", "test", root)
            with self.assertRaisesRegex(lra.Error, "no warning is named 'broken'"):
                lra.data.import_files("custom", str(root / "all.csv"), root / "none", accept=["broken"])
            files = lra.data.export("custom", root / "grades", root / "files")
            self.assertTrue((files / "test.jsonl").is_file())


class Tasks(unittest.TestCase):
    def test_shapes_are_those_of_the_program(self):
        for row in json.loads(program("list", "tasks", "--json"))["tasks"]:
            if row["name"] == "custom":  # its shape is that of its data
                continue
            task = lra.data.TASKS[row["name"]]
            self.assertEqual((task.length, task.classes), (row["length"], row["classes"]))

    def test_diagnostic_data_states_its_shape(self):
        with tempfile.TemporaryDirectory() as scratch:
            for name, settings, shape in (("recall", ["task.vocabulary=64", "task.pairs=2"], (65, 32)),
                                          ("state", ["task.group=z60"], (61, 60))):
                sets = [word for setting in [*settings, "task.length=16"] for word in ("--set", setting)]
                program("data", "make", name, "--train", "20", "--val", "5", "--test", "5", "--out",
                        f"{scratch}/{name}", *sets)
                split = lra.data.load(name, "train", scratch)
                self.assertEqual((split.task.length, split.task.vocabulary, split.task.classes), (16, *shape))
                self.assertEqual(split.decode(0).tolist(), split[0].tokens.tolist())
                manifest = json.loads(pathlib.Path(scratch, name, "manifest.json").read_text())
                del manifest["settings"]["token_ids"]  # as earlier versions made it
                self.assertEqual(lra.data._task_of(manifest), split.task)


if __name__ == "__main__":
    unittest.main()
