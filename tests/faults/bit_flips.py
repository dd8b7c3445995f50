"""Flips single bits of prepared data of five tasks: is every flip noticed when training opens them?

    LRA_PROGRAM=build/lra python3 tests/faults/bit_flips.py [--quick] [--build FOLDER]

Shards, manifests and side files of small imports (text, retrieval, image) and generated data (listops,
pathfinder). Then how fast unharmed data are verified: bench_data. --quick flips 200 bits and records
nothing; the full form flips 2,000 and writes docs/results/scorecard/22-data.json.
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


def flip(build, root, count):
    """Number of flips, how many were caught, and the output."""
    command = [f"{build}/tests/faults/bit_flips", str(count), "22", *prepare(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, end="")
    if done.returncode not in (0, 1):
        raise RuntimeError(f"bit_flips ended with {done.returncode}")
    rows = re.findall(r"^\w+ (\d+) (\d+) \d+$", done.stdout, re.MULTILINE)
    return sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows)


def verification_speed(build, megabytes):
    """GB per second of processor time on one thread, as bench_data prints it."""
    done = subprocess.run([f"{build}/bench/bench_data", "verify", str(megabytes)], text=True,
                          capture_output=True, check=True)
    print(done.stdout, end="")
    return float(re.search(r"verify: 1 threads.* ([\d.]+) GB/s processor", done.stdout)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", default=os.path.dirname(PROGRAM))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        flips, caught = flip(arguments.build, pathlib.Path(root), 200 if arguments.quick else 2000)
    speed = verification_speed(arguments.build, 64 if arguments.quick else 512)
    print(f"{caught} of {flips} flipped bits were caught; {speed} GB/s")
    if not arguments.quick:
        kept = caught == flips == 2000 and speed >= 1
        result.record(22, "data", {"flipped bits of prepared data": flips, "caught": caught,
                                   "of checkpoints": "not measured here",
                                   "verified, one thread": f"{speed} GB per second of processor time"},
                      "partial" if kept else "red",  # checkpoints are the other half of the line
                      "LRA_PROGRAM=build/lra python3 tests/faults/bit_flips.py")
    return 0 if caught == flips else 1


if __name__ == "__main__":
    sys.exit(main())
