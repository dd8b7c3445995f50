"""Where a model fails: each figure of `lra eval` and of the record, computed again from the predictions.

The reference reads only the CSV that --predictions wrote and the task's official files, with NumPy.
"""

import collections
import csv
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = str(pathlib.Path(os.environ["LRA_PROGRAM"]).resolve())
SHORT = ["task.length=64", "task.min_length=5", "task.max_length=64", "task.max_depth=4",
         "task.num_train=400", "task.num_val=100", "task.num_test=203"]
STEPS = ["train.steps=30", "train.eval_every=15", "train.batch_size=16"]


def lra(folder, *arguments):
    ended = subprocess.run([PROGRAM, *arguments, "--quiet"], cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def settings(values):
    return [word for value in values for word in ("--set", value)]


def train(folder, task, run, *more):
    lra(folder, "train", task, "transformer", "--preset", "small", "--data", "data", "--out", run,
        "--threads", "1", *settings(["model.layers=1", "model.embed_dim=16",
                                     "model.qkv_dim=16", "model.mlp_dim=16", *STEPS]), *more)


def predictions(folder, run, name):
    lra(folder, "eval", run, "--data", "data", "--predictions", name)
    with open(folder / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def depth(expression):
    """Nesting of an official expression: brackets of operators, without the curried ones."""
    open_brackets, deepest = 0, 0
    for word in expression.split():
        open_brackets += word.startswith("[")
        deepest = max(deepest, open_brackets)
        open_brackets -= word == "]"
    return deepest


def area_under_roc(labels, scores):
    """The share of pairs in order, by all pairs."""
    ones, zeros = scores[labels == 1][:, None], scores[labels == 0][None, :]
    return np.mean((ones > zeros) + 0.5 * (ones == zeros))


class Predictions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        train(cls.folder, "listops", "run", *settings(SHORT))
        cls.rows = predictions(cls.folder, "run", "predictions.csv")
        cls.record = json.loads((cls.folder / "run/analysis/breakdown.json").read_text())
        cls.breakdown = cls.record["breakdown"]
        cls.right = np.array([row["label"] == row["prediction"] for row in cls.rows])

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_the_prediction_is_the_most_probable_class(self):
        names = [name for name in self.rows[0] if name.startswith("probability_")]
        self.assertEqual(len(names), 10)
        probabilities = np.array([[float(row[name]) for name in names] for row in self.rows])
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
        self.assertEqual([str(c) for c in probabilities.argmax(axis=1)],
                         [row["prediction"] for row in self.rows])
        self.assertEqual([int(row["index"]) for row in self.rows], list(range(203)))

    def test_the_record_keeps_a_bit_for_each_example(self):
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(self.breakdown["correct"]), np.uint8))
        np.testing.assert_array_equal(bits[:203].astype(bool), self.right)
        run = json.loads((self.folder / "run/record.json").read_text())
        self.assertEqual(self.right.mean(), run["test"]["accuracy"])
        self.assertEqual(self.breakdown["score"], run["test"])

    def test_groups_are_those_of_the_examples(self):
        lra(self.folder, "data", "export", "listops", "data/listops", "--out", "official")
        lines = (self.folder / "official/listops-1000/basic_test.tsv").read_text().splitlines()[1:]
        texts = [line.split("\t")[0] for line in lines]
        self.assertEqual([int(row["depth"]) for row in self.rows], [depth(text) for text in texts])
        self.assertEqual([row["root_operator"] for row in self.rows],
                         [re.search(r"\[(\w+)", text)[1] for text in texts])
        self.assertEqual([int(row["length"]) for row in self.rows],
                         [len([word for word in text.split() if word not in "()"]) for text in texts])
        factors = {factor["name"]: factor["groups"] for factor in self.breakdown["factors"]}
        self.assertEqual(set(factors), {"length", "depth", "root operator"})
        for name, groups in factors.items():
            values = [row[name.replace(" ", "_")] for row in self.rows]
            for group in groups:
                first, _, last = group["name"].partition(" to ")
                if name == "length":
                    inside = [int(first) <= int(value) <= int(last or first) for value in values]
                else:
                    inside = [value == group["name"] for value in values]
                self.assertEqual(group["num_examples"], sum(inside), group)
                self.assertEqual(group["num_correct"], self.right[inside].sum(), group)
            self.assertEqual(sum(group["num_examples"] for group in groups), 203)

    def test_recall_precision_and_macro_f1(self):
        labels = np.array([int(row["label"]) for row in self.rows])
        predicted = np.array([int(row["prediction"]) for row in self.rows])
        pairs = collections.Counter(zip(labels, predicted))
        self.assertEqual(self.breakdown["confusion"],
                         [[pairs[a, b] for b in range(10)] for a in range(10)])
        scores = []
        for c, found in enumerate(self.breakdown["classes"]):
            hits = int(((labels == c) & (predicted == c)).sum())
            self.assertEqual(found, {"name": str(c), "num_examples": int((labels == c).sum()),
                                     "num_predicted": int((predicted == c).sum()),
                                     "num_correct": hits})
            either = found["num_examples"] + found["num_predicted"]
            if either:
                scores.append(2 * hits / either)
        self.assertAlmostEqual(self.breakdown["macro_f1"], float(np.mean(scores)), 12)
        shown = lra(self.folder, "eval", "run", "--data", "data")
        recall = 100 * ((labels == 0) & (predicted == 0)).sum() / (labels == 0).sum()
        self.assertRegex(shown, rf"(?m)^ *0 +{(labels == 0).sum()} .* {recall:.2f}% ")

    def test_the_interval_is_that_of_wilson(self):
        shown = lra(self.folder, "eval", "run", "--data", "data")
        group = self.breakdown["factors"][-1]["groups"][0]
        n, p, z = group["num_examples"], group["num_correct"] / group["num_examples"], 1.95996
        center = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        self.assertRegex(shown, rf"{group['name']} +{n} +{100 * p:.2f}% +± "
                                rf"{100 * (half + abs(center - p)):.2f}")

    def test_analyze_finds_what_the_run_wrote(self):
        found = json.loads(lra(self.folder, "analyze", "breakdown", "run", "--data", "data", "--json"))
        self.assertEqual(found[0]["analysis"]["breakdown"], self.breakdown)
        evaluated = json.loads(lra(self.folder, "eval", "run", "--data", "data", "--json"))
        self.assertEqual(evaluated["breakdown"], self.breakdown)

    def test_two_classes_have_an_area_under_the_curve(self):
        rows = [{"text": "good " * (3 + i % 5) if i % 2 else "bad " * (2 + i % 7), "label": "ab"[i % 2]}
                for i in range(200)]
        (self.folder / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        lra(self.folder, "data", "import", "custom:own", "own.jsonl", "--out", "data/own")
        train(self.folder, "custom:own", "own")
        rows = predictions(self.folder, "own", "own.csv")
        labels = np.array([row["label"] == "b" for row in rows]).astype(int)
        scores = np.array([float(row["probability_b"]) for row in rows])
        record = json.loads((self.folder / "own/analysis/breakdown.json").read_text())["breakdown"]
        self.assertAlmostEqual(record["auc"], float(area_under_roc(labels, scores)), 5)

    def test_another_ending_and_a_file_that_exists_are_refused(self):
        for name, message in (("x.parquet", "to_parquet"), ("predictions.csv", "exists already")):
            ended = subprocess.run([PROGRAM, "eval", "run", "--data", "data", "--predictions", name],
                                   cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(message, ended.stderr)


if __name__ == "__main__":
    unittest.main()
