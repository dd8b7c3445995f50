"""Writes run records and analyses for the test of the report page: made up, the same every time.

    records.py FOLDER [--hostile]

--hostile: one run whose every text is markup, terminal escapes and a name without end.
"""
import json
import math
import pathlib
import struct
import sys
import tomllib
import zlib

MODELS = {
    "transformer": "Transformer", "local": "Local Attention", "sparse_transformer": "Sparse Transformer",
    "longformer": "Longformer", "linformer": "Linformer", "reformer": "Reformer",
    "sinkhorn": "Sinkhorn Transformer", "synthesizer": "Synthesizer", "bigbird": "BigBird",
    "linear_transformer": "Linear Transformer", "performer": "Performer",
}
TASKS = {"listops": ("Long ListOps", 36, 2000), "text": ("Byte-level text", 64, 25000),
         "retrieval": ("Document retrieval", 56, 17437), "image": ("Image", 42, 10000),
         "pathfinder": ("Pathfinder", 71, 20000)}
UNTIMED = ("sparse_transformer", "longformer")
LENGTHS = (1024, 2048, 3072, 4096)
CONFIGS = pathlib.Path(__file__).parents[3] / "configs"
SECTIONS = ("task", "model", "mixer", "train", "groups")
IDENTITY = ("task", "task_title", "task_version", "model", "model_title", "preset", "seed", "config_hash",
            "data_hash", "fingerprint")
HOSTILE = ("</script><script>window.harmed = 1</script><img src=x onerror='window.harmed = 2'>"
           "\"'&|`[x](javascript:harm) \x1b]0;title\x07\x1b[2J\u202e" + "endless" * 60)


def provenance():
    return {
        "lra_version": "0.1.0", "git_revision": "0123456789abcdef0123456789abcdef01234567",
        "git_dirty": "", "compiler": "g++ 12.2.0", "torch_version": "2.13.0",
        "processor": "Test processor", "isa": "avx512", "device": "cpu", "threads": 2,
        "kernels": {"linear": "onednn"}, "host_os": "Linux", "started_utc": "2026-01-01T00:00:00Z",
        "finished_utc": "2026-01-01T01:00:00Z", "command": ["lra", "train"],
    }


def evaluation(step, accuracy, examples):
    return {"step": step, "loss": 1.0, "accuracy": round(accuracy * examples) / examples,
            "num_examples": examples}


def settings(task, model):
    """Those of the preset paper, as far as its files name them, validated 20 times on 2,000 examples."""
    merged = {section: {} for section in SECTIONS}
    file = tomllib.loads((CONFIGS / "models" / f"{model}.toml").read_text(encoding="utf-8"))
    preset = file.get("paper", {})
    for layer in (tomllib.loads((CONFIGS / "tasks" / f"{task}.toml").read_text(encoding="utf-8"))["paper"],
                  file, preset, preset.get(task, {})):
        for section in SECTIONS:
            merged[section] |= layer.get(section, {})
    merged["train"] |= {"eval_every": merged["train"]["steps"] // 20, "eval_examples": 2000}
    return {"run": {"task": task, "model": model, "preset": "paper", "seed": 0}} | merged


def run(task, model, accuracy):
    title, _, examples = TASKS[task]
    config = settings(task, model)
    every, batch = config["train"]["eval_every"], config["train"]["batch_size"]
    steps = 20 * every
    curve = [evaluation(step, accuracy * (1 - 0.5 * math.exp(-step / (6 * every))), 2000)
             for step in range(every, steps + 1, every)]
    return {
        "schema": 1, "kind": "train", "status": "done", "failure": "", "task": task,
        "task_title": title, "task_version": 1, "model": model, "model_title": MODELS[model],
        "preset": "paper", "seed": 0, "validation": "own", "checkpoint": "last",
        "data_source": "imported", "data_hash": "d" * 32, "config_hash": "c" * 32,
        "weights_hash": f"{task}-{model}", "fingerprint": f"{task}-{model}", "num_parameters": 100000,
        "base_parameters": 100000, "division": "apples-to-apples", "division_reason": "",
        "published_setting": True,
        "steps": steps, "planned_steps": steps, "preset_steps": steps,
        "test_split_examples": examples, "examples": steps * batch, "tokens": 1000 * steps * batch,
        "train_seconds": steps / 5, "total_seconds": steps / 4, "train_tokens_per_s": 5000.0 * batch,
        "peak_resident_bytes": 1000000000, "test": evaluation(steps, accuracy, examples),
        "val": curve[-1], "best_val": curve[-1],
        "val_curve": curve, "measurements": [],
        "baselines": {"majority": evaluation(0, 0.5, examples)["accuracy"]},
        "config": config,
        "provenance": provenance(),
    }


def bench(mode, model, place):
    record = run("text", model, 0.5)
    for key in ("test", "val", "best_val"):
        record.pop(key)
    record.update(kind="bench", data_hash="", steps=0, val_curve=[], baselines={}, measurements=[
        {"mode": mode, "dtype": "fp32", "length": length, "batch": 32,
         "steps_per_s": speed, "tokens_per_s": 32 * length * speed,
         "slowest_steps_per_s": 0.99 * speed, "fastest_steps_per_s": 1.01 * speed, "windows": 5,
         "peak_resident_bytes": 1000000000, "model_flops": 10**9, "gemm_flops_per_s": 1e11,
         "peak_tensor_bytes": int(2e8 * (1 + (8 - place) * length / 4096))}
        for length, speed in ((length, (1 + place) * 1024 / length) for length in LENGTHS)])
    return record


def png(width, height):
    """A gray ramp."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + bytes((x * 4 + y) % 256 for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def analysis(kind, task, model, result):
    return {
        "schema": 1, "kind": kind, "task": task, "task_title": TASKS[task][0], "task_version": 1,
        "model": model, "model_title": MODELS[model], "preset": "paper", "seed": 0,
        "config_hash": "c" * 32, "data_hash": "d" * 32, "fingerprint": f"{task}-{model}",
        "checkpoint": "last", "split": "val",
        "num_examples": 1000, "choices": {"CLS": "left out"}, kind: result,
        "provenance": provenance(),
    }


def span(mean, length):
    figures = {"mean": mean, "deviation": 10.0, "uniform": length / 3, "layers": [mean, mean],
               "heads": [[mean], [mean]]}
    return {"tokens": figures, "mean_length": float(length), "least_row_sum": 1.0,
            "largest_row_sum": 1.0}


def rollout_example(index, label):
    return {"index": index, "label": label, "prediction": 1, "picture": f"rollout-{index}.png",
            "entropy": 0.9, "bright_weight": 0.3, "bright_pixels": 0.1,
            "top": [{"position": 5, "text": "gray 200", "weight": 0.1}]}


def analyses():
    """(task, model, kind) -> what was found."""
    found = {}
    for place, (task, (_, _, _)) in enumerate(TASKS.items()):
        found[task, "transformer", "span"] = span(100.0 + 50 * place, 1000 + 500 * place)
    for place, model in enumerate(MODELS):
        train, test = 0.7 + 0.02 * place, 0.4
        found["image", model, "generalization"] = {
            "train": evaluation(5000, train, 45000), "test": evaluation(5000, test, 10000),
            "gap": train - test, "gap_error": 0.005}
        found["image", model, "convergence"] = {
            "eval_every": 250, "last_step": 5000, "best": evaluation(4000, 0.4, 2000),
            "thresholds": [{"accuracy": 0.3, "step": 500 + 250 * place, "seconds": 60.0},
                           {"accuracy": 0.35}]}
    for model, right in (("transformer", 900), ("local", 700)):
        found["listops", model, "breakdown"] = {
            "score": evaluation(5000, right / 2000, 2000), "macro_f1": 0.4,
            "classes": [{"name": str(c), "num_examples": 1000, "num_predicted": 1000,
                         "num_correct": right // 2 + 50 - 100 * c} for c in range(2)],
            "confusion": [], "correct": f"{2**right - 1:0500x}",
            "factors": [{"name": "depth", "groups": [
                {"name": str(d), "num_examples": 500, "num_correct": right // (2 * d)}
                for d in range(1, 5)]}]}
    found["image", "transformer", "embeddings"] = {
        "vocabulary": 256, "positions": 1024, "width": 64, "matrices": "embeddings.safetensors",
        "token_picture": "embeddings-token.png", "position_picture": "embeddings-position.png",
        "token_min": -0.5, "position_min": -0.4, "by_intensity": [0.9, 0.8, 0.7],
        "intensity_correlation": -0.6, "by_distance": [0.5, 0.4], "vertical": [0.8, 0.7],
        "horizontal": [0.5, 0.4]}
    found["pathfinder", "transformer", "rollout"] = {
        "examples": [rollout_example(3, 1), rollout_example(4, 0)]}
    return found


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")


def write_fixed(folder):
    for task, (_, level, _) in TASKS.items():
        for place, model in enumerate(MODELS):
            write(folder / f"{task}-{model}" / "record.json",
                  run(task, model, (level + (place * 7) % 11 - 4) / 100))
    for place, model in enumerate(model for model in MODELS if model not in UNTIMED):
        for mode in ("train", "infer"):
            write(folder / f"bench-{mode}-{model}" / "record.json", bench(mode, model, place))
    for (task, model, kind), result in analyses().items():
        beside = folder / f"{task}-{model}" / "analysis"
        run_record = json.loads((beside.parent / "record.json").read_text(encoding="utf-8"))
        write(beside / f"{kind}.json", analysis(kind, task, model, result) | of_run(run_record))
        for name in ("rollout-3.png", "rollout-4.png", "embeddings-token.png",
                     "embeddings-position.png"):
            if name.startswith(kind):
                (beside / name).write_bytes(png(64, 32))


def of_run(record):
    """What an analysis repeats of the record of its run, whose last weights it read."""
    return {key: record[key] for key in IDENTITY} | {"step": record["steps"]}


def hostile(value):
    """The same document with every text of it replaced."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [hostile(item) for item in value]
    if isinstance(value, dict):
        return {HOSTILE if key in ("linear", "torch", "CLS") else key: hostile(item)
                for key, item in value.items()}
    return value


def write_hostile(folder):
    for place, seen in enumerate((run("text", "performer", 0.65), bench("train", "transformer", 1))):
        record = hostile(seen)
        record |= {key: seen[key] for key in ("kind", "status", "failure", "data_hash", "fingerprint")}
        if record["baselines"]:
            record["baselines"][HOSTILE] = 0.5
        record["python"] = hostile({"source_sha256": "a" * 64, "packages": {"torch": "2"}})
        record["provenance"] |= {key: seen["provenance"][key]
                                 for key in ("git_dirty", "started_utc", "finished_utc")}
        write(folder / str(place) / "record.json", record)
    for kind, result in (("span", span(100.0, 1000)),
                         ("rollout", {"examples": [rollout_example(3, 1)]})):
        record = hostile(analysis(kind, "text", "transformer", result))
        run_record = json.loads((folder / "0" / "record.json").read_text(encoding="utf-8"))
        record |= of_run(run_record) | {"kind": kind}
        if kind == "rollout":
            record["rollout"]["examples"][0]["picture"] = "rollout-3.png"
        write(folder / "0" / "analysis" / f"{kind}.json", record)
    (folder / "0" / "analysis" / "rollout-3.png").write_bytes(b"\x89PNG no picture <script>")


if __name__ == "__main__":
    (write_hostile if "--hostile" in sys.argv[2:] else write_fixed)(pathlib.Path(sys.argv[1]))
