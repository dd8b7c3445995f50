"""A long run: does its memory grow, does it become slower?

    LRA_PROGRAM=build/lra python3 tests/faults/soak.py [--quick | --seconds N] [--cpu N]

One thread on one processor trains with log lines, validations and checkpoints. Resident memory and
steps per second of processor time (a busy machine is not a slow program) are read once a second. The
first tenth is warm-up; of what follows the means of the first and of the last fifth are compared, and
of both figures the slope over the whole. --quick takes 20 s and records nothing; the full form takes an
hour and writes docs/results/scorecard/17-soak.json.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

from shared import result
from shared.tiny_run import Run, make_data, report

HOUR, MAX_GROWTH_MB, MAX_DRIFT = 3600, 1.0, 0.02


def resident_mb(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


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
    """(resident MB, processor seconds, steps) once a second."""
    log, samples, begin = Tail(run.folder / "metrics.jsonl"), [], time.monotonic()
    while time.monotonic() - begin < seconds and run.process.poll() is None:
        samples.append((resident_mb(run.process.pid), processor_seconds(run.process.pid), log.count()))
        time.sleep(1)
    return samples


def judge(samples):
    """Growth in MB and drift of the speed, after the warm-up; steps per processor second."""
    rest = samples[len(samples) // 10:]
    fifth = max(2, len(rest) // 5)
    first, last = rest[:fifth], rest[-fifth:]
    growth = statistics.mean(s[0] for s in last) - statistics.mean(s[0] for s in first)

    def speed(part):
        return (part[-1][2] - part[0][2]) / (part[-1][1] - part[0][1])
    return growth, speed(last) / speed(first) - 1, speed(rest)


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
    growth, drift, speed = judge(samples)
    problems = [] if alive and code == 3 else [f"it ended with {code}"]
    if growth >= MAX_GROWTH_MB:
        problems.append(f"resident memory grew by {growth:.2f} MB")
    if abs(drift) >= MAX_DRIFT:
        problems.append(f"the speed changed by {100 * drift:.1f} %")
    figures = {"seconds": seconds, "steps": samples[-1][2], "growth of resident memory": f"{growth:.2f} MB",
               "of": f"{samples[-1][0]:.0f} MB", "change of speed": f"{100 * drift:+.2f} %",
               "steps per processor second": round(speed)}
    print("; ".join(f"{name}: {value}" for name, value in figures.items()))
    if arguments.quick:
        return report([] if alive and code == 3 and growth < 20 else problems)
    verdict = "red" if problems else "green" if seconds >= HOUR else "partial"
    result.record(17, "soak", figures, verdict,
                  "LRA_PROGRAM=build/lra python3 tests/faults/soak.py" +
                  ("" if seconds == HOUR else f" --seconds {seconds}"))
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
