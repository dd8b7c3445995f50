"""Situations of wrong_input.py in which files are named in the place of others, presets are edited, and figures are
shown without what they depend on.

`situations(world, tools)` yields (name, pattern, words, out) as the groups there do; `tools` is that module."""
import json
import pathlib
import re
import shutil

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n"


def edited_presets(world, tools):
    """configs/ that differ from those of the program."""
    configs = world.root / "configs"
    shutil.copytree(pathlib.Path(__file__).parents[3] / "configs", configs)
    with (configs / "tasks/listops.toml").open("a") as file:
        file.write("# one more line\n")
    with (configs / "literature.json").open("a") as file:
        file.write("\n")
    run = world.root / "edited presets"
    for folder, pattern in ((configs, ""), (world.root, "LRA_CONFIGS"), (world.root / "none", "LRA_CONFIGS")):
        tools.ENVIRONMENT["LRA_CONFIGS"] = str(folder)
        yield ("train with edited presets", pattern or "configs/tasks/listops.toml is not the file",
               tools.train_words("listops", "local", world.prepared, run), None if pattern else run)
        yield ("model compare with edited presets", pattern or "free-for-all: configs/tasks/listops.toml",
               ["model", "compare", "listops", "local"], None)
        yield ("list results of an edited file", pattern or "literature.json.*unverified", ["list", "results"], None)
    del tools.ENVIRONMENT["LRA_CONFIGS"]
    yield "report of a run with edited presets", "configs/tasks/listops.toml", ["report", run, "--card"], None


def outputs_over_inputs(world, tools, run):
    """A name of the user's is that of a file of another kind."""
    data = world.copy(world.prepared / "image", "image")
    for name, words, victim in (
            ("report", ["report", run, "--out"], run / "record.json"),
            ("report --format html", ["report", run, "--format", "html", "--out"], run / "config.toml"),
            ("data show", ["data", "show", "image", data / "image", "--png"], data / "image/manifest.json"),
            ("train --profile", [*tools.train_words("listops", "local", world.prepared, world.root / "profiled"),
                                 "--profile"], data / "image/manifest.json")):
        yield f"{name} over {victim.name}", f"{victim.name}: exists and is not", [*words, victim], None


def exported(world, tools, run):
    """Weights of one step next to the record, and the accuracy, of another."""
    out = world.root / "exported"
    tools.must("export", run, "--checkpoint", "step_2", "--out", out)
    if "value: null" not in (out / "README.md").read_text():
        raise RuntimeError("the card of other weights has an accuracy")
    yield "eval of exported weights", r"weights of step 2\n", ["eval", out, "--data", world.prepared], None
    yield "eval of other weights than the exported", "only the weights of step 2", ["eval", out, "--checkpoint", "last"], None
    yield "report --check of exported weights", "which the accuracy in record.json is of", ["report", out, "--check"], None
    yield "resume of an exported folder", "nothing to resume", ["train", "--resume", out], None
    copy = tools.copy_of(world, run)
    yield "eval of a copy", "Transformer on Long ListOps, preset small", ["eval", copy, "--data", world.prepared], None


def other_files(world, tools, run):
    """Files of other programs, other folders, and pointers in the place of files."""
    files = world.root / "other files"
    tools.write(files / "x.pt", b"PK\3\4" + bytes(60))
    tools.write(files / "lfs.safetensors", LFS)
    tools.write(files / "folder/notes.txt", "x")
    start = tools.train_words("listops", "transformer", world.prepared, world.root / "started")
    for name, pattern in (("x.pt", "zip archive, as torch.save"), ("lfs.safetensors", "pointer of Git LFS"),
                          ("folder", "is a folder without record.json")):
        yield f"train --init-from {name}", pattern, [*start, "--init-from", files / name], None
    yield "eval --checkpoint x.pt", "zip archive", ["eval", run, "--checkpoint", files / "x.pt"], None
    yield "eval of a folder of checkpoints", "the run's folder", ["eval", run / "checkpoints/step_2"], None
    yield "reproduce config.toml", "not the record of a run", ["reproduce", run / "config.toml"], None
    tensors, _ = tools.read_tensors(run / "checkpoints/latest/model.safetensors")
    half = {name: (shape, data[:len(data) // 2]) for name, (shape, data) in tensors.items()}
    path = files / "half.safetensors"
    tools.write_tensors(path, half)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"F32"', b'"F16"'))
    yield "train --init-from float16", "is F16; expected F32", [*start, "--init-from", path, "--init-partial"], None
    for task, name in (("image", "cifar-10-batches-bin/data_batch_2.bin"), ("retrieval", "new_aan_pairs.test.tsv"),
                       ("text", "aclImdb/train/pos/0_7.txt")):
        root = world.copy(world.raw / task, task)
        tools.write(root / task / name, LFS)
        yield (f"{task}: a pointer of Git LFS", "pointer of Git LFS",
               tools.train_words(task, "local", root, root / "run"), root / "run")


def silent_settings(world, tools, run):
    """Settings without effect, cut examples, schedules that start over."""
    start = tools.train_words("listops", "local", world.prepared, world.root / "short")
    yield "examples that are cut", "task.length=16 cuts", [*start, *tools.sets("task.length=16")], world.root / "short"
    for setting in ("train.mask_fraction=0.3", "train.masked_loss=l1"):
        yield (f"{setting} without masking", "expected train.objective=masked",
               tools.train_words("listops", "local", world.prepared, world.root / "masked", setting), None)
    cosine = world.root / "cosine"
    tools.must(*tools.train_words("listops", "local", world.prepared, cosine, "train.schedule=cosine"))
    yield ("more steps of a cosine", "the learning rate rises from .* the cosine now spans 40",
           ["train", "--resume", cosine, "--set", "train.steps=40"], cosine)
    yield "a seed that is not whole", "not a whole number", [*start, "--seed", "1.0"], None


def figures_in_doubt(world, tools):
    """Analyses of data in doubt, and runs of others in a suite's folder."""
    root = world.copy(world.raw / "text", "text")
    for path in tools.reviews_of(root, "train", "pos")[:2]:
        path.rename(path.with_name(path.name.split("_")[0] + "_1.txt"))
    run = root / "run"
    tools.must(*tools.train_words("text", "local", root, run))
    pattern = "data in doubt: 2 reviews have ratings of the other class"
    for kind in ("generalization", "controls"):
        yield f"analyze {kind} of data in doubt", pattern, ["analyze", kind, run], None
        analysis = json.loads((run / f"analysis/{kind}.json").read_text())
        if not any(re.search(pattern, text) for text in analysis.get("warnings", [])):
            raise RuntimeError(f"analysis/{kind}.json lacks the doubt")
    yield "report of analyses of data in doubt", "†: of data in doubt", ["report", run], None
    suite, out = tools.suite_file(world), world.root / "shared folder"
    shutil.copytree(run, out / "text-local-s0", symlinks=True)
    yield ("suite run: a run of others in its folder", "left out; it is not a run of this suite",
           ["suite", "run", suite, "--out", out, "--data", world.prepared, "--threads", 1], None)


def missing_and_edited(world, tools, run):
    """A run that is not done, a checkpoint of another name, and a measurement that another one would replace."""
    stopped = tools.copy_of(world, run)
    tools.change_record(stopped, lambda r: r.update(status="running", planned_steps=9000))
    yield "eval of a run that is not done", "of 9,000: the run is running", ["eval", stopped, "--data", world.prepared], None
    yield ("eval --checkpoint of another name", "expected one of 'best', 'last'",
           ["eval", run, "--checkpoint", "bset", "--data", world.prepared], None)
    bench = ["bench", "--task", "listops", "--preset", "small", "--models", "local", "--lengths", "64", "--windows", "1",
             "--window-seconds", "0", "--threads", "1", "--out", world.root / "measured"]
    tools.must(*bench, "--batch", "2")
    for words, pattern in ((["--batch", "4"], "with batch 2"),
                           (["--batch", "2", "--set", "model.layers=1"], "with other settings")):
        yield f"bench {words} over another measurement", f"holds a measurement {pattern}", [*bench, *words], None


def measured_data_in_doubt(world, tools):
    rows = world.root / "padded.jsonl"
    rows.write_text("".join(json.dumps({"tokens": [i + 2] * (20 + i % 9) + [0] * (20 - i % 9), "label": i % 2}) + "\n"
                            for i in range(120)))
    data = world.root / "padded"
    tools.must("data", "import", "custom", rows, "--out", data)
    yield ("bench of data that are padded", "is it padding",
           ["bench", "--task", "custom", "--data", data, "--preset", "small", "--models", "local", "--real-batch",
            "--batch", "2", "--windows", "1", "--window-seconds", "0", "--threads", "1"], None)


def situations(world, tools):
    run = world.root / "used"
    tools.must(*tools.train_words("listops", "transformer", world.prepared, run))
    yield from edited_presets(world, tools)
    yield from outputs_over_inputs(world, tools, run)
    yield from exported(world, tools, run)
    yield from other_files(world, tools, run)
    yield from silent_settings(world, tools, run)
    yield from missing_and_edited(world, tools, run)
    yield from measured_data_in_doubt(world, tools)
    yield from figures_in_doubt(world, tools)
