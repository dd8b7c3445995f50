"""Flips single bits of prepared data and of checkpoints: is every flip noticed when they are opened?

    LRA_PROGRAM=build/lra python3 tests/faults/bit_flips.py [--quick] [--build FOLDER]

Shards, manifests and side files of small imports (text, retrieval, image) and generated data (listops,
pathfinder); weights, moments and headers of a checkpoint, half of the flips in the headers. Then how fast
unharmed data and checkpoints are verified. --quick flips 200 bits of each and records nothing; the full
form flips 2,000 of each and writes docs/results/scorecard/22-data.json.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import hostile_archives
from shared import hostile_archives as archives
from shared import result
from shared import tiny_run

PROGRAM = os.path.realpath(os.environ["LRA_PROGRAM"])
GENERATED = {"listops": ("200", "40", "40"), "pathfinder": ("40", "10", "10")}


def lra(*words):
    """Runs the program; raises when it fails."""
    subprocess.run([PROGRAM, *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)


def prepare(root):
    """Small data of each task; returns TASK=FOLDER words."""
    for task, (make_files, settings) in hostile_archives.IMPORTERS.items():
        source = root / f"{task}.tar"
        source.write_bytes(archives.good_tar(make_files()) + bytes(1024))
        if task == "retrieval":
            folder = root / "pairs"
            folder.mkdir()
            for name, content in make_files().items():
                (folder / pathlib.Path(name).name).write_bytes(content)
            source = folder
        lra("data", "import", task, str(source), "--out", str(root / task), *settings)
    for task, (train, val, test) in GENERATED.items():
        lra("data", "make", task, "--train", train, "--val", val, "--test", test, "--out",
            str(root / task))
    return [f"{task}={root / task}" for task in (*hostile_archives.IMPORTERS, *GENERATED)]


def run(*command):
    """Output of a program that ends with 0, or with 1 when it missed flips."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    print(done.stdout + done.stderr, end="", flush=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command[0]} ended with {done.returncode}")
    return done.stdout


def counts(output):
    """Number of flips, and how many were caught."""
    rows = re.findall(r"^\w+ (\d+) (\d+) \d+$", output, re.MULTILINE)
    return sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows)


def flip_data(build, root, count):
    """Flips in prepared data of each task."""
    return counts(run(f"{build}/tests/faults/bit_flips", count, 22, *prepare(root)))


def flip_checkpoint(build, root, count):
    """Flips in the files of a checkpoint."""
    trained = tiny_run.Run(root, "run", tiny_run.make_data(root), train__steps=4, train__keep_checkpoints=1)
    if trained.to_the_end() != 0:
        raise RuntimeError(trained.said())
    return counts(run(f"{build}/tests/faults/checkpoints", "flip", count, 22, trained.checkpoints()))


def verification_speeds(build, megabytes):
    """GB per second of processor time on one thread: prepared data, checkpoints."""
    data = run(f"{build}/bench/bench_data", "verify", megabytes)
    checkpoint = run(f"{build}/tests/faults/checkpoints", "speed", megabytes)
    return (float(re.search(r"verify: 1 threads.* ([\d.]+) GB/s processor", data)[1]),
            float(re.search(r"([\d.]+) GB/s processor", checkpoint)[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", default=os.path.dirname(PROGRAM))
    arguments = parser.parse_args()
    count = 200 if arguments.quick else 2000
    with tempfile.TemporaryDirectory() as root:
        ends = {"prepared data": flip_data(arguments.build, pathlib.Path(root), count),
                "checkpoints": flip_checkpoint(arguments.build, pathlib.Path(root) / "checkpoint", count)}
    speeds = dict(zip(ends, verification_speeds(arguments.build, 64 if arguments.quick else 512)))
    figures = {}
    for what, (flips, caught) in ends.items():
        figures |= {f"flipped bits of {what}": flips, f"caught in {what}": caught,
                    f"{what} verified, one thread": f"{speeds[what]} GB per second of processor time"}
    print("; ".join(f"{name}: {value}" for name, value in figures.items()))
    all_caught = all(flips == caught == count for flips, caught in ends.values())
    if not arguments.quick:
        kept = all_caught and min(speeds.values()) >= 1
        result.record(22, "data", figures, "green" if kept else "red",
                      "LRA_PROGRAM=build/lra python3 tests/faults/bit_flips.py")
    return 0 if all_caught else 1


if __name__ == "__main__":
    sys.exit(main())
