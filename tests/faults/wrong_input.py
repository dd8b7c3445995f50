"""No believable number comes from the wrong data or the wrong weights: 60 situations, fixed.

    LRA_PROGRAM=build/lra python3 tests/faults/wrong_input.py [--quick] [--only WORD]

Every situation is a mistake that leaves everything readable: a file of an official copy is missing, files of another task or
run lie where the right ones belong, a split is a copy of another, weights of another run have the same shapes. It is believed
when the command ends with exit code 0 and says nothing about it; right is one line that names the place, with exit code 2, or
a warning on the terminal and in the record. Each kind has happened to people; a new situation needs a public report where it
happened. --quick: nothing recorded; else docs/results/scorecard/28-wrong_input.json. --only: those with this word.
"""
import argparse
import base64
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from shared import result
from shared.wrong_files import (CIFAR_FILES, jsonl, read_tensors, texts, tokens, values, write, write_cifar, write_pairs,
                                write_reviews, write_tensors)

PROGRAM = os.path.realpath(os.environ["LRA_PROGRAM"])
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
ENVIRONMENT.pop("LRA_DATA", None)
NUM_SITUATIONS = 60
TINY = ["model.layers=1", "model.heads=2", "model.embed_dim=16", "model.qkv_dim=16", "model.mlp_dim=16",
        "train.steps=4", "train.batch_size=4", "train.eval_every=2", "train.eval_examples=0",
        "train.test_examples=0", "train.warmup_steps=1", "train.schedule=constant",
        "train.checkpoint_every=2", "train.log_every=1"]
SIZES = {"listops": {"train": 30, "val": 20, "test": 20}, "pathfinder": {"train": 32, "val": 4, "test": 4}}
LENGTHS = {"listops": ["task.length=64"], "text": ["task.length=64"], "retrieval": ["task.length=64"]}
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n"


def lra(*words):
    """Ends with its exit code, standard output and standard error."""
    done = subprocess.run([PROGRAM, *map(str, words)], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def must(*words):
    """A call that prepares a situation."""
    code, _, errors = lra(*words, "--quiet")
    if code != 0:
        raise RuntimeError(f"lra {' '.join(map(str, words))}: exit code {code}: {errors}")


def sets(*settings):
    return [word for each in settings for word in ("--set", each)]


def train_words(task, model, data, out, *settings):
    return ["train", task, model, "--data", data, "--out", out, "--threads", "1",
            *sets(*TINY, *LENGTHS.get(task, ()), *settings)]


class World:
    """Raw and prepared copies of the data of five tasks, and runs; situations are changed copies."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.raw, self.prepared = self.root / "raw", self.root / "prepared"
        write_cifar(self.raw / "image")
        write_reviews(self.raw / "text")
        write_pairs(self.raw / "retrieval")
        for task, sizes in SIZES.items():
            words = [word for split, count in sizes.items() for word in (f"--{split}", count)]
            must("data", "make", task, "--out", self.prepared / task, *words)
            must("data", "export", task, self.prepared / task, "--out", self.raw / task)
        for task in ("image", "text", "retrieval"):
            source = self.raw / task / ("aclImdb" if task == "text" else "")
            must("data", "import", task, source, "--out", self.prepared / task)
        self.count = 0

    def folder(self):
        self.count += 1
        return self.root / f"case{self.count}"

    def copy(self, source, below="."):
        """A data root of its own with a copy of a folder below it."""
        root = self.folder()
        (root / below).parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, root / below, symlinks=True)
        return root


def verdict(answer, pattern, record=None):
    """'' when the mistake was told; else what was wrong."""
    code, out, errors = answer
    if code == 0:
        kept = json.loads(record.read_text()) if record and record.exists() else {}
        said = kept.get("warnings", []) + [f"{f['check']}: {f['text']}" for f in kept.get("data_checks", [])
                                           if f["level"] == "warning"]
        told = re.search(pattern, out + errors) and (record is None or any(re.search(pattern, text) for text in said))
        return "" if told else f"believed: {out.strip()[:400]}"
    lines = errors.strip().splitlines()
    if code == 2 and out and not lines:  # findings of `lra report --check`
        return "" if re.search(pattern, out) else f"does not match {pattern!r}: {out.strip()[:300]}"
    if code != 2 or not lines or not lines[-1].startswith("lra: ") or out:
        return f"exit code {code}, {len(lines)} lines: {errors.strip()[:300]}"
    return "" if re.search(pattern, lines[-1]) else f"does not match {pattern!r}: {lines[-1]}"


def trained(world, task, change, pattern, name, below=None):
    """A run on a changed copy of a task's official files."""
    root = world.copy(world.raw / task, below or task)
    change(root / (below or task))
    return f"{task}: {name}", pattern, train_words(task, "local", root, root / "run"), root / "run"


def missing_files(world):
    """Files of an official copy or of prepared data are missing, elsewhere, or another's."""
    for task, part in (("listops", "listops-1000/basic_val.tsv"), ("image", "cifar-10-batches-bin/data_batch_3.bin"),
                       ("retrieval", "new_aan_pairs.eval.tsv")):
        yield trained(world, task, lambda root, name=part: (root / name).unlink(), "missing|not all|no ", f"{part} is missing")
    yield trained(world, "text", lambda root: shutil.rmtree(root / "aclImdb/test/pos"), "missing|not|no ", "test/pos is missing")
    yield trained(world, "text", lambda root: write(root / "aclImdb/train/pos/0_7.txt", LFS), "pointer of Git LFS",
                  "a pointer of Git LFS")
    yield trained(world, "listops", lambda root: None, "are deeper", "official files two levels deeper", "of mine/raw")
    for task, name in (("text", "manifest.json"), ("listops", "train.shard")):
        root = world.copy(world.prepared / task, task)
        found = next((root / task).glob("train*.shard")) if name == "train.shard" else root / task / name
        found.unlink()
        yield (f"{task}: prepared data without {name}", "manifest|shard", train_words(task, "local", root, root / "run"),
               root / "run")
    root = world.copy(world.prepared / "retrieval", "text")
    yield ("text: prepared data of another task in its place", "of task 'retrieval'",
           train_words("text", "local", root, root / "run"), root / "run")
    root = world.copy(world.prepared / "image", "image")
    shutil.copy(next((world.prepared / "text").glob("train*.shard")), next((root / "image").glob("train*.shard")))
    yield "image: a shard of another task", "shard", train_words("image", "local", root, root / "run"), root / "run"
    root = world.folder()
    write(root / "listops.zip", b"PK\3\4")
    yield ("listops: an archive lies in the data folder", "listops.zip",
           train_words("listops", "local", root, f"{root}-run", "task.num_train=20", "task.num_val=6", "task.num_test=6"),
           pathlib.Path(f"{root}-run"))
    root = world.copy(world.raw / "listops")
    must(*train_words("listops", "local", root, root / "first"))
    shutil.copy(root / "listops-1000/basic_test.tsv", root / "aside")
    shutil.copy(root / "aside", root / "listops-1000/basic_test.tsv")
    yield ("listops: files changed after they were read", "was changed after",
           train_words("listops", "local", root, root / "second"), root / "second")


def changed_benchmarks(world):
    """Official files that are copies of others, or not what was published."""
    def batches(change):
        def of(root):
            for name in CIFAR_FILES:
                path = root / "cifar-10-batches-bin" / f"{name}.bin"
                content = path.read_bytes()
                path.write_bytes(b"".join(change(content[i:i + 3073]) for i in range(0, len(content), 3073)))
        return of

    def shift_targets(root):
        path = root / "listops-1000/basic_test.tsv"
        header, *rows = (line.split("\t") for line in path.read_text().splitlines())
        rows = [[row[0], str((int(row[1]) + 1) % 10)] for row in rows]
        path.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]))

    def reviews(change):
        def of(root):
            for path in sorted((root / "aclImdb").rglob("*.txt")):
                path.write_bytes(change(path, path.read_text()))
        return of

    def swap_test(root):
        test = root / "aclImdb/test"
        (test / "neg").rename(test / "aside")
        (test / "pos").rename(test / "neg")
        (test / "aside").rename(test / "pos")

    order = random.Random(8).sample(range(1024), 1024)
    tsv, bin_file = "listops-1000/basic_{}.tsv", "cifar-10-batches-bin/{}.bin"
    yield trained(world, "listops", lambda r: shutil.copy(r / tsv.format("train"), r / tsv.format("val")), "one by one",
                  "val is a copy of train")
    yield trained(world, "listops", shift_targets, "evaluates to", "targets of the test are off by one")
    yield trained(world, "retrieval", lambda r: shutil.copy(r / "new_aan_pairs.train.tsv", r / "new_aan_pairs.test.tsv"),
                  "one by one", "test is a copy of train")
    yield trained(world, "image", lambda r: shutil.copy(r / bin_file.format("data_batch_3"), r / bin_file.format("test_batch")),
                  "holds the images of", "the test is a copy of a batch")
    yield trained(world, "image", batches(lambda record: bytes([(record[0] + 1) % 10]) + record[1:]), "changed_benchmark",
                  "labels are off by one")
    yield trained(world, "image", batches(lambda record: record[:1] + bytes(record[1 + i] for i in order) * 3),
                  "changed_benchmark", "pixels in another order")
    yield trained(world, "text", swap_test, "swapped|changed_benchmark", "neg and pos swapped in the test")
    yield trained(world, "text", lambda r: shutil.copytree(r / "aclImdb/train", r / "aclImdb/test", dirs_exist_ok=True),
                  "one by one", "test is a copy of train")
    yield trained(world, "text", reviews(lambda path, text: gzip.compress(text.encode())), "is a gzip file", "packed reviews")
    yield trained(world, "text", reviews(lambda path, text: b"<!DOCTYPE html><html><title>404</title></html>"),
                  "is an HTML page", "error pages")
    yield trained(world, "text", reviews(lambda path, text: text.encode("utf-16")), "UTF-16", "reviews in UTF-16")
    yield trained(world, "text", reviews(lambda path, text: f"caf\u00e9 {text}".encode("latin-1")), "not UTF-8", "Latin-1")
    yield trained(world, "text", reviews(lambda path, text: b"" if path.parent.name == "neg" else text.encode()),
                  "empty", "empty reviews of one class")
    yield trained(world, "text", reviews(lambda path, text: text.encode() + b"\r\n" * (path.parent.name == "neg")),
                  "class_format", "a line end behind the reviews of one class")


def own_data(world):
    """A user's own data: refused at the import, or with a warning of the check that is named."""
    def imported(name, pattern, train, test, more=()):
        folder = world.folder()
        jsonl(folder / "train.jsonl", train)
        jsonl(folder / "test.jsonl", test)
        return (f"own data: {name}", pattern,
                ["data", "import", "custom", folder / "train.jsonl", folder / "test.jsonl", "--out", folder / "made", *more], None)

    def each(rows, **change):
        (key, of), = change.items()
        return [row | {key: of(row[key])} for row in rows]

    def warns(check):
        return f"warning: {check}"

    a, b = values(200, 1), values(80, 2)
    yield imported("a fifth of the test is in train", warns("copies"), a, a[:16] + b[16:])
    yield imported("both labels for the same rows", warns("contradictions"),
                   a + [row | {"label": 1 - row["label"]} for row in a[:20]], b)
    walk = [row["values"][0] for row in values(2000, 3)]
    cut = [{"values": walk[k * 7:k * 7 + 40], "label": k % 2} for k in range(270)]
    random.Random(4).shuffle(cut)
    yield imported("windows of one recording, shuffled", warns("overlap"), cut[:200], cut[200:])
    long = texts(200, 5)
    yield imported("documents with another ending in the test", warns("overlap"), long,
                   [row | {"text": row["text"] + " And more."} for row in long[:40]] + texts(40, 6))
    yield imported("patients in train and test", warns("groups"), [row | {"patient": f"p{k % 20}"} for k, row in enumerate(a)],
                   [row | {"patient": f"p{k % 20}"} for k, row in enumerate(b)])
    yield imported("rows sorted by class before they were split", warns("classes"), a + each(a[:50], label=lambda y: 0),
                   each(b, label=lambda y: 1))
    yield imported("empty series", warns("blank"), each(a[:30], values=lambda x: [0] * 40) + a[30:], b)
    yield imported("a test in another unit", warns("shift"), a, each(b, values=lambda x: [1000 * v for v in x]))
    yield imported("a test in capital letters", warns("shift"), texts(200, 7), each(texts(80, 8), text=str.upper))
    ids, other_ids = tokens(200, 9), tokens(80, 10)
    yield imported("a test of another vocabulary", warns("unseen_ids"), ids, each(other_ids, tokens=lambda x: [v + 500 for v in x]))
    yield imported("a test without BOS", warns("end_marks"), each(ids, tokens=lambda x: [2, *x]), other_ids)
    yield imported("tokens that were padded", warns("padding"), each(ids, tokens=lambda x: x + [0] * (40 - len(x))),
                   each(other_ids, tokens=lambda x: x + [0] * (40 - len(x))))
    yield imported("-999 where a value is missing", warns("sentinel"),
                   each(a, values=lambda x: [-999 if k % 19 == 3 else v for k, v in enumerate(x)]), b)
    turned = [{"values": list(map(list, zip(*row["values"]))), "label": row["label"]} for row in values(280, 11, 12, 50)]
    yield imported("channels before positions", warns("axes"), turned[:200], turned[200:])
    yield imported("texts that Python wrote as bytes", warns("broken_text"), each(long, text=lambda t: f"b'{t}'"),
                   each(texts(80, 12), text=lambda t: f"b'{t}'"))
    coded = [row | {"text": base64.b64encode(row["text"].encode()).decode()} for row in texts(280, 13)]
    yield imported("base64", warns("broken_text"), coded[:200], coded[200:])
    files = [row | {"text": f"data/reviews/{k}.txt"} for k, row in enumerate(long + texts(80, 14))]
    yield imported("names of files", warns("broken_text"), files[:200], files[200:])
    yield imported("a mask longer than its tokens", "the length is 40; expected 0 to", [row | {"attention_mask": [1] * 40} for row in ids],
                   [row | {"attention_mask": [1] * 40} for row in other_ids])
    yield imported("labels written in another way", "label 'one'|has the label", a, each(b, label=lambda y: "one"))
    yield imported("a test under other names", "values", a, [{"features": row["values"], "label": row["label"]} for row in b])
    folder = world.folder()
    jsonl(folder / "all.jsonl", values(200, 15))
    must("data", "import", "custom", folder / "all.jsonl", "--out", folder / "made")
    yield ("own data: task.length cuts most of it", "cut: task.length=15",
           ["train", "custom", "local", "--data", folder / "made", "--out", folder / "run", "--threads", "1",
            *sets(*TINY, "task.length=15")], folder / "run")
    yield ("own data: a setting of the import given to a run", "effect only at the import",
           ["train", "custom", "local", "--data", folder / "made", "--out", folder / "run2", *sets("task.split_seed=1")], None)


def wrong_weights(world):
    """Weights, records and data of one run in the place of another's."""
    data, own, other = world.prepared, world.root / "own", world.root / "other"
    must(*train_words("listops", "transformer", data, own))
    must(*train_words("listops", "transformer", data, other), "--seed", 1)
    weights = other / "checkpoints/latest/model.safetensors"
    yield "eval with weights of another run", "another run", ["eval", own, "--checkpoint", weights], None
    run = world.copy(own)
    for folder in run.glob("checkpoints/step_*"):
        shutil.copy(weights, folder / "model.safetensors")
    yield "eval, weights of another run in its folder", "another run", ["eval", run], None
    run = world.copy(own)
    shutil.copy(other / "config.toml", run / "config.toml")
    yield "resume with the settings of another run", "settings that the run started|another run", ["train", "--resume", run], None
    run = world.copy(own)
    shutil.rmtree(run / "checkpoints")
    yield ("train on without checkpoints", "are missing", ["train", "--resume", run, *sets("train.steps=8")], None)
    generated = world.root / "another seed"
    must("data", "make", "listops", "--seed", 9, "--out", generated / "listops", "--train", 20, "--val", 6, "--test", 6)
    yield "eval on other data", "is not the data", ["eval", own, "--data", generated], None
    yield "reproduce on other data", "is not the data", ["reproduce", own, "--data", generated], None
    run = world.copy(own)
    kept = json.loads((run / "record.json").read_text())
    kept["test"]["accuracy"] = 0.777
    (run / "record.json").write_text(json.dumps(kept))
    yield "report of an edited record", "changed after it was written", ["report", run], None
    tensors, _ = read_tensors(own / "checkpoints/latest/model.safetensors")
    for name, content in (("zero", bytes), ("NaN", lambda size: b"\x00\x00\xc0\x7f" * (size // 4))):
        path = world.root / f"{name}.safetensors"
        write_tensors(path, {key: (shape, content(len(kind))) for key, (shape, kind) in tensors.items()})
        yield (f"train --init-from weights that are {name}", "weights are zero|NaN",
               [*train_words("listops", "transformer", data, world.root / f"from {name}"), "--init-from", path], None)
    write(world.root / "x.pt", b"PK\3\4" + bytes(60))
    yield ("train --init-from a file of torch.save", "torch.save",
           [*train_words("listops", "transformer", data, world.root / "from pt"), "--init-from", world.root / "x.pt"], None)
    configs = world.root / "configs"
    shutil.copytree(pathlib.Path(__file__).parents[2] / "configs", configs)
    with (configs / "tasks/listops.toml").open("a") as file:
        file.write("# one more line\n")
    ENVIRONMENT["LRA_CONFIGS"] = str(configs)
    yield ("train with edited presets", "configs/tasks/listops.toml is not the file",
           train_words("listops", "local", data, world.root / "edited"), world.root / "edited")
    del ENVIRONMENT["LRA_CONFIGS"]
    yield ("report of seeds on different data", "data=", ["report", own, trained_elsewhere(world, generated)], None)


def trained_elsewhere(world, data):
    out = world.root / "elsewhere"
    must(*train_words("listops", "transformer", data, out), "--seed", 2)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="only the situations with this word in their name; nothing recorded")
    arguments = parser.parse_args()
    count, wrong = 0, []
    with tempfile.TemporaryDirectory() as root:
        world = World(root)
        for situations in (missing_files, changed_benchmarks, own_data, wrong_weights):
            for name, pattern, words, out in situations(world):
                count += 1
                if arguments.only and arguments.only not in name:
                    continue
                problem = verdict(lra(*words), pattern, out / "record.json" if out else None)
                if problem:
                    wrong.append(f"{name}: {problem}")
                    print("FAILED:", wrong[-1], file=sys.stderr, flush=True)
    believed = sum(": believed" in problem for problem in wrong)
    print(f"{count} situations, {believed} believed, {len(wrong) - believed} told badly")
    if count != NUM_SITUATIONS:
        wrong.append(f"{count} situations; expected {NUM_SITUATIONS}")
        print("FAILED:", wrong[-1], file=sys.stderr)
    if not arguments.quick and not arguments.only:
        result.record(28, "wrong_input", {"situations": count, "believed": believed, "told badly": len(wrong) - believed},
                      "red" if wrong else "green", "LRA_PROGRAM=build/lra python3 tests/faults/wrong_input.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
