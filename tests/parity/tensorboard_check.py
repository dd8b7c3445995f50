"""TensorBoard's own reader gets from a run's event files what metrics.jsonl says, histograms of every
parameter, and the settings for its HPARAMS page."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
except ImportError:
    print("skipped: no tensorboard package")
    sys.exit(77)

PROGRAM = os.environ["LRA_PROGRAM"]


def lra(*words):
    subprocess.run([PROGRAM, *map(str, words), "--threads", "1", "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)


def expected_scalars(run):
    """tag -> [(step, value)], from metrics.jsonl."""
    scalars = {}
    for text in (run / "metrics.jsonl").read_text().splitlines():
        line = json.loads(text)
        step, kind = line.pop("step"), line.pop("kind")
        line.pop("examples", None)
        for name, value in line.items():
            scalars.setdefault(f"{kind}/{name}", []).append((step, float(numpy.float32(value))))
    return scalars


def read_scalars(run):
    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)]
            for tag in events.Tags()["scalars"]}


def weights_of(run, step):
    """name -> float32 array, from a checkpoint."""
    content = (run / f"checkpoints/step_{step}/model.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__")
    return {name: numpy.frombuffer(content[8 + size:], numpy.float32,
                                   (e["data_offsets"][1] - e["data_offsets"][0]) // 4,
                                   e["data_offsets"][0]) for name, e in header.items()}


def check_histograms(run):
    """Those of the last step hold what its checkpoint holds."""
    events = EventAccumulator(str(run), size_guidance={"histograms": 0})
    events.Reload()
    weights = weights_of(run, 9)
    tags = events.Tags()["histograms"]
    assert sorted(tags) == sorted([f"{kind}/{name}" for name in weights
                                   for kind in ("weights", "gradients")]), tags
    for name, values in weights.items():
        found = events.Histograms(f"weights/{name}")
        assert [e.step for e in found] == [3, 6, 9], f"{name}: {[e.step for e in found]}"
        h = found[-1].histogram_value
        assert h.num == values.size and sum(h.bucket) == values.size, name
        assert h.min == values.min() and h.max == values.max(), name
        assert numpy.isclose(h.sum, values.astype(float).sum(), rtol=1e-9, atol=1e-9), name
        counts, _ = numpy.histogram(values.astype(float), [-numpy.inf, *h.bucket_limit])
        assert counts.tolist() == list(h.bucket), f"{name}: buckets"
    return len(tags)


def check_settings(run):
    """The HPARAMS page lists the run with its settings, its figures and how it ended."""
    events = EventAccumulator(str(run))
    events.Reload()
    parts = {tag: plugin_data_pb2.HParamsPluginData.FromString(
        events.SummaryMetadata(tag).plugin_data.content)
        for tag in events.PluginTagToContent("hparams")}
    start = parts["_hparams_/session_start_info"].session_start_info
    values = {name: getattr(value, value.WhichOneof("kind"))
              for name, value in start.hparams.items()}
    assert values["train.steps"] == 9 and values["run.model"] == "linformer", values
    assert values["train.trim_padding"] is True and values["mixer.rank"] > 0, values
    experiment = parts["_hparams_/experiment"].experiment
    assert {info.name for info in experiment.hparam_infos} == set(values)
    assert "val/accuracy" in [info.name.tag for info in experiment.metric_infos]
    end = parts["_hparams_/session_end_info"].session_end_info
    assert end.status == api_pb2.STATUS_SUCCESS and end.end_time_secs >= start.start_time_secs
    return len(values)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        run, data = pathlib.Path(scratch) / "run", pathlib.Path(scratch) / "data"
        lra("data", "make", "listops", "--train", 40, "--val", 8, "--test", 8,
            "--out", data / "listops")
        settings = ["train.steps=9", "train.log_every=2", "train.eval_every=4",
                    "train.batch_size=4", "task.length=64"]
        lra("train", "listops", "linformer", "--data", data, "--out", run, "--histograms", 3,
            *[word for s in settings for word in ("--set", s)])
        expected, found = expected_scalars(run), read_scalars(run)
        assert sorted(found) == sorted(expected), f"tags {sorted(found)}, not {sorted(expected)}"
        for required in ("train/loss", "train/learning_rate", "val/accuracy", "test/accuracy"):
            assert required in found, f"no {required}"
        assert [step for step, _ in found["train/loss"]] == [2, 4, 6, 8]
        assert [step for step, _ in found["val/loss"]] == [4, 8, 9]
        for tag, values in expected.items():
            assert found[tag] == values, f"{tag}: {found[tag]}, not {values}"
        print(f"ok: {len(found)} tags, {sum(map(len, found.values()))} values, "
              f"{check_histograms(run)} histograms, {check_settings(run)} settings")


main()
