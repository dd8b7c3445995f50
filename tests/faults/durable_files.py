"""A trace of system calls: is every durable file written, flushed, renamed, and its folder flushed?

    LRA_PROGRAM=build/lra python3 tests/faults/durable_files.py [--quick]

strace follows `lra train` (a run, and one that is stopped and resumed), `lra data make`, `import` and
`export`, and `lra report`. From the trace follows what a crash of the machine could have taken at every
moment (shared/call_trace.py). No file or folder may get its final name before all below it is flushed;
no checkpoint may get its name before the metrics up to it are, none may be removed before the newer one
is safe; and when the program ends nothing may be at risk but lock files. --quick does the same and
records nothing; the full form writes docs/results/scorecard/10-durable.json.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import hostile_archives
from shared import call_trace
from shared import hostile_archives as archives
from shared import result
from shared.tiny_run import ENVIRONMENT, PROGRAM, Run, make_data, report

NOT_FINAL = re.compile(r"\.tmp\.\d+\.\d+$|\.tmp$|\.partial$")
# Files for messages and turns only, and folders that are being removed.
NO_PROMISE = re.compile(r"\.(lock|turn)$|\.partial(/|$)")


def trace(words, root, expected=0):
    """Runs a command; what was at risk when, and the number of calls."""
    storage, log = call_trace.Storage(root), root.parent / "trace"
    done = subprocess.run(["strace", "-f", "-y", "-s", "0", "-e", f"trace={call_trace.CALLS}", "-o", str(log),
                           *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT,
                          check=False)
    if done.returncode != expected:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.decode()}")
    calls = call_trace.follow(log.read_text(encoding="utf-8", errors="replace"), storage)
    return storage, calls


def judge(storage, root):
    """Calls that came too late or not at all."""
    problems = []
    for old, new, risk, everything in storage.renames:
        if NOT_FINAL.search(new):
            if re.search(r"/step_\d+$", old) and any("/step_" in path and not NO_PROMISE.search(path)
                                                     for path in everything):
                problems.append(f"{old} is removed while {everything} are not safe")
            continue
        if risk:
            problems.append(f"{new} gets its name before {risk} are flushed")
        logs = [path for path in everything if "metrics.jsonl" in path or "tfevents" in path]
        if re.search(r"/step_\d+$", new) and logs:
            problems.append(f"{new} gets its name before {logs} are flushed")
    for path in root.rglob("*"):
        if storage.at_risk(str(path)) and not NO_PROMISE.search(str(path)):
            problems.append(f"{path} is not safe at the end")
    return problems


def commands(scratch):
    """(name, words, root, exit code), each in a fresh folder."""
    data = make_data(scratch)
    tiny = {"train__steps": 6, "train__checkpoint_every": 2, "train__eval_every": 4,
            "train__keep_checkpoints": 1}

    def folder(name):
        path = scratch / name
        path.mkdir()
        return path
    run = Run(folder("train"), "below/run", data, **tiny)
    yield "train", run.command(), scratch / "train", 0
    stopped = Run(folder("resumed"), "run", data, **tiny)
    shutil.copytree(run.folder, stopped.folder, symlinks=True)
    path = stopped.folder / "record.json"
    record = json.loads(path.read_text()) | {"status": "stopped"}
    del record["record_hash"]
    path.write_text(json.dumps(record))
    shutil.rmtree(stopped.checkpoints() / "step_6")
    yield "train --resume", stopped.command(), scratch / "resumed", 0
    words = [PROGRAM, "data", "make", "listops", "--train", "50", "--val", "5", "--test", "5", "--quiet"]
    yield "data make", [*words, "--out", str(folder("make") / "below" / "listops")], scratch / "make", 0
    yield ("data export", [PROGRAM, "data", "export", "listops", str(data / "listops"), "--quiet", "--out",
                           str(folder("export") / "official")], scratch / "export", 0)
    for task, (make_files, sizes) in hostile_archives.IMPORTERS.items():
        if task == "retrieval":
            continue
        source = scratch / f"{task}.tar"
        source.write_bytes(archives.good_tar(make_files()) + bytes(1024))
        root = folder(f"import-{task}")
        yield (f"data import {task}", [PROGRAM, "data", "import", task, str(source), "--quiet", "--out",
                                       str(root / task), *sizes], root, 0)
    words = [PROGRAM, "report", str(run.folder), "--quiet", "--out"]
    for ending in ("html", "md", "csv"):
        yield f"report {ending}", [*words, str(folder(ending) / f"r.{ending}")], scratch / ending, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    if not shutil.which("strace"):
        print("skipped: no strace")
        return 77
    if subprocess.run(["strace", "-o", os.devnull, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: strace may not trace here")
        return 77
    problems, names, calls, files = [], [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, words, root, expected in commands(pathlib.Path(folder).resolve()):
            storage, count = trace(words, root, expected)
            found = judge(storage, root)
            written = [path for path in storage.written if os.path.isfile(path) and not NO_PROMISE.search(path)]
            if not written:
                found.append("the trace shows no file being written")
            print(f"{name}: {count} calls, {len(written)} files, {len(found)} problems", flush=True)
            names.append(name)
            calls, files = calls + count, files + len(written)
            problems += [f"{name}: {text}" for text in found]
    if not quick:
        figures = {"commands": ", ".join(names), "calls followed": calls, "files written": files,
                   "problems": len(problems)}
        result.record(10, "durable", figures, "red" if problems else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/durable_files.py")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
