"""A user's own files that hold something else than they seem to."""
import json
import random

WORDS = "a long film about two brothers and their dog with music by nobody that anybody would know".split()


def csv_of(columns, cell):
    rows = [",".join([*(cell(row, column) for column in range(len(columns))), str(row % 2)]) for row in range(60)]
    return "\n".join([",".join([*columns, "label"]), *rows]) + "\n"


def jsonl(examples):
    return "".join(json.dumps(example) + "\n" for example in examples)


def texts(change=lambda k, text: text, count=120):
    numbers = random.Random(count)
    return jsonl({"text": change(k, f"The {k * 7919 % 997} " + " ".join(numbers.sample(WORDS, 12)) + ".<br /> End"),
                  "label": k % 2} for k in range(count))


def ids(change=lambda k, ids: ids, count=120):
    numbers = random.Random(count)
    return jsonl({"tokens": change(k, [numbers.randrange(5, 40) for _ in range(20 + k % 7)]), "label": k % 2}
                 for k in range(count))


def values(change=lambda k, rows: rows, count=200, channels=3, positions=30):
    numbers = random.Random(count)
    return jsonl({"values": change(k, [[round(numbers.gauss(c, 1 + c), 4) for c in range(channels)]
                                       for _ in range(positions)]), "label": k % 2} for k in range(count))


def number(row, column):
    return f"{row * 37 % 23}.{1 + column * row % 7}"


FILES = (
    ("columns in the order of words", "comes after",
     {"a.csv": csv_of([f"f{i}" for i in sorted(range(12), key=str)], number)}),
    ("points between thousands", "three digits behind its point",
     {"a.csv": csv_of([f"f{i}" for i in range(12)], lambda r, c: str(r + 900 + c) if r % 3 else f"{r + 1}.{100 + c}")}),
    ("hexadecimal ids", "is not a number",
     {"a.csv": "tokens,label\n" + "".join(f"1 a{k % 9} 2f,{k % 2}\n" for k in range(60))}),
    ("a file beside a copy", "read beside a copy",
     {"train.jsonl": ids(), "train_old.jsonl": ids(), "test.jsonl": ids(count=60)}),
    ("a test without BOS", "is the first of 100%",
     {"train.jsonl": ids(lambda k, i: [1, *i]), "test.jsonl": ids(count=60)}),
    ("padding to the longest of a batch", "occurs only in runs", {"a.jsonl": ids(lambda k, i: i + [0] * (k % 8))}),
    ("a test that was escaped", "cleaned or written",
     {"train.jsonl": texts(), "test.jsonl": texts(lambda k, t: t.replace("<", "&lt;"), 60)}),
    ("a test in small letters", "cleaned or written",
     {"train.jsonl": texts(), "test.jsonl": texts(lambda k, t: t.lower(), 60)}),
    ("a test cut at 60 characters", "cleaned or written|were they cut",
     {"train.jsonl": texts(), "test.jsonl": texts(lambda k, t: t[:60], 60)}),
    ("texts cut at 120 characters", "have exactly 120 bytes: were they cut", {"a.jsonl": texts(lambda k, t: (t * 3)[:120])}),
    ("a test of values that was smoothed", "difference of neighbors",
     {"train.jsonl": values(count=300), "test.jsonl": values(
         lambda k, v: [[(a + b) / 2 for a, b in zip(*two)] for two in zip(v, v[1:] + v[:1])], 240)}),
    ("a test table of which a column was lost", "gives the label of every example",
     {"train.jsonl": values(lambda k, v: [x for [x] in v], 80, 1, 12),
      "test.jsonl": values(lambda k, v: [x for [x] in v[1:]] + [float(k % 2)], 60, 1, 12)}),
    ("a test of which two channels were exchanged", "are they in another order",
     {"train.jsonl": values(lambda k, v: [[a, 0.8 + b / 2, c] for a, b, c in v], 400),
      "test.jsonl": values(lambda k, v: [[0.8 + b / 2, a, c] for a, b, c in v], 200)}),
    ("negated copies", "share half of their passages",
     {"train.jsonl": values(count=100, positions=60),
      "test.jsonl": values(lambda k, v: [[-x for x in row] for row in v], 100, positions=60)}),
    ("a test of which one channel has another sign", "another sign, offset or unit",
     {"train.jsonl": values(count=200), "test.jsonl": values(lambda k, v: [[a, -b, c] for a, b, c in v], 150)}),
    ("a test of pictures that were turned", "at other positions than those of train",
     {"train.jsonl": values(lambda k, v: [x + n / 9 for n, [x] in enumerate(v)], 300, 1, 40),
      "test.jsonl": values(lambda k, v: [x + (39 - n) / 9 for n, [x] in enumerate(v)], 200, 1, 40)}),
    ("subjects in train and test, in a column of any name", "have a value there that training examples have",
     {"a.jsonl": jsonl({"values": random.Random(k).choices((0.5, 1.5, 2, 3), k=30), "who": k % 20,
                        "label": k % 20 * 7 % 20 % 2} for k in range(200))}),
    ("a test that was encoded with three more special tokens", "whose ids are 3 less",
     {"train.jsonl": ids(lambda k, i: [n * n // 9 for n in i], 260),
      "test.jsonl": ids(lambda k, i: [n * n // 9 + 3 for n in i], 200)}),
    ("remarks in a table of numbers", "column 'remark' holds no number",
     {"a.csv": csv_of(["a", "b", "remark"], lambda r, c: "ok" if c == 2 else number(r, c))}),
    ("an error page", "is an HTML page", {"a.csv": "<!DOCTYPE html>\n<title>404</title>\n"}),
    ("one array of objects", "is an array or begins one", {"a.jsonl": "[\n {\"text\": \"a\", \"label\": 0}\n]\n"}),
    ("examples in columns", "examples of 48 positions",
     {"a.jsonl": values(lambda k, v: [x for [x] in v], 48, 1, 48)}),
)


def situations(world, tools):
    for name, pattern, files in FILES:
        world.count += 1
        folder = world.root / f"own{world.count}"
        for file, content in files.items():
            tools.write(folder / file, content)
        yield (f"own data: {name}", pattern,
               ["data", "import", "custom", folder, "--out", world.root / f"imported{world.count}"], None)
    yield from settings_of_the_import(world, tools)
    yield from other_scaling(world, tools)
    out = world.root / "half of the values"
    yield ("half the length of the data", "task.length=15 cuts 160 of the 160",
           ["train", "custom", "local", "--data", world.root / "imported_values", "--out", out, "--set", "task.length=15",
            "--set", "train.steps=2"], out)


def settings_of_the_import(world, tools):
    """Those of a run would have no effect, and its row in the report would name them."""
    tools.write(world.root / "imported_values.jsonl", values())
    tools.must("data", "import", "custom", world.root / "imported_values.jsonl", "--out", world.root / "imported_values")
    for setting in ("split_seed=1", "label=other", "sequences=x", "split=fold", "standardize=false"):
        out = world.root / f"values, {setting}"
        yield (f"train on imported data, task.{setting}", "has an effect only at the import",
               ["train", "custom", "s4d", "--data", world.root / "imported_values", "--out", out, "--set", f"task.{setting}",
                "--set", "train.steps=2"], out)


def other_scaling(world, tools):
    """The same examples drawn and standardized otherwise: most of the test are among those of training."""
    for seed in (0, 1):
        tools.must("data", "import", "custom", world.root / "imported_values.jsonl", "--out", world.root / f"drawn{seed}",
                   "--set", f"task.split_seed={seed}")
    run = world.root / "run of drawn0"
    tools.must("train", "custom", "local", "--data", world.root / "drawn0", "--out", run, "--set", "train.steps=2")
    pattern = "examples are among those that"
    yield ("eval on the same examples, drawn otherwise", pattern,
           ["eval", run, "--data", world.root / "drawn1", "--other-data"], None)
    further = world.root / "further run"
    yield ("train on the same examples, drawn otherwise", pattern,
           ["train", "custom", "local", "--data", world.root / "drawn1", "--init-from", run, "--out", further,
            "--set", "train.steps=2"], further)
