"""The trace of --profile follows Chrome's format, which Perfetto reads too, and shows every part of
a step."""
import collections
import json
import os
import pathlib
import subprocess
import tempfile

PROGRAM = os.environ["LRA_PROGRAM"]
STEPS, TRACED = 9, 3
PARTS = ("training step", "next batch", "forward", "backward", "update")


def lra(*words):
    return subprocess.run([PROGRAM, *map(str, words), "--threads", "1", "--quiet"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def train(run, data, *words):
    sets = [w for s in (f"train.steps={STEPS}", "train.eval_every=4", "train.batch_size=4",
                        "task.length=64") for w in ("--set", s)]
    return lra("train", "listops", "bigbird", "--data", data, "--out", run, *sets, *words)


def check_event(event):
    """Checks the requirements of the Trace Event Format for an event of its kind."""
    assert isinstance(event["name"], str) and event["ph"] in "XBEiIMsftbneC", event
    if event["ph"] == "M":
        return
    assert isinstance(event["ts"], (int, float)) and event["ts"] >= 0, event
    assert "pid" in event and "tid" in event, event
    if event["ph"] == "X":
        assert isinstance(event["dur"], (int, float)) and event["dur"] >= 0, event


def check_nesting(events):
    """Spans of one thread lie inside each other or apart, or no viewer can draw them."""
    threads = collections.defaultdict(list)
    for e in events:
        threads[(e["pid"], e["tid"])].append((e["ts"], e["ts"] + e["dur"]))
    for spans in threads.values():
        open_ends = []
        for begin, end in sorted(spans, key=lambda s: (s[0], -s[1])):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + 1, "spans cross"
            open_ends.append(end)


def check_trace(path):
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    for event in events:
        check_event(event)
    spans = [e for e in events if e["ph"] == "X" and isinstance(e["tid"], int) and
             e.get("cat") in ("cpu_op", "user_annotation")]
    check_nesting(spans)
    counts = collections.Counter(e["name"] for e in spans)
    for part in PARTS:
        assert counts[part] == TRACED, f"{part}: {counts[part]} times, not {TRACED}"
    assert any(name.startswith("lra::") for name in counts), "no operator of ours"
    return len(spans)


def check_mistakes(scratch, data):
    done = train(scratch / "bad", data, "--profile", scratch / "no/such/folder.json")
    assert done.returncode in (2, 74) and done.stderr.count("\n") == 1, done.stderr
    assert not (scratch / "bad").exists(), "a run that never began left a folder"


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        data, run, plain = scratch / "data", scratch / "run", scratch / "plain"
        lra("data", "make", "listops", "--train", 40, "--val", 8, "--test", 8,
            "--out", data / "listops")
        assert train(plain, data).returncode == 0
        done = train(run, data, "--profile", scratch / "trace.json", "--profile-steps", TRACED)
        assert done.returncode == 0, done.stderr
        last = "checkpoints/latest/model.safetensors"
        assert (run / last).read_bytes() == (plain / last).read_bytes(), "watching changed the run"
        print(f"ok: {check_trace(scratch / 'trace.json')} spans, the same weights as unwatched")
        # A run that ends early writes what it has.
        assert train(scratch / "long", data, "--profile", scratch / "short.json",
                     "--profile-steps", 100).returncode == 0
        json.loads((scratch / "short.json").read_text())
        check_mistakes(scratch, data)
        print("ok: a short run, a folder that is missing")


main()
