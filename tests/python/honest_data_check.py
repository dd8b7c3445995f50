"""Honest data is silent: sets that people have, with their official sizes and splits, import without a warning
and keep their rank.

    LRA_PROGRAM=build/lra python3 tests/python/honest_data_check.py [--record]

The sets are drawn by formulas that imitate published ones (the UCR and UEA archives, scikit-learn, torchtext): their
sizes, lengths, classes, smoothness, rounding and quirks. --record: docs/results/scorecard/29-honest_data.json.
"""
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.realpath(os.environ.get("LRA_PROGRAM", "build/lra"))
WORDS = ("the a of and to in is it you that he was for on are with as his they at be this from have or by one had not "
         "but what all were when we there can an your which their said if do will each about how up out them then she "
         "many some so these would other into has more her two like him see time could no make than first been its who "
         "now people my made over did down only way find use may water long little very after words called just where "
         "most know get through back much go good new write our me man too any day same right look think also around "
         "another came come work three must because does part").split()


def labels(draw, count, classes):
    return draw.permutation(np.arange(count) % classes)


def standardized(series):
    return (series - series.mean(-1, keepdims=True)) / series.std(-1, keepdims=True)


def smooth(draw, shape, width):
    """Noise under a bell of this width, as outlines and spectra are."""
    kernel = np.exp(-0.5 * (np.arange(-3 * width, 3 * width + 1) / width) ** 2)
    noise = draw.standard_normal((*shape[:-1], shape[-1] + 6 * width))
    return np.apply_along_axis(lambda row: np.convolve(row, kernel / np.sqrt((kernel**2).sum()), "valid"), -1, noise)


def series(sizes, length, classes, make, dtype=np.float32):
    """x and y of train and test; make(draw, labels, length) gives one row each. Integers are tokens."""
    def of(draw):
        arrays = {}
        for split, count in zip(("train", "test"), sizes):
            y = labels(draw, count, classes)
            arrays[f"x_{split}"], arrays[f"y_{split}"] = make(draw, y, length).astype(dtype), y
        return arrays
    return of


def gun_point(draw, y, length):
    t, width = np.arange(length), draw.uniform(25, 40, (len(y), 1))
    hand = 1 / (1 + np.exp(-(width - abs(t - length / 2)) / 4))
    return standardized(hand + 0.15 * y[:, None] * np.exp(-((t - 110) / 8) ** 2) + 0.02 * smooth(draw, (len(y), length), 6))


def outlines(draw, y, length):
    t = np.arange(length) * 2 * np.pi / length
    return standardized(np.cos((y[:, None] + 2) * t) + 0.8 * smooth(draw, (len(y), length), 9))


def coffee(draw, y, length):
    t = np.arange(length)
    base = 20 + 8 * np.exp(-((t - 90) / 20) ** 2) + 5 * np.exp(-((t - 200) / 30) ** 2)
    return base + 1.5 * y[:, None] * np.exp(-((t - 140) / 15) ** 2) + 0.2 * smooth(draw, (len(y), length), 4)


def trace(draw, y, length):
    t, at = np.arange(length), draw.uniform(90, 180, (len(y), 1))
    step = (t > at) * np.where(y[:, None] % 2, 1, -1)
    return standardized(step + (y[:, None] // 2) * np.sin(t / 9) * (t > at) + 0.01 * draw.standard_normal((len(y), length)))


def appliances(draw, y, length):
    """Power that is one of a few exact levels for long times."""
    rows = []
    for kind in y:
        levels = np.round(draw.uniform(2 + 9 * kind, 60 + 90 * kind, 3), 1)
        states = np.repeat(draw.integers(0, 3, length // 10 + 1), 10)[:length]
        rows.append(levels[states] + (draw.random(length) < 0.01) * np.round(draw.exponential(30, length), 1))
    return standardized(np.array(rows))


def stages(draw, y, length):
    """States of a Markov chain that stay for long, as of sleep."""
    state, rows = draw.integers(0, 10, len(y)), []
    for _ in range(length):
        moved = np.where(y, (state + 1) % 10, draw.integers(0, 10, len(y)))
        state = np.where(draw.random(len(y)) < 1 / 30, moved, state)
        rows.append(state)
    return np.array(rows).T


def rounded_waves(draw, y, length):
    """A slow sensor with few levels."""
    periods = np.array([400, 300, 250])[:, None, None]
    size, phase = draw.standard_normal((2, 3, len(y), 1))
    return np.round(7 * (size * np.sin(2 * np.pi * (np.arange(length) / periods + phase))).sum(0)) + 0.5


def rooms(draw, y, length):
    """A day of temperatures in steps of half a degree."""
    day = np.sin(2 * np.pi * (np.arange(length) + draw.normal(0, 12, (len(y), 1))) / length)
    drift = np.cumsum(draw.normal(0, 0.03, (len(y), length)), 1)
    return np.round(2 * (20 + 3 * day * draw.normal(1, 0.2, (len(y), 1)) + drift)) / 2


def held(levels, steps, form=lambda x: x):
    """Chords, set points and switches: one of the levels, for several steps."""
    return lambda draw, y, length: form(np.repeat(draw.integers(0, levels, (len(y), length // steps)), steps, 1))


def switches(draw, y, length):
    return np.repeat(draw.random((len(y), length // 10)) < 0.3 + 0.1 * y[:, None], 10, 1)


def counter(draw, y, length):
    return np.cumsum(draw.random((len(y), length)) < 0.1, 1)


def steps_since_midnight(draw, y, length):
    awake = np.arange(length) >= length // 4
    return np.cumsum(draw.poisson(3 * awake * (1 + 0.2 * y[:, None])), 1)


def fridges(draw, y, length):
    """Off is exactly 0, on is 100 W or so."""
    on = np.repeat(draw.random((len(y), length // 40)) < 0.5, 40, 1)
    return on * draw.normal(100 + y[:, None], 2, (len(y), length))


def prices(draw, y, length):
    return np.where(draw.random((len(y), length)) < 0.3, 0, draw.uniform(9 + y[:, None] / 5, 12, (len(y), length)))


def ordinal(draw, y, length):
    return np.stack([draw.choice([0, 1, 10], (len(y), length), p=[0.5, 0.45, 0.05]),
                     draw.normal(y[:, None], 1, (len(y), length))], 2)


def kettles(draw, y, length):
    """Used three times a day, or not at all."""
    rows = np.zeros((len(y), length))
    for i in np.flatnonzero(draw.random(len(y)) < 0.9):
        for start in draw.integers(0, length - 6, 3):
            rows[i, start:start + 6] = draw.normal(2000, 50, 6)
    return rows


def clips(draw, y, length):
    """Digital silence until the sound begins; loudness differs."""
    rows = draw.normal(0, 0.1, (len(y), length)) * np.exp(0.7 * draw.standard_normal((len(y), 1)))
    silent = draw.integers(0, 60, (len(y), 1)) * (draw.random((len(y), 1)) < 0.5)
    return np.where(np.arange(length) < silent, 0, rows)


def skies(channels):
    """Photos, four in ten with an overexposed sky."""
    def of(draw, y, length):
        rows = draw.integers(20, 200, (len(y), length, length, channels))
        sky = draw.integers(3, 10, len(y)) * (draw.random(len(y)) < 0.4)
        rows[np.arange(length) < sky[:, None]] = 255
        return rows.squeeze(-1) if channels == 1 else rows
    return of


def pulses(draw, y, length):
    phase = np.cumsum(0.05 + 0.0008 * y[:, None] + 0.004 * draw.standard_normal((len(y), length)), axis=1)
    return standardized(np.sin(phase) + 0.4 * np.sin(2 * phase) + 0.2 * smooth(draw, (len(y), length), 30))


def noise(draw, y, length):
    rows = draw.standard_normal((len(y), length))
    for i in range(2, length):
        rows[:, i] += np.where(y, 1.6, 1.3) * rows[:, i - 1] - 0.7 * rows[:, i - 2]
    return standardized(rows)


def heart_beats(draw, y, length):
    t, at = np.arange(length), 30 + 4 * draw.standard_normal((len(y), 1))
    beat = 3 * np.exp(-((t - at) / 2) ** 2) + np.exp(-((t - at - 25) / 8) ** 2) * (1 - 0.6 * y[:, None])
    return standardized(beat + 0.1 * draw.standard_normal((len(y), length)))


def motions(draw, y, length):
    t = np.arange(length)[:, None]
    return (0.3 + y[:, None, None]) * np.sin(t / (3 + y[:, None, None]) + np.arange(6)) + draw.normal(0, 0.3, (len(y), length, 6))


def dead_channel(draw, y, length):
    rows = motions(draw, y, length)[..., :4]
    rows[..., 2] = 9.81
    return rows


def electrodes(draw, y, length):
    """Neighboring channels see the same sources."""
    sources = draw.standard_normal((len(y), length, 8))
    for i in range(1, length):
        sources[:, i] += 0.9 * sources[:, i - 1]
    mix = np.exp(-0.5 * ((np.arange(14)[:, None] * 8 / 14 - np.arange(8)) / 1.2) ** 2)
    return (1 + 0.5 * y[:, None, None]) * sources @ mix.T


def spectrogram(draw, y, length):
    bands = smooth(draw, (len(y), length, 24), 3)
    return np.cumsum(bands, axis=1) / 4 + np.exp(-((np.arange(24) - 4 * y[:, None, None]) / 3) ** 2)


def tumors(draw, y, length):
    scale = np.exp(np.linspace(-6, 6, length))
    return scale * (5 + 2.2 * y[:, None] * (np.arange(length) % 3 == 0) + draw.standard_normal((len(y), length)))


def irises(draw, y, length):
    return np.round(np.array([5.0, 3.4, 1.5, 0.3]) + y[:, None] * np.array([0.8, -0.3, 2.0, 0.8])
                    + draw.normal(0, (0.35, 0.3, 0.2, 0.1), (len(y), length)), 1)


def digits(draw, y, length):
    """Integers from 0 to 16 in an 8 x 8 square whose columns at the sides are mostly empty."""
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8)), -1).reshape(-1, 2)
    angle = y[:, None] * 0.6 + draw.normal(0, 0.15, (len(y), 1))
    x, z = 3.5 + 2 * np.cos(angle), 3.5 + 2 * np.sin(angle)
    ink = 16 * np.exp(-((grid[:, 0] - x) ** 2 + (grid[:, 1] - z) ** 2) / 3) + draw.uniform(0, 1.5, (len(y), length))
    return np.floor(ink)


def counts(draw, y, length):
    """Sales of slow goods: mostly 0."""
    return draw.poisson(0.2 + 0.25 * y[:, None] * (np.arange(length) % 7 == 5), (len(y), length))


def vowels(draw):
    """Rows of several lengths with 12 channels, as JapaneseVowels has."""
    rows = {}
    for split, count in (("train", 270), ("test", 370)):
        rows[split] = []
        for k in labels(draw, count, 9):
            steps = draw.integers(7, 30)
            values = np.sin(np.arange(12) * (1 + k / 3)) + 0.1 * np.cumsum(draw.standard_normal((steps, 12)), 0)
            rows[split].append({"values": np.round(values, 5).tolist(), "label": int(k)})
    return rows


def subjects(draw):
    """Windows of walks; each person is in one split alone."""
    rows = {"train": [], "test": []}
    for person in range(20):
        for k in range(15):
            x = np.sin(np.arange(64) / (3 + k % 3) + draw.uniform(0, 6)) + draw.normal(0, 0.3, 64)
            rows["train" if person < 14 else "test"].append(
                {"values": np.round(x, 4).tolist(), "subject": f"p{person}", "label": ("walk", "run", "sit")[k % 3]})
    return rows


def uneven(draw):
    """One example in ten of a class in train, one in two in the test."""
    rows = {"train": [], "test": []}
    for split, count, rare in (("train", 400, 10), ("test", 100, 2)):
        for k in range(count):
            x = np.sin(np.arange(50) / (4 if k % rare else 6) + draw.uniform(0, 6)) + draw.normal(0, 0.4, 50)
            rows[split].append({"values": np.round(x, 4).tolist(), "label": int(k % rare == 0)})
    return rows


def sentence(draw, low=15, high=60):
    return " ".join(draw.choice(WORDS, draw.integers(low, high))).capitalize() + "."


def texts(names, form="{}", sizes=(600, 300), low=15, high=60):
    def of(draw):
        hints = {name: str(draw.choice(WORDS)) for name in names}
        def row(k):
            name = names[k % len(names)]
            said = sentence(draw, low, high)
            return {"text": form.format(said + (f" It is {hints[name]}." if draw.random() < 0.6 else "")), "label": name}
        return {split: [row(k) for k in draw.permutation(count)] for split, count in zip(("train", "test"), sizes)}
    return of


def short_messages(draw):
    usual = ["Ok", "ok thanks", "Sorry, I'll call later", "On my way"]
    rows = {"train": [], "test": []}
    for split, count in (("train", 800), ("test", 300)):
        for k in range(count):
            spam = k % 8 == 0
            said = "Win a prize now, call " + str(draw.integers(10**9)) + " " + sentence(draw, 3, 9) if spam else \
                usual[draw.integers(4)] if draw.random() < 0.1 else sentence(draw, 3, 14)
            rows[split].append({"text": said, "label": "spam" if spam else "ham"})
    return rows


def split_rows(rows, share=0.75):
    at = int(len(rows) * share)
    return {"train": rows[:at], "test": rows[at:]}


def bugs(draw):
    """Functions with and without an error of one character."""
    rows = []
    for k in range(300):
        a, b, c = (f"{draw.choice(['index', 'count', 'total', 'size', 'left'])}{draw.integers(100)}" for _ in range(3))
        code = f"int f_{k}(int {a}, int {b}) {{\n  int {c} = 0;\n  for (int k = 0; k @ {a}; ++k) {{ {c} += {b} * k; }}\n" \
               f"  return {c} + {draw.integers(1000)};\n}}\n"
        rows += [{"text": code.replace("@", sign), "label": label} for sign, label in (("<", "right"), ("<=", "wrong"))]
    return split_rows(rows)


def brackets(draw):
    return split_rows([{"text": "".join(draw.choice(list("()[]{}"), 60)) + f" {k % 7} " + "".join(draw.choice(list("()[]{}"), 60)),
                        "label": str(draw.choice(["no", "yes"]))} for k in range(400)])


def preferences(draw):
    """Both orders of each pair of answers."""
    rows = []
    for _ in range(300):
        better, worse = sentence(draw, 25, 40), sentence(draw, 25, 40)
        rows += [{"text1": better, "text2": worse, "label": "first"}, {"text1": worse, "text2": better, "label": "second"}]
    return split_rows(rows)


def templates(draw):
    """Letters from forty forms, and files with one of six licenses above them."""
    forms = [(sentence(draw, 24, 26), sentence(draw, 19, 21)) for _ in range(40)]
    licenses = [sentence(draw, 119, 121) for _ in range(6)]
    rows = []
    for k in range(1000):
        above, below = forms[draw.integers(40)]
        text = f"{above} {sentence(draw, 25, 26)} {below}"
        if k % 2:
            text = licenses[draw.integers(6)] * (draw.random() < 0.2) + " " + sentence(draw, 100, 300)
        rows.append({"text": text.strip(), "label": str(draw.choice(["a", "b"]))})
    return split_rows(rows)


def tiny_table(draw):
    """The only examples of val and test are equal by chance."""
    rows = [{"x1": k % 2, "x2": k // 2 % 2, "label": "ab"[k % 2], "split": "train"} for k in range(12)]
    return {"all": [*rows, *({"x1": 1, "x2": 1, "label": "b", "split": split} for split in ("val", "test"))]}


def promoters(draw):
    """Windows of DNA drawn on their own; one class has a motif."""
    def row(k):
        bases = draw.choice(list("ACGT"), 120)
        if k % 2:
            bases[50:56] = list("TATAAT")
        return {"text": "".join(bases), "label": int(k % 2)}
    return {"train": [row(k) for k in range(400)], "test": [row(k) for k in range(120)]}


def word_ids(draw):
    """Ids as Keras' reviews have them: 1 begins every list, frequent words have small ids."""
    def row(k):
        ids = np.minimum(draw.zipf(1.4, draw.integers(30, 90)) + 3, 5000)
        ids[draw.integers(len(ids))] = 40 + k % 2
        return {"tokens": [1, *ids.tolist()], "label": int(k % 2)}
    return {"train": [row(k) for k in range(800)], "test": [row(k) for k in range(300)]}


def pixels(draw):
    """Strokes on black, 28 x 28, as integers."""
    def row(k):
        image, at = np.zeros((28, 28)), np.array([14.0, 14.0]) + draw.normal(0, 1.5, 2)
        for step in range(60):
            at += 0.4 * np.array([np.cos(step / (3 + k % 5)), np.sin(step / (4 + k % 5))]) + draw.normal(0, 0.1, 2)
            y, x = np.clip(at.astype(int), 4, 22)
            image[y:y + 2, x:x + 2] = np.maximum(image[y:y + 2, x:x + 2], draw.integers(90, 256, (2, 2)))
        return {"tokens": image.astype(int).ravel().tolist(), "label": k % 5}
    return {"train": [row(k) for k in range(250)], "test": [row(k) for k in range(100)]}


SETS = {
    "GunPoint": series((50, 150), 150, 2, gun_point),
    "ArrowHead": series((36, 175), 251, 3, outlines),
    "OSULeaf": series((200, 242), 427, 6, outlines),
    "Coffee": series((28, 28), 286, 2, coffee),
    "Trace": series((100, 100), 275, 4, trace),
    "ACSF1": series((100, 100), 1460, 10, appliances),
    "PigCVP": series((104, 208), 2000, 52, pulses),
    "FordA": series((400, 200), 500, 2, noise),
    "ECG200": series((100, 100), 96, 2, heart_beats),
    "BasicMotions": series((40, 40), 100, 4, motions),
    "a constant channel": series((160, 80), 64, 2, dead_channel),
    "EEG": series((120, 60), 128, 2, electrodes),
    "a spectrogram": series((120, 60), 60, 4, spectrogram),
    "breast_cancer": series((455, 114), 30, 2, tumors),
    "iris": series((120, 30), 4, 3, irises),
    "digits": series((1437, 360), 64, 10, digits),
    "slow goods": series((300, 100), 91, 2, counts),
    "JapaneseVowels": vowels,
    "walks, a split by subjects": subjects,
    "a balanced test": uneven,
    "reviews": texts(["neg", "pos"]),
    "a prompt before each text": texts(
        ["no", "yes"], "Read the following passage carefully and answer with one word, yes or no, without any explanation "
                       "of how you found it. Passage: {} Answer:"),
    "a class called NONE": texts(["ABBR", "NONE", "LOC"], sizes=(450, 150), low=4, high=14),
    "short messages": short_messages,
    "promoters": promoters,
    "ids of words": word_ids,
    "pixels": pixels,
    "sleep stages": series((300, 100), 600, 2, stages, int),
    "a rounded sensor": series((300, 100), 500, 2, rounded_waves),
    "rooms in half degrees": series((300, 100), 288, 2, rooms),
    "chords": series((300, 100), 640, 2, held(24, 16), int),
    "set points": series((300, 100), 480, 2, held(20, 12, lambda x: 10 + x / 2)),
    "switches": series((300, 100), 600, 2, switches, int),
    "a counter": series((300, 100), 300, 2, counter, int),
    "steps since midnight": series((300, 100), 96, 2, steps_since_midnight, int),
    "fridges": series((300, 100), 400, 2, fridges),
    "free and paid": series((300, 100), 50, 2, prices),
    "ordinal answers": series((300, 100), 100, 2, ordinal),
    "kettles": series((300, 100), 96, 2, kettles),
    "clips that begin in silence": series((300, 100), 400, 2, clips),
    "gray skies": series((200, 100), 24, 2, skies(1), np.uint8),
    "skies": series((200, 100), 24, 2, skies(3), np.uint8),
    "code with bugs": bugs,
    "brackets": brackets,
    "preferences": preferences,
    "forms and licenses": templates,
    "a tiny table": tiny_table,
}


def write(folder, data):
    """One .npz of arrays, or a .jsonl for each split."""
    if not isinstance(next(iter(data.values())), list):
        np.savez(folder / "data.npz", **data)
        return [folder / "data.npz"]
    for split, rows in data.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [folder / f"{split}.jsonl" for split in data]


def lra(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class HonestData(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.root.cleanup()

    def imported(self, name, folder=None):
        folder = pathlib.Path(self.root.name) / (folder or name).replace(" ", "-").replace(",", "")
        folder.mkdir()
        draw = np.random.default_rng(sum(map(ord, name)))
        sources = write(folder, SETS[name](draw))
        code, out, errors = lra("data", "import", "custom", *sources, "--out", folder / "made", "--json", "--quiet")
        self.assertEqual(code, 0, f"{name}: {errors}")
        return folder / "made", json.loads(out)["data_checks"]

    def test_imports_without_a_warning(self):
        for name in SETS:
            with self.subTest(name):
                _, found = self.imported(name)
                self.assertEqual([], [f"{f['check']}: {f['text']}" for f in found if f["level"] != "note"])

    def test_published_sets_import_without_a_warning(self):
        """The reviews and pictures that the tests use; the pairs of papers are few, and that alone is found."""
        data = os.environ.get("LRA_TEST_DATA")
        if not data:
            self.skipTest("LRA_TEST_DATA is not set")
        for task, source, expected in (("text", "aclImdb", []), ("image", "cifar-10-batches-bin", []),
                                       ("retrieval", ".", ["changed_benchmark"])):
            out = pathlib.Path(self.root.name) / task
            code, told, errors = lra("data", "import", task, f"{data}/{source}", "--out", out, "--json", "--quiet")
            self.assertEqual(code, 0, errors)
            self.assertEqual(expected, [f["check"] for f in json.loads(told)["data_checks"] if f["level"] != "note"])

    def test_results_on_an_easy_set_have_a_rank(self):
        data, found = self.imported("Coffee", "ranked")
        self.assertTrue(any("easy task" in f["text"] for f in found), found)
        runs = pathlib.Path(self.root.name) / "runs"
        for model in ("transformer", "s4d"):
            code, _, errors = lra("train", "custom", model, "--data", data, "--out", runs / model, "--quiet", "--set",
                                  "train.steps=2", "--set", "model.layers=1")
            self.assertEqual(code, 0, errors)
            found = json.loads((runs / model / "record.json").read_text())["data_checks"]
            self.assertEqual([], [f for f in found if f["level"] != "note"])
        code, out, errors = lra("report", runs, "--format", "csv")
        self.assertEqual(code, 0, errors)
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual({""}, {row["suspect_data"] for row in rows})
        code, out, errors = lra("report", runs, "--format", "md")
        self.assertEqual(code, 0, errors)
        self.assertRegex(out, r"(?m)^\|.*\*\*\d", "the best of two models is bold")


def record(done):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "faults"))
    from shared import result
    result.record(29, "honest_data", {"sets": len(SETS), "with a warning": len(done.failures)},
                  "green" if done.wasSuccessful() else "red",
                  "LRA_PROGRAM=build/lra python3 tests/python/honest_data_check.py --record")


if __name__ == "__main__":
    is_recorded = "--record" in sys.argv
    program = unittest.main(argv=[word for word in sys.argv if word != "--record"], exit=False)
    if is_recorded:
        record(program.result)
    sys.exit(not program.result.wasSuccessful())
