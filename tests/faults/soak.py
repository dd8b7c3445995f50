"""A long run: does its memory grow, does it become slower?

    LRA_PROGRAM=build/lra python3 tests/faults/soak.py [--quick | --seconds N] [--cpu N]

One thread on one processor trains with log lines, validations and checkpoints. Once a second the memory
is read that is its own (pages of files come and go with what else the machine does), and the steps per
second of processor time. The first tenth is warm-up; of what follows the first and the last fifth are
compared. A process that does not get nine tenths of a processor shares caches with others, and its
speed is not judged. --quick takes 20 s and records nothing; the full form takes an hour and writes
docs/results/scorecard/17-soak.json.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

from shared import result
from shared.tiny_run import Run, make_data, report

HOUR, MAX_GROWTH_MB, MAX_DRIFT, MIN_SHARE = 3600, 1.0, 0.02, 0.9


def own_mb(pid):
    """Resident and swapped memory that is no file's."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        lines = dict(line.split(":", 1) for line in file)
    return sum(int(lines.get(key, "0 kB").split()[0]) for key in ("RssAnon", "VmSwap")) * 1024 / 1e6


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Tail:
    """Counts the steps in a log that grows."""

    def __init__(self, path):
        self.file, self.steps = open(path, encoding="utf-8"), 0  # pylint: disable=consider-using-with

    def count(self):
        self.steps += self.file.read().count('"kind":"train"')
        return self.steps


def samples_of(run, seconds):
    """(MB of its own, processor seconds, steps, time) once a second."""
    log, samples, begin = Tail(run.folder / "metrics.jsonl"), [], time.monotonic()
    while time.monotonic() - begin < seconds and run.process.poll() is None:
        samples.append((own_mb(run.process.pid), processor_seconds(run.process.pid), log.count(),
                        time.monotonic()))
        time.sleep(1)
    return samples


def judge(samples):
    """Growth in MB and change of the speed, after the warm-up; steps per processor second; share of a
    processor."""
    rest = samples[len(samples) // 10:]
    fifth = max(2, len(rest) // 5)
    first, last = rest[:fifth], rest[-fifth:]
    growth = statistics.mean(s[0] for s in last) - statistics.mean(s[0] for s in first)

    def speed(part):
        return (part[-1][2] - part[0][2]) / (part[-1][1] - part[0][1])
    return growth, speed(last) / speed(first) - 1, speed(rest), (rest[-1][1] - rest[0][1]) / (rest[-1][3] - rest[0][3])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=int, default=HOUR)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    seconds = 20 if arguments.quick else arguments.seconds
    with tempfile.TemporaryDirectory() as root:
        # As much as a small model of real use: 128 tokens, batches of 8, width 32.
        run = Run(root, "soak", make_data(root), task__length=128, train__batch_size=8,
                  model__embed_dim=32, model__qkv_dim=32, model__mlp_dim=64, model__layers=2,
                  train__steps=100000000, train__eval_every=500, train__eval_examples=40,
                  train__checkpoint_every=100)
        run.start()
        os.sched_setaffinity(run.process.pid, {arguments.cpu})
        if not run.wait_for_training():
            return report([run.said()])
        samples = samples_of(run, seconds)
        alive = run.process.poll() is None
        run.process.terminate()
        code = run.end()
    growth, drift, speed, share = judge(samples)
    problems = [] if alive and code == 3 else [f"it ended with {code}"]
    if growth >= MAX_GROWTH_MB:
        problems.append(f"its memory grew by {growth:.2f} MB")
    if share >= MIN_SHARE and abs(drift) >= MAX_DRIFT:
        problems.append(f"the speed changed by {100 * drift:.1f} %")
    figures = {"seconds": seconds, "steps": samples[-1][2], "growth of memory": f"{growth:.2f} MB",
               "of": f"{samples[-1][0]:.0f} MB", "share of a processor that it got": f"{100 * share:.0f} %",
               "change of speed": f"{100 * drift:+.2f} %" + ("" if share >= MIN_SHARE else ", not judged"),
               "steps per processor second": round(speed)}
    print("; ".join(f"{name}: {value}" for name, value in figures.items()))
    if arguments.quick:
        return report([] if alive and code == 3 and growth < 20 else problems)
    verdict = "red" if problems else "green" if seconds >= HOUR and share >= MIN_SHARE else "partial"
    result.record(17, "soak", figures, verdict,
                  "LRA_PROGRAM=build/lra python3 tests/faults/soak.py" +
                  ("" if seconds == HOUR else f" --seconds {seconds}"))
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
