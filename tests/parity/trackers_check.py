"""The scripts of docs/trackers.md bring a run into Weights & Biases and MLflow, offline, as its files say
it. Each part is skipped without the package."""
import importlib.util
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = os.environ["LRA_PROGRAM"]
SCRIPTS = dict(re.findall(r"^```python (\S+)\n(.*?)^```$", (ROOT / "docs/trackers.md").read_text(),
                          re.MULTILINE | re.DOTALL))
SETTINGS = ("model.layers=1", "model.embed_dim=16", "model.qkv_dim=16", "model.mlp_dim=16",
            "train.steps=6", "train.eval_every=3", "train.log_every=1", "train.batch_size=4")


def trained(folder, *more, code=0):
    """A run of six steps with the settings `more`, which ends with this exit code."""
    data, run = folder / "data", folder / "runs" / "tiny"
    subprocess.run([PROGRAM, "data", "make", "listops", "--train", "40", "--val", "10", "--test", "10",
                    "--out", data / "listops", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    sets = [word for setting in (*SETTINGS, *more) for word in ("--set", setting)]
    ended = subprocess.run([PROGRAM, "train", "listops", "transformer", "--data", data, "--out", run,
                            "--threads", "1", "--quiet", *sets], stdout=subprocess.DEVNULL)
    assert ended.returncode == code, ended.returncode
    return run


def run_script(name, run, folder, **variables):
    path = folder / name
    path.write_text(SCRIPTS[name])
    ended = subprocess.run([sys.executable, path, run], cwd=folder, capture_output=True, text=True,
                           env={**os.environ, **variables})
    assert ended.returncode == 0, ended.stdout + ended.stderr


def expected(run):
    """tag -> {step: value}, from metrics.jsonl."""
    found = {}
    for text in (run / "metrics.jsonl").read_text().splitlines():
        line = json.loads(text)
        step, kind = line.pop("step"), line.pop("kind")
        for key, value in line.items():
            found.setdefault(f"{kind}/{key}", {})[step] = value
    return found


def check_mlflow(run, folder):
    import mlflow

    uri = f"sqlite:///{folder}/mlflow.db"
    for _ in range(2):  # the second time adds nothing
        run_script("to_mlflow.py", run, folder, MLFLOW_TRACKING_URI=uri)
    mlflow.set_tracking_uri(uri)
    [found] = mlflow.search_runs(search_all_experiments=True, output_format="list")
    record = json.loads((run / "record.json").read_text())
    assert found.data.params["train.steps"] == "6"
    assert found.data.tags["data_hash"] == record["data_hash"]
    assert found.data.metrics["test/accuracy"] == record["test"]["accuracy"]
    client = mlflow.MlflowClient()
    for tag, values in expected(run).items():
        metrics = client.get_metric_history(found.info.run_id, tag)
        assert len(metrics) == len(values), tag
        history = {m.step: m.value for m in metrics}
        assert history == values, (tag, history, values)
    assert found.info.status == "FINISHED", found.info.status
    return "MLflow has every metric at its step"


def check_mlflow_of_diverged(run, folder):
    import mlflow

    uri = f"sqlite:///{folder}/mlflow.db"
    run_script("to_mlflow.py", run, folder, MLFLOW_TRACKING_URI=uri)
    mlflow.set_tracking_uri(uri)
    [found] = mlflow.search_runs(search_all_experiments=True, output_format="list",
                                 filter_string="metrics.`train/loss` > 0")
    assert found.info.status == "FAILED", found.info.status
    assert math.isfinite(found.data.metrics["train/loss"])
    return "MLflow shows a diverged run as failed, with its last finite loss"


def log_entries(content):
    """The entries of LevelDB's log format: blocks of 32 KiB; crc, size, type and data of each part, where
    the types are 1 whole, 2 first, 3 middle, 4 last."""
    block, at, entry = 1 << 15, 7, b""  # behind the header of the file
    while at < len(content):
        if block - at % block < 7:
            at += block - at % block
            continue
        size = int.from_bytes(content[at + 4:at + 6], "little")
        kind = content[at + 6]
        entry += content[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield entry
            entry = b""


def wandb_records(folder):
    """The records of the only offline run."""
    from wandb.proto import wandb_internal_pb2

    [path] = folder.glob("wandb/offline-run-*/*.wandb")
    for entry in log_entries(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(entry)
        yield record


def check_wandb(run, folder):
    run_script("to_wandb.py", run, folder, WANDB_MODE="offline", WANDB_SILENT="true")
    found, config = {}, {}
    for record in wandb_records(folder):
        for item in record.run.config.update:
            config[item.key or ".".join(item.nested_key)] = json.loads(item.value_json)
        values = {item.key or "/".join(item.nested_key): json.loads(item.value_json)
                  for item in record.history.item}
        for tag, value in values.items():
            if not tag.startswith("_"):
                found.setdefault(tag, {})[record.history.step.num] = value
    assert config["train"]["steps"] == 6, config
    assert found == expected(run), (found, expected(run))
    return "Weights & Biases has every metric at its step"


def main():
    checks = {name: check for name, check in (("mlflow", check_mlflow), ("wandb", check_wandb))
              if importlib.util.find_spec(name)}
    if not checks:
        print("skipped: neither wandb nor mlflow")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        run = trained(pathlib.Path(scratch))
        for name, check in checks.items():
            folder = pathlib.Path(scratch, name)
            folder.mkdir()
            print("ok:", check(run, folder))
        if "mlflow" in checks:
            folder = pathlib.Path(scratch, "diverged")
            folder.mkdir()
            diverged = trained(folder, "train.learning_rate=1e30", code=4)
            print("ok:", check_mlflow_of_diverged(diverged, folder))


if __name__ == "__main__":
    main()
