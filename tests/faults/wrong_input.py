"""No believable number comes from the wrong data or the wrong weights.

    LRA_PROGRAM=build/lra python3 tests/faults/wrong_input.py [--quick] [--only GROUP]

Every situation is a mistake that leaves everything readable: a file of an official copy is missing, files
of another task or run lie where the right ones belong, weights of another run have the same shapes. A
situation is believed when the command ends with exit code 0 and says nothing about it; right is one line
that names the place, with exit code 2, or a warning in the result and in the record. --quick: nothing
recorded; else docs/results/scorecard/28-wrong_input.json.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from shared import result, wrong_data, wrong_own, wrong_sets, wrong_use

PROGRAM = os.path.realpath(os.environ["LRA_PROGRAM"])
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
ENVIRONMENT.pop("LRA_DATA", None)
TINY = ["model.layers=1", "model.heads=2", "model.embed_dim=16", "model.qkv_dim=16", "model.mlp_dim=16",
        "train.steps=4", "train.batch_size=4", "train.eval_every=2", "train.eval_examples=0",
        "train.test_examples=0", "train.warmup_steps=1", "train.schedule=constant",
        "train.checkpoint_every=2", "train.log_every=1"]
SIZES = {"listops": {"train": 20, "val": 20, "test": 20}, "pathfinder": {"train": 32, "val": 4, "test": 4}}
CIFAR_FILES = [f"data_batch_{n}" for n in range(1, 6)] + ["test_batch"]
LENGTHS = {"listops": ["task.length=64"], "text": ["task.length=64"], "retrieval": ["task.length=64"]}


def lra(*words, cwd=None):
    """Ends with its exit code, standard output and standard error."""
    done = subprocess.run([PROGRAM, *map(str, words)], env=ENVIRONMENT, capture_output=True, text=True,
                          check=False, cwd=cwd)
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


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def write_cifar(root):
    """Six official files of twenty images."""
    noise = random.Random(0)
    for name in CIFAR_FILES:
        records = b"".join(bytes([k % 10]) + noise.randbytes(3072) for k in range(20))
        write(root / "cifar-10-batches-bin" / f"{name}.bin", records)


def write_reviews(root):
    """Forty reviews of IMDb's layout."""
    for split in ("train", "test"):
        for label in ("neg", "pos"):
            for i in range(10):
                rating = (1 if label == "neg" else 7) + i % 4
                write(root / "aclImdb" / split / label / f"{i}_{rating}.txt", f"{label} {split} {i} film")


def write_pairs(root):
    """The three files of Retrieval."""
    number = 0
    for split in ("train", "eval", "test"):
        lines = []
        for i in range(20):
            lines.append(f"{i % 2}.0\tP{number}\tP{number + 1}\ttext {number}\tother text {number}")
            number += 2
        write(root / f"new_aan_pairs.{split}.tsv", "\n".join(lines) + "\n")


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
        self.tasks = ("listops", "text", "retrieval", "image", "pathfinder")
        self.count = 0

    def copy(self, source, below="."):
        """A data root of its own with a copy of a folder below it."""
        self.count += 1
        root = self.root / f"case{self.count}"
        (root / below).parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, root / below)
        return root


def verdict(answer, pattern, record=None):
    """'' when the mistake was told; else what was wrong."""
    code, out, errors = answer
    if code == 0:
        warnings = json.loads(record.read_text()).get("warnings", []) if record and record.exists() else []
        told = record is None and re.search(pattern, out + errors)
        if told or (any(re.search(pattern, text) for text in warnings) and re.search(pattern, out)):
            return ""
        return f"believed: {out.strip()[:300]}"
    lines = errors.strip().splitlines()
    if code == 2 and out and not lines:  # findings of `lra report --check`
        return "" if re.search(pattern, out) else f"does not match {pattern!r}: {out.strip()[:300]}"
    if code != 2 or not lines or not lines[-1].startswith("lra: ") or out:
        return f"exit code {code}, {len(lines)} lines: {errors.strip()[:300]}"
    return "" if re.search(pattern, lines[-1]) else f"does not match {pattern!r}: {lines[-1]}"


def parts(raw):
    """Files and folders of an official copy that it cannot do without; of many files one may be missing.
    splits.txt is the one file that the official copy of Pathfinder does not have."""
    found = [path for path in sorted(raw.rglob("*")) if len(list(path.parent.iterdir())) <= 6]
    return [path.relative_to(raw) for path in found if path.name != "splits.txt"]


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def raw_situations(world):
    """An official copy with a part missing, in the data root and in the folder of the task's name."""
    for task in world.tasks:
        for below in (".", task):
            for part in parts(world.raw / task):
                if any(path.is_file() for path in (world.raw / task).rglob("*")
                       if not path.is_relative_to(world.raw / task / part)):
                    root = world.copy(world.raw / task, below)
                    remove(root / below / part)
                    out = root / "run"
                    yield (f"{task}: {part} is missing", "holds|no |missing|not|expected",
                           train_words(task, "local", root, out), out)


def prepared_situations(world):
    """Prepared data with a file missing, of another dataset, or of another task."""
    for task in world.tasks:
        for below in (task, f"{task}.prepared", "."):
            for name in sorted(os.listdir(world.prepared / task)):
                root = world.copy(world.prepared / task, below)
                (root / below / name).unlink()
                out = root.parent / f"{root.name}-run"
                yield (f"{task}: prepared data without {name}", re.escape(name) + "|manifest",
                       train_words(task, "local", root, out), out)
        other = "text" if task != "text" else "retrieval"
        root = world.copy(world.prepared / other, task)
        yield (f"{task}: prepared data of {other} in its place", f"of task '{other}'",
               train_words(task, "local", root, root / "run"), root / "run")
        root = world.copy(world.prepared / task, task)
        for path in (world.prepared / other).glob("train*.shard"):
            shutil.copy(path, root / task / path.name)
        yield (f"{task}: a shard of {other} among its own", "shard",
               train_words(task, "local", root, root / "run"), root / "run")


def beside_situations(world):
    """Data would be generated beside what may have been meant."""
    for name, content in (("listops/train.csv", "a,b"), ("listops.zip", b"PK\x03\x04"), ("my-listops.tsv", "x"),
                          ("listops/basic_train.csv", "x"), ("LISTOPS/basic_train.tsv", "x")):
        root = world.root / f"beside{world.count}"
        world.count += 1
        write(root / name, content)
        yield (f"listops: {name} lies in the data folder", re.escape(name.split("/")[0]),
               train_words("listops", "local", root, f"{root}-run", "task.num_train=20", "task.num_val=6",
                           "task.num_test=6"), pathlib.Path(f"{root}-run"))
    yield ("pathfinder: images of another difficulty", "task.difficulty=hard",
           train_words("pathfinder", "local", world.raw / "pathfinder", world.root / "easy",
                       "task.difficulty=easy"), world.root / "easy")


def reviews_of(root, split, label):
    return sorted((root / "text/aclImdb" / split / label).glob("*.txt"))


def encoding_situations(world):
    """Texts of one class or split are written another way than the others."""
    ways = {"UTF-16": ("UTF-16", lambda text: text.encode("utf-16")),
            "UTF-16 without a mark": ("zero bytes", lambda text: text.encode("utf-16-be")),
            "UTF-32": ("UTF-16", lambda text: text.encode("utf-32")),
            "Latin-1": ("not UTF-8", lambda text: f"caf\u00e9 {text}".encode("latin-1")),
            "nothing": ("are empty", lambda text: b""),
            "blanks": ("are empty", lambda text: b" \t\r\n"),
            "a line end behind": ("end in white space", lambda text: text.encode() + b"\n"),
            "a blank in front": ("begin with white space", lambda text: b" " + text.encode()),
            "tabs": ("hold a tab", lambda text: text.replace(" ", "\t").encode()),
            "two lines": ("hold a line end", lambda text: text.replace(" ", "\n", 1).encode())}
    for groups in ((("train", "neg"), ("test", "neg")), (("test", "neg"), ("test", "pos"))):
        for name, (pattern, change) in ways.items():
            if groups[0][0] == "test" and name in ("nothing", "blanks"):
                continue  # of twenty in all, as for one class
            root = world.copy(world.raw / "text", "text")
            for group in groups:
                for path in reviews_of(root, *group):
                    path.write_bytes(change(path.read_text()))
            yield (f"text: {name} in {groups}", pattern, train_words("text", "local", root, root / "run"), root / "run")
    for name, (pattern, change) in ways.items():
        if name not in ("UTF-16", "UTF-16 without a mark", "UTF-32", "Latin-1", "nothing"):
            continue
        root = world.copy(world.raw / "retrieval", "retrieval")
        for path in (root / "retrieval").glob("*.tsv"):
            rows = [line.split("\t") for line in path.read_text().splitlines()]
            path.write_bytes(b"\n".join("\t".join(row[:4]).encode() + b"\t" + change(row[4]) if row[0] == "1.0"
                                        else "\t".join(row).encode() for row in rows) + b"\n")
        yield (f"retrieval: {name} in documents of label 1", f"{pattern}|columns|label|zero bytes|not UTF-8",
               train_words("retrieval", "local", root, root / "run"), root / "run")


def contents_situations(world):
    """Files that can be read and are copies, of another class, or easier than they should be."""
    def of(task, change, pattern, name):
        root = world.copy(world.raw / task, task)
        change(root / task)
        return (f"{task}: {name}", pattern, train_words(task, "local", root, root / "run"), root / "run")

    def swap(one, other):
        one.rename(one.parent / "aside")
        other.rename(one)
        (one.parent / "aside").rename(other)

    def copy_batches(root, source, names):
        for name in names:
            if name != source:
                path = root / "cifar-10-batches-bin"
                shutil.copy(path / f"{source}.bin", path / f"{name}.bin")

    def blacken(root):
        for path in (root / "cifar-10-batches-bin").glob("*.bin"):
            records = path.read_bytes()
            path.write_bytes(b"".join(records[i:i + 1] + (bytes(3072) if records[i] == 3 else records[i + 1:i + 3073])
                                      for i in range(0, len(records), 3073)))

    def shift_targets(root):
        path = root / "listops-1000/basic_test.tsv"
        header, *rows = (line.split("\t") for line in path.read_text().splitlines())
        targets = [row[1] for row in rows]
        rows = [[row[0], target] for row, target in zip(rows, targets[1:] + targets[:1])]
        path.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]))

    def shorten(root):
        for at, split in enumerate(("train", "val", "test")):
            rows = [f"( ( ( ( [MAX {i % 10} ) {i // 10} ) {at} ) ] )\t{max(i % 10, i // 10, at)}\n" for i in range(30)]
            (root / f"listops-1000/basic_{split}.tsv").write_text("Source\tTarget\n" + "".join(rows))

    def pickles_beside(root):
        for name in CIFAR_FILES:
            (root / "cifar-10-batches-bin" / name).write_bytes(b"x")

    listops, retrieval = "listops-1000/basic_{}.tsv", "new_aan_pairs.{}.tsv"
    yield of("listops", lambda r: shutil.copy(r / listops.format("train"), r / listops.format("val")),
             "also in an earlier split", "val is a copy of train")
    yield of("listops", shift_targets, "evaluates to", "targets of other lines")
    yield of("listops", shorten, "expressions of", "short expressions")
    yield of("retrieval", lambda r: shutil.copy(r / retrieval.format("train"), r / retrieval.format("test")),
             "also in an earlier split", "test is a copy of train")
    yield of("text", lambda r: [swap(r / f"aclImdb/{s}/neg", r / f"aclImdb/{s}/pos") for s in ("train", "test")],
             "swapped", "neg and pos swapped")
    yield of("text", lambda r: swap(r / "aclImdb/test/neg", r / "aclImdb/test/pos"), "swapped",
             "neg and pos swapped in the test")
    yield of("text", lambda r: shutil.copytree(r / "aclImdb/train", r / "aclImdb/test", dirs_exist_ok=True),
             "also in an earlier split", "test is a copy of train")
    yield of("image", lambda r: copy_batches(r, "data_batch_1", CIFAR_FILES[:5]), "holds the images of",
             "five equal batches")
    yield of("image", lambda r: copy_batches(r, "data_batch_3", ["test_batch"]), "holds the images of",
             "test is a copy of a batch")
    yield of("image", blacken, "are empty|also in an earlier split", "one class is black")
    yield of("image", pickles_beside, "one of the two layouts", "both layouts in one folder")


def doubtful_situations(world):
    """Contents that leak, repeat or contradict: refused at the import, or doubted wherever a figure is shown."""
    for task, change, pattern, name in wrong_data.situations():
        root = world.copy(world.raw / task, task)
        change(root / task)
        yield f"{task}: {name}", pattern, train_words(task, "local", root, root / "run"), root / "run"
    root = world.copy(world.raw / "text", "text")
    for path in reviews_of(root, "train", "pos")[:2]:
        path.rename(path.with_name(path.name.split("_")[0] + "_1.txt"))
    pattern = "2 reviews have ratings of the other class"
    yield "data import, ratings", pattern, ["data", "import", "text", root / "text", "--out", root / "made"], None
    yield "data check, ratings", pattern, ["data", "check", "text", root / "made"], None
    must(*train_words("text", "local", root, root / "run"))
    yield "eval, ratings", pattern, ["eval", root / "run"], None
    yield "eval of other data, ratings", pattern, ["eval", root / "run", "--data", root / "made", "--other-data"], None
    yield "report, ratings", "data in doubt", ["report", root / "run"], None
    yield "report --card, ratings", pattern, ["report", root / "run", "--card"], None
    yield ("report lm-eval, ratings", "data in doubt", ["report", root / "run", "--format", "lm-eval"], None)
    root = world.root / "own size"
    yield ("listops: generated data of another size", "instead of 96,000",
           train_words("listops", "local", world.prepared, root), root)
    root = world.root / "asked size"
    yield ("listops: another size, as was asked", "instead of 96,000.*, as the settings request",
           train_words("listops", "local", root, f"{root} run", "task.num_train=40", "task.num_val=6",
                       "task.num_test=6"), None)
    yield "report of another size, as was asked", "of data of 40 training", ["report", f"{root} run"], None


def set_situations(world):
    """What shows in many examples: told by the import, as all doubts that it stores with the data."""
    for number, (task, write_source, pattern, name) in enumerate(wrong_sets.situations()):
        root = world.root / f"set{number}"
        sources = write_source(root / "source")
        yield f"{task}: {name}", pattern, ["data", "import", task, *sources, "--out", root / "made"], None
        shutil.rmtree(root)
    for setting in ("max_depth=7", "max_args=7", "max_length=700", "min_length=1200"):
        root = world.root / f"listops {setting}"
        must("data", "make", "listops", "--out", root / "made", "--train", 40, "--val", 20, "--test", 20, "--set",
             f"task.{setting}")
        must("data", "export", "listops", root / "made", "--out", root / "data")
        yield (f"listops: expressions of {setting}", "the task's settings|do not have between",
               train_words("listops", "local", root / "data", root / "run"), root / "run")
    yield ("listops: a learning rate of 0", "nothing is learned",
           train_words("listops", "local", world.prepared, world.root / "still", "train.learning_rate=0"),
           world.root / "still")


def place_situations(world):
    """Data lies twice, at another level, or came later than what was prepared of it."""
    for task in world.tasks:
        source = world.raw / task
        root = world.copy(source, "of mine/raw")
        yield (f"{task}: official files two levels deeper", "are deeper",
               train_words(task, "local", root, root / "run"), root / "run")
        shutil.copytree(source, root / "another")
        yield (f"{task}: two copies below", "another'",
               train_words(task, "local", root, root / "run"), root / "run")
        root = world.copy(source, task)
        shutil.copytree(source, root, dirs_exist_ok=True)
        yield (f"{task}: in the data folder and in {task}/", "is another copy, which is not read",
               train_words(task, "local", root, root / "run"), root / "run")
        other = "text" if task != "text" else "listops"
        yield (f"{task}: prepared data of {other} named", f"of task '{other}'",
               train_words(task, "local", world.prepared / other, world.root / f"{task} run"),
               world.root / f"{task} run")
    root = world.copy(world.raw / "text", ".")
    yield ("text: a folder within the data", "lies within",
           train_words("text", "local", root / "aclImdb/train", root / "run"), root / "run")
    root = world.copy(world.raw / "listops", ".")
    must(*train_words("listops", "local", root, root / "first"))
    path = root / "listops-1000/basic_test.tsv"
    times = path.stat()
    shutil.copy(root / "listops-1000/basic_val.tsv", path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    yield ("listops: files replaced that keep their times", "was changed after",
           train_words("listops", "local", root, root / "second"), root / "second")


def edited_records(world, own):
    """A record that was changed by hand; and runs that are done with other data."""
    for name, edit in (("config", lambda r: r["config"]["train"].update(batch_size=64)),
                       ("accuracy", lambda r: r["test"].update(accuracy=0.777))):
        world.count += 1
        path = world.root / f"edited{world.count}" / "record.json"
        write(path, (own / "record.json").read_text())
        change_record(path.parent, edit, keep_hash=True)
        for words in (["report"], ["report", "--card"], ["report", "--check"], ["reproduce"]):
            yield f"{' '.join(words)} a record with another {name}", EDITED, [*words, path.parent], None
    generated = world.root / "other data root"
    yield ("a run that is done goes on with other data", "is not the data",
           [*train_words("listops", "transformer", generated, own), "--go-on"], None)
    for root, pattern in ((generated, "is not the data"), (world.root / "nothing", "no data for listops")):
        yield (f"a run that is done is resumed with {root.name}", pattern,
               ["train", "--resume", own, "--data", root], None)
    world.count += 1
    run = world.root / f"steps{world.count}"
    shutil.copytree(own, run, symlinks=True)
    first, *_, last = sorted((run / "checkpoints").glob("step_*"))
    shutil.copy(first / "model.safetensors", last / "model.safetensors")
    yield "eval, weights of an earlier step", "those of its folder", ["eval", run], None


def weight_situations(world):
    """Weights, settings and records of one run in the place of another's."""
    data, own = world.prepared, world.root / "own"
    must(*train_words("listops", "transformer", data, own))
    others = {"model": ("listops", "local", ()), "seed": ("listops", "transformer", ("--seed", 1)),
              "learning rate": ("listops", "transformer", sets("train.learning_rate=0.01")),
              "steps": ("listops", "transformer", sets("train.steps=6"))}
    for name, (task, model, more) in others.items():
        must(*train_words(task, model, data, world.root / f"other {name}"), *more)
    generated = world.root / "other data root"
    must("data", "make", "listops", "--seed", 9, "--out", generated / "listops", "--train", 20, "--val", 6, "--test", 6)
    must(*train_words("listops", "transformer", generated, world.root / "other data"))
    for name in (*others, "data"):
        weights = world.root / f"other {name}" / "checkpoints/latest/model.safetensors"
        yield from weights_of_another(world, own, name, weights)
    yield from swapped_files(world, own)
    yield from edited_records(world, own)
    both = [own, world.root / "other data"]
    for words in (["report", *both], ["report", *both, "--format", "csv"]):
        yield f"{words[0]} {words[3:]} of seeds on different data", "data=", words, None
    yield ("report lm-eval of seeds on different data", "form 2 rows", ["report", *both, "--format", "lm-eval"], None)
    yield ("eval on data of another seed", "is not the data", ["eval", own, "--data", generated], None)
    yield ("eval on other data, as was asked", "OTHER DATA", ["eval", own, "--data", generated, "--other-data"], None)
    yield ("eval on other data that is not there", "no data for listops",
           ["eval", own, "--data", world.root / "nothing", "--other-data"], None)
    yield ("reproduce on other data", "is not the data", ["reproduce", own, "--data", generated], None)


def weights_of_another(world, own, name, weights):
    """One file of another run, named, and put in the place of the run's own."""
    pattern = "another run"
    for command in (["eval", own], ["analyze", "generalization", own], ["analyze", "controls", own],
                    ["analyze", "span", own], ["analyze", "rollout", own], ["analyze", "embeddings", own]):
        yield (f"{' '.join(map(str, command[:-1]))} with weights of another {name}", pattern,
               [*command, "--checkpoint", weights], None)
    yield (f"eval with weights of another {name}, as was asked", "ANOTHER RUN",
           ["eval", own, "--checkpoint", weights, "--foreign-weights"], None)
    world.count += 1
    run = world.root / f"mixed{world.count}"
    shutil.copytree(own, run, symlinks=True)
    for folder in run.glob("checkpoints/step_*"):
        for file in ("model", "optimizer"):
            shutil.copy(weights.parent / f"{file}.safetensors", folder / f"{file}.safetensors")
    change_record(run, stop)
    yield f"eval, weights of another {name} in the run's folder", pattern, ["eval", run], None
    yield f"resume, weights of another {name} in the run's folder", pattern, ["train", "--resume", run], None


def swapped_files(world, own):
    """config.toml or record.json of another run."""
    for name in ("config.toml", "record.json"):
        for other in ("model", "learning rate"):
            world.count += 1
            run = world.root / f"swapped{world.count}"
            shutil.copytree(own, run, symlinks=True)
            shutil.copy(world.root / f"other {other}" / name, run / name)
            for command in (["eval", run], ["train", "--resume", run], ["analyze", "generalization", run]):
                yield (f"{command[0]}, {name} of another {other}", "differs from the settings that the run started with|another run|metrics.jsonl says",
                       command, None)


EDITED = "changed after it was written"


def change_record(run, change, keep_hash=False):
    """Applies `change` to the record in the folder `run`, and takes out its hash, as if an earlier program had made it."""
    record = json.loads((run / "record.json").read_text())
    change(record)
    if not keep_hash:
        record.pop("record_hash", None)
    (run / "record.json").write_text(json.dumps(record))


def stop(record):
    """The record of a run that was stopped after its last step."""
    record.update(status="stopped", baselines={})
    record.pop("test", None)


def copy_of(world, run):
    world.count += 1
    copy = world.root / f"copy{world.count}"
    shutil.copytree(run, copy, symlinks=True)
    return copy


def put(folder, source):
    """A copy of one folder in the place of another, or of a link."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(source, folder)


def write_tensors(path, tensors, metadata=None):
    """A safetensors file of float32 tensors: name -> (shape, bytes)."""
    header, offset = ({"__metadata__": metadata} if metadata else {}), 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write(path, len(text).to_bytes(8, "little") + text + b"".join(data for _, data in tensors.values()))


def read_tensors(path):
    """Tensors as write_tensors takes them, and the metadata."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8:8 + size]), content[8 + size:]
    metadata = header.pop("__metadata__", None)
    return {name: (entry["shape"], data[slice(*entry["data_offsets"])]) for name, entry in header.items()}, metadata


def checkpoint_situations(world):
    """Checkpoints of the run itself in the wrong place, lost, or changed; and files of other programs."""
    own = world.root / "checkpoints"
    must(*train_words("listops", "transformer", world.prepared, own))
    best = json.loads((own / "record.json").read_text())["best_val"]["step"]
    wrong = {"best": 2 if best == 4 else 4, "latest": 2}
    for name, step in wrong.items():
        run = copy_of(world, own)
        put(run / "checkpoints" / name, own / f"checkpoints/step_{step}")
        word = "last" if name == "latest" else name
        for command in (["eval", run], ["analyze", "generalization", run], ["analyze", "embeddings", run]):
            for choice in (word, run / "checkpoints" / name, run / f"checkpoints/{name}/model.safetensors"):
                yield (f"{command[0]}: step {step} in the place of {name}, as {choice}", f"weights of step {step}",
                       [*command, "--checkpoint", choice], None)
        yield (f"report --check: step {step} in the place of {name}", f"weights of step {step}",
               ["report", run, "--check"], None)
    run = copy_of(world, own)
    put(run / "checkpoints/latest", own / "checkpoints/step_2")
    yield ("train --init-from a run whose latest is an earlier step", "weights of step 2",
           [*train_words("listops", "transformer", world.prepared, world.root / "from"), "--init-from", run], None)
    for lost in ("checkpoints", "checkpoints/step_2 checkpoints/step_4"):
        run = copy_of(world, own)
        for name in lost.split():
            shutil.rmtree(run / name)
        yield (f"train on, {lost} removed", "are missing", ["train", "--resume", run, "--set", "train.steps=8"], None)
        change_record(run, stop)
        yield f"resume, {lost} removed", "are missing", ["train", "--resume", run], None
        yield (f"go on, {lost} removed", "are missing",
               [*train_words("listops", "transformer", world.prepared, run), "--go-on"], None)
    tensors, metadata = read_tensors(own / "checkpoints/latest/model.safetensors")
    yield from foreign_files(world, own, tensors, metadata)
    run = copy_of(world, own)
    change_record(run, lambda record: record.update(weights_hash="0" * 32))
    yield "eval, the record has another hash of the weights", "record.json says", ["eval", run], None
    yield "report --check, another hash of the weights", "record.json says", ["report", run, "--check"], None
    yield ("a done run is asked for another test", "nothing left to train",
           ["train", "--resume", own, "--set", "train.test_examples=3"], None)


def foreign_files(world, own, tensors, metadata):
    """Files of weights without our metadata, or changed."""
    shapes = {}
    for name, (shape, _) in tensors.items():
        shapes.setdefault(str(shape), []).append(name)
    one, other = next(names for names in shapes.values() if len(names) > 1)[:2]
    swapped = tensors | {one: tensors[other], other: tensors[one]}
    zeros = {name: (shape, bytes(len(data))) for name, (shape, data) in tensors.items()}
    nans = tensors | {one: (tensors[one][0], b"\x00\x00\xc0\x7f" * (len(tensors[one][1]) // 4))}
    file = world.root / "files" / "x.safetensors"
    for name, content, said, pattern in (("no metadata", tensors, None, "did not write"),
                                         ("metadata of others", tensors, {"format": "pt"}, "did not write"),
                                         ("two tensors swapped", swapped, metadata, "hash"),
                                         ("all weights zero", zeros, metadata, "hash"),
                                         ("weights that are NaN", nans, metadata, "hash")):
        path = file.with_stem(name.replace(" ", "-"))
        write_tensors(path, content, said)
        for more in ([], ["--foreign-weights"]):
            yield f"eval of a file: {name} {more}", pattern, ["eval", own, "--checkpoint", path, *more], None
    for name, content, pattern in (("zero", zeros, "all weights are zero"), ("NaN", nans, "NaN or infinite")):
        path = file.with_stem(f"bare-{name}")
        write_tensors(path, content)
        yield (f"train --init-from weights that are {name}", pattern,
               [*train_words("listops", "transformer", world.prepared, world.root / f"from {name}"),
                "--init-from", path], None)
    cut = file.with_stem("cut")
    write(cut, (own / "checkpoints/latest/model.safetensors").read_bytes()[:-8])
    yield "eval of a file that was cut short", "cut", ["eval", own, "--checkpoint", cut], None


SUITE = """name = "s"
tasks = ["listops"]
models = ["transformer"]
seeds = [0]
preset = "small"
[set]
"""


def suite_file(world):
    settings = dict(setting.split("=") for setting in (*TINY, *LENGTHS["listops"], "train.warmup_steps=100"))
    lines = [f"{key} = {value if value.isdigit() else json.dumps(value)}\n" for key, value in settings.items()]
    path = world.root / "suite.toml"
    write(path, SUITE + "".join(lines))
    return path


def record_situations(world):
    """An edited record, logs and analyses of other runs, runs in the place of others."""
    suite, out = suite_file(world), world.root / "suite"
    must("suite", "run", suite, "--out", out, "--data", world.prepared, "--threads", 1)
    name = "listops-transformer-s0"
    settings = sets("train.warmup_steps=100")
    copies = world.root / "edited suite"
    shutil.copytree(out, copies, symlinks=True)
    run = copies / name
    change_record(run, lambda r: r["test"].update(accuracy=1 - r["test"]["accuracy"]), keep_hash=True)
    yield "train --resume of an edited record", EDITED, ["train", "--resume", run], None
    yield ("train --go-on of an edited record", EDITED,
           [*train_words("listops", "transformer", world.prepared, run), *settings, "--go-on"], None)
    yield "suite status of an edited record", "damaged", ["suite", "status", suite, "--out", copies], None
    yield from logs_of_others(world, out / name)
    yield from copied_runs(world, suite, out / name)


def logs_of_others(world, own):
    """metrics.jsonl and analyses that are not of the run."""
    other = world.root / "another seed"
    must(*train_words("listops", "transformer", world.prepared, other), "--seed", 3)
    log = (other / "metrics.jsonl").read_text()
    for name, text in (("another run", log), ("two runs", (own / "metrics.jsonl").read_text() + log)):
        run = copy_of(world, own)
        (run / "metrics.jsonl").write_text(text)
        for words in (["eval", run], ["train", "--resume", run], ["analyze", "convergence", run],
                      ["reproduce", run, "--data", world.prepared]):
            yield f"{words[0]}: metrics.jsonl of {name}", "metrics.jsonl says", words, None
        yield f"report: metrics.jsonl of {name}", "metrics.jsonl says", ["report", run], None
        change_record(run, stop)
        yield (f"resume of a stopped run: metrics.jsonl of {name}", "metrics.jsonl says",
               ["train", "--resume", run], None)
    must("analyze", "convergence", other)
    run = copy_of(world, own)
    put(run / "analysis", other / "analysis")
    yield "report: an analysis of another run", "it is of another run", ["report", run], None
    run = copy_of(world, other)
    (run / "analysis/convergence.json").rename(run / "analysis/span.json")
    yield "report: an analysis under another name", "it is of kind 'convergence'", ["report", run], None
    must("analyze", "generalization", other)
    run = copy_of(world, other)
    path = run / "analysis/generalization.json"
    analysis = json.loads(path.read_text())
    analysis["generalization"]["gap"] += 0.01
    path.write_text(json.dumps(analysis))
    yield "report: an edited analysis", EDITED, ["report", run], None


def copied_runs(world, suite, own):
    """The folder of one run in the place of another's."""
    other = world.root / "another seed"
    copies = world.root / "swapped suite"
    put(copies / own.name, other)
    yield "suite status: the folder of another run", "other settings", ["suite", "status", suite, "--out", copies], None
    yield "suite run: the folder of another run", "other settings", ["suite", "run", suite, "--out", copies], None
    run = copy_of(world, own)
    for name in ("record.json", "config.toml", "metrics.jsonl"):
        shutil.copy(other / name, run / name)
    yield "eval: all of another run but its weights", "another run", ["eval", run], None
    yield "report --check: all of another run but its weights", "another run", ["report", run, "--check"], None
    change_record(run, stop)
    yield "resume: all of another run but its weights", "another run", ["train", "--resume", run], None


def use_situations(world):
    """Files in the place of others, edited presets, and figures without what they depend on."""
    yield from wrong_use.situations(world, sys.modules[__name__])


def own_situations(world):
    """A user's own data: refused at the import, or doubted there."""
    yield from wrong_own.situations(world, sys.modules[__name__])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="only the groups with this word in their name; nothing recorded")
    arguments = parser.parse_args()
    count, wrong = 0, []
    with tempfile.TemporaryDirectory() as root:
        world = World(root)
        for situations in (raw_situations, prepared_situations, beside_situations, encoding_situations,
                           contents_situations, doubtful_situations, set_situations, place_situations,
                           weight_situations, checkpoint_situations, record_situations, use_situations,
                           own_situations):
            if arguments.only and arguments.only not in situations.__name__:
                continue
            before = count
            for name, pattern, words, out in situations(world):
                count += 1
                problem = verdict(lra(*words), pattern, out / "record.json" if out else None)
                if problem:
                    wrong.append(f"{name}: {problem}")
                    print("FAILED:", wrong[-1], file=sys.stderr, flush=True)
            print(f"{situations.__name__}: {count - before} situations", flush=True)
    believed = sum(": believed" in problem for problem in wrong)
    print(f"{count} situations, {believed} believed, {len(wrong) - believed} told badly")
    if not arguments.quick and not arguments.only:
        result.record(28, "wrong_input", {"situations": count, "believed": believed,
                                          "told badly": len(wrong) - believed},
                      "red" if wrong else "green", "LRA_PROGRAM=build/lra python3 tests/faults/wrong_input.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
