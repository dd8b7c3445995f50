"""Eight processes that need the same data at once: one prepares, the others wait and use it.

    LRA_PROGRAM=build/lra python3 tests/faults/one_build.py [--quick] [--build FOLDER]

Each round starts 8 processes on one empty data folder and watches the folder (inotify): the data must
come into being once, all 8 must end well with the same hash, and nothing else may be left. The rounds
run prepare_once, which does what `lra train` does first; a few more run `lra train` itself, and some
kill the process that builds. `lra data make` into one folder lets one through and refuses the others
with exit code 2. --quick: fewer rounds, nothing recorded; else docs/results/scorecard/15-build.json.
"""
import argparse
import ctypes
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

from shared import result

PROGRAM = os.path.realpath(os.environ["LRA_PROGRAM"])
PROCESSES, TIMEOUT_S = 8, 120
IN_MOVED_TO, IN_NONBLOCK = 0x80, 0o4000
SETTINGS = ["num_train=400", "num_val=40", "num_test=40"]


class Arrivals:
    """Names that were renamed into a folder, as the kernel reports them."""

    def __init__(self, folder):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(IN_NONBLOCK)
        if self.fd < 0 or self.libc.inotify_add_watch(self.fd, os.fsencode(folder), IN_MOVED_TO) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def names(self):
        """All since the watch began; ends it."""
        found = []
        try:
            while data := os.read(self.fd, 1 << 16):
                at = 0
                while at < len(data):
                    length = struct.unpack_from("iIII", data, at)[3]
                    found.append(data[at + 16:at + 16 + length].rstrip(b"\0").decode())
                    at += 16 + length
        except BlockingIOError:
            pass
        os.close(self.fd)
        return found


def finish(processes):
    """Exit codes and outputs; a process that does not end in time is killed and counts as None."""
    deadline, ends = time.monotonic() + TIMEOUT_S, []
    for process in processes:
        try:
            out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
            ends.append((process.returncode, out.strip(), err.strip()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            ends.append((None, "", "did not end"))
    return ends


def start(command, count=PROCESSES):
    """Starts that many processes at once."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return [subprocess.Popen([word.replace("{}", str(i)) for word in command], text=True,
                             env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for i in range(count)]


def left_over(data):
    """Names in the data folder other than the dataset."""
    return sorted(path.name for path in data.iterdir() if path.name != "listops")


def judge(ends, arrived, data):
    """Problems in a round in which all processes must succeed."""
    wrong = [f"exit code {code}: {err[-300:]}" for code, _, err in ends if code != 0]
    if len({out for _, out, _ in ends}) != 1:
        wrong.append("hashes differ")
    if arrived.count("listops") != 1:
        wrong.append(f"built {arrived.count('listops')} times")
    if left_over(data):
        wrong.append(f"left: {left_over(data)}")
    return wrong


def round_of(command, root):
    """Eight at once on an empty folder."""
    data = pathlib.Path(root) / "data"
    data.mkdir()
    arrivals = Arrivals(data)
    ends = finish(start([word.replace("{data}", str(data)) for word in command]))
    return judge(ends, arrivals.names(), data)


def killed_round(command, root, chance):
    """The same, and one process is killed at a random moment: the others go on."""
    data = pathlib.Path(root) / "data"
    data.mkdir()
    processes = start([word.replace("{data}", str(data)) for word in command])
    time.sleep(chance.random() * 0.15)
    victims = [path for path in data.glob("listops*.turn") if path.read_text()]
    victim = int(victims[0].read_text().split()[0]) if victims else processes[0].pid
    if victim in [process.pid for process in processes if process.poll() is None]:
        os.kill(victim, signal.SIGKILL)
    ends = [end for end in finish(processes) if end[0] != -signal.SIGKILL]
    wrong = [f"exit code {code}: {err[-300:]}" for code, _, err in ends if code != 0]
    if len({out for _, out, _ in ends}) != 1 or len(ends) < PROCESSES - 1:
        wrong.append("hashes differ")
    if [name for name in left_over(data) if not name.endswith((".turn", ".lock"))]:
        wrong.append(f"left: {left_over(data)}")
    return wrong


def make_round(root):
    """`lra data make` says that its folder must not exist: one is let through."""
    ends = finish(start([PROGRAM, "data", "make", "listops", "--train", "400", "--val", "40",
                         "--test", "40", "--out", f"{root}/listops", "--quiet"]))
    codes = sorted((-1 if code is None else code) for code, _, _ in ends)
    wrong = [] if codes == [0] + [2] * (PROCESSES - 1) else [f"exit codes {codes}"]
    check = finish(start([PROGRAM, "data", "show", "listops", f"{root}/listops"], 1))
    return wrong + ([] if check[0][0] == 0 else [check[0][2]])


def train_round(command, root):
    """Eight trainings; what they print differs in the folder of the run, so hashes are not compared."""
    data = pathlib.Path(root) / "data"
    data.mkdir()
    arrivals = Arrivals(data)
    ends = finish(start([word.replace("{data}", str(data)) for word in command]))
    return judge([(code, "", err) for code, _, err in ends], arrivals.names(), data)


def repeat(name, count, one_round):
    """Runs rounds, each in a fresh folder; returns what went wrong."""
    problems, begin = [], time.monotonic()
    for i in range(count):
        with tempfile.TemporaryDirectory() as root:
            problems += [f"{name}, round {i}: {text}" for text in one_round(root)]
    print(f"{name}: {count} rounds, {len(problems)} problems, {time.monotonic() - begin:.0f} s",
          flush=True)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", default=os.path.dirname(PROGRAM))
    arguments = parser.parse_args()
    once = [f"{arguments.build}/tests/faults/prepare_once", "listops", "{data}", *SETTINGS]
    train = [PROGRAM, "train", "listops", "transformer", "--preset", "small", "--data", "{data}",
             "--out", "{data}/../run{}", "--threads", "1", "--quiet", "--json", "--set",
             "train.steps=1", "--set", "train.batch_size=2", "--set", "task.num_train=400", "--set",
             "task.num_val=8", "--set", "task.num_test=8"]
    chance, quick = random.Random(15), arguments.quick
    rounds = {"prepare": 10 if quick else 200, "killed": 5 if quick else 40,
              "data make": 1 if quick else 3,
              "train": 1 if quick else 3}
    problems = repeat("prepare", rounds["prepare"], lambda root: round_of(once, root))
    problems += repeat("killed", rounds["killed"], lambda root: killed_round(once, root, chance))
    problems += repeat("data make", rounds["data make"], make_round)
    problems += repeat("train", rounds["train"], lambda root: train_round(train, root))
    for problem in problems:
        print("FAILED:", problem, file=sys.stderr)
    if not quick:
        figures = {"rounds": rounds["prepare"], "processes each": PROCESSES,
                   "rounds with the builder killed": rounds["killed"],
                   "rounds of data make": rounds["data make"],
                   "rounds of lra train": rounds["train"], "problems": len(problems)}
        result.record(15, "build", figures, "red" if problems else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/one_build.py")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
