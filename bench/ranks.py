#!/usr/bin/env python3
"""What do two processes of one thread cost against one process of two threads?

    LRA_PROGRAM=build/lra python3 bench/ranks.py [--repeats 5] [--seconds 10] [--out docs/results]

`lra train` on made-up reviews, in turn: 2 ranks x 1 thread, 1 rank x 2 threads, 1 rank x 1 thread,
on Text small and on the released Text model. A figure is the median, over the repeats, of tokens per
second of all training steps of a run, validation and saving left out. "Efficiency" is the tokens per second of 2 ranks x 1
thread as a part of those of 1 rank x 2 threads, medians of ratios of the same turn. It takes two
free cores: on a busy machine the figures say nothing.
"""
import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

import result_tables as tables
from training_memory import write_reviews

# Name, preset, length, examples per step.
SHAPES = (("Text small, 1,000", "small", 1000, 32), ("Text release, 1,024", "release", 1024, 16))
# Name, ranks, threads of each.
WAYS = (("2 ranks x 1 thread", 2, 1), ("1 rank x 2 threads", 1, 2), ("1 rank x 1 thread", 1, 1))


def words_of(shape, steps, threads, folder):
    _, preset, length, batch = shape
    sets = {"task.length": length, "train.batch_size": batch, "train.steps": steps,
            "train.warmup_steps": 1, "train.eval_batch_size": 2, "train.eval_every": 1000000,
            "train.eval_examples": 2, "train.test_examples": 2, "task.validation": '"heldout"',
            "train.memory_check": '"off"'}
    line = [tables.program(), "train", "text", "transformer", "--preset", preset, "--data",
            folder / "data", "--out", folder / "run", "--threads", threads, "--quiet"]
    return [str(word) for word in line] + tables.set_words(
        f"{key}={value}" for key, value in sets.items())


def environments(ranks, threads):
    own = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    if ranks == 1:
        return [own]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [{**own, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} for rank in range(ranks)]


def prepare(folder):
    """Data that is there already keeps its making out of the figures."""
    write_reviews(folder / "data")
    subprocess.run([tables.program(), "data", "import", "text", str(folder / "data/aclImdb"), "--out",
                    str(folder / "data/text"), "--quiet"], check=True, stdout=subprocess.DEVNULL)


def train(shape, steps, ranks, threads, folder):
    """The record of a run, which is taken away again."""
    words = words_of(shape, steps, threads, folder)
    processes = [subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
                 for environment in environments(ranks, threads)]
    if any([process.wait() for process in processes]):
        sys.exit(f"{sys.argv[0]}: a run failed: {' '.join(words)}")
    record = json.loads((folder / "run/record.json").read_text(encoding="utf-8"))
    shutil.rmtree(folder / "run")
    return record


def measure(shape, repeats, seconds, folder):
    first = train(shape, 3, 1, 1, folder)
    steps = max(3, round(3 * seconds / first["train_seconds"]))
    turns = []
    for turn in range(repeats):
        records = {name: train(shape, steps, ranks, threads, folder) for name, ranks, threads in WAYS}
        turns.append({name: record["train_tokens_per_s"] for name, record in records.items()})
        print(shape[0], turn + 1, {name: round(value) for name, value in turns[-1].items()}, flush=True)
    two, threads, one = (name for name, _, _ in WAYS)
    return {"shape": shape[0], "steps": steps, "turns": turns,
            "tokens_per_s": {name: statistics.median(t[name] for t in turns) for name in turns[0]},
            "efficiency": statistics.median(t[two] / t[threads] for t in turns),
            "speed_up": statistics.median(t[two] / t[one] for t in turns),
            "provenance": first["provenance"]}


def page(results, repeats):
    header = ["setting", *(name for name, _, _ in WAYS), "efficiency", "against one thread"]
    rows = [[r["shape"], *(f"{r['tokens_per_s'][name]:,.0f}" for name, _, _ in WAYS),
             f"{r['efficiency']:.2f}", f"{r['speed_up']:.2f}"] for r in results]
    return ("# Two processes and two threads\n\nWritten by `bench/ranks.py`: tokens per second of training the "
            f"Transformer, in turn, medians of {repeats}. Efficiency: 2 ranks x 1 thread as a part of 1 rank "
            "x 2 threads.\n\n" + tables.markdown(header, rows)
            + f"\nMeasured with {tables.where_measured(results[0]['provenance'])}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10, help="of one run on one thread")
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root)
        prepare(folder)
        results = [measure(shape, a.repeats, a.seconds, folder) for shape in SHAPES]
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "ranks.json").write_text(tables.without_scratch(json.dumps(results, indent=1)) + "\n",
                                       encoding="utf-8")
    (a.out / "ranks.md").write_text(page(results, a.repeats), encoding="utf-8")
    print(page(results, a.repeats))


if __name__ == "__main__":
    main()
