"""A long run: does its memory grow, does it become slower?

    LRA_PROGRAM=build/lra python3 tests/faults/soak.py [--quick | --seconds N] [--cpu N]

One thread on one processor trains with log lines, validations and checkpoints. Once a second the memory
is read that is its own (pages of files come and go with what else the machine does). The first tenth is
warm-up; of what follows the means of the first and the last fifth are compared. Then it and a fresh run of
the same settings train in turn on that processor, one stopped while the other goes on: the drift is the
median ratio of their steps per second of processor time, so that what else the machine does meets both.
--quick takes half a minute and records nothing; the full form takes an hour and writes
docs/results/scorecard/17-soak.json.
"""
import argparse
import os
import signal
import statistics
import sys
import tempfile
import time

from shared import result
from shared.tiny_run import Run, make_data, report

HOUR, MAX_GROWTH_MB, MAX_DRIFT, TURNS = 3600, 1.0, 0.02, 9


def own_mb(pid):
    """Resident and swapped memory that is no file's."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        lines = dict(line.split(":", 1) for line in file)
    return sum(int(lines.get(key, "0 kB").split()[0]) for key in ("RssAnon", "VmSwap")) * 1024 / 1e6


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Trainer:
    """A run that trains on one processor, and how far its log is."""

    def __init__(self, root, name, data, cpu):
        # The size of a small model in real use: 128 tokens, batches of 8, width 32.
        self.run = Run(root, name, data, task__length=128, train__batch_size=8,
                       model__embed_dim=32, model__qkv_dim=32, model__mlp_dim=64, model__layers=2,
                       train__steps=100000000, train__eval_every=500, train__eval_examples=40,
                       train__checkpoint_every=100).start()
        self.pid, self.steps = self.run.process.pid, 0
        os.sched_setaffinity(self.pid, {cpu})
        if not self.run.wait_for_training():
            sys.exit(self.run.said())
        self.log = open(self.run.folder / "metrics.jsonl", encoding="utf-8")

    def count(self):
        self.steps += self.log.read().count('"kind":"train"')
        return self.steps

    def rate(self, seconds):
        """Steps per second of processor time while it goes on for a while."""
        os.kill(self.pid, signal.SIGCONT)
        begin = processor_seconds(self.pid), self.count()
        time.sleep(seconds)
        end = processor_seconds(self.pid), self.count()
        os.kill(self.pid, signal.SIGSTOP)
        return (end[1] - begin[1]) / (end[0] - begin[0])

    def end(self):
        """True if it trained until it was asked to stop."""
        self.log.close()
        alive = self.run.process.poll() is None
        for number in (signal.SIGCONT, signal.SIGTERM):
            self.run.process.send_signal(number)
        return self.run.end() == 3 and alive


def memory_of(trainer, seconds):
    """MB of its own, once a second."""
    samples, begin = [], time.monotonic()
    while time.monotonic() - begin < seconds and trainer.run.process.poll() is None:
        samples.append(own_mb(trainer.pid))
        time.sleep(1)
    return samples


def growth_of(samples):
    """MB, after the warm-up."""
    rest = samples[len(samples) // 10:]
    fifth = max(2, len(rest) // 5)
    return statistics.mean(rest[-fifth:]) - statistics.mean(rest[:fifth])


def drift_of(old, fresh, seconds):
    """Median of the old one's speed over the fresh one's, less 1."""
    os.kill(old.pid, signal.SIGSTOP)
    fresh.rate(2 * seconds)
    return statistics.median(old.rate(seconds) / fresh.rate(seconds) for _ in range(TURNS)) - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=int, default=HOUR)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    seconds = 20 if arguments.quick else arguments.seconds
    with tempfile.TemporaryDirectory() as root:
        data = make_data(root)
        old = Trainer(root, "old", data, arguments.cpu)
        samples = memory_of(old, seconds)
        fresh = Trainer(root, "fresh", data, arguments.cpu)
        drift = drift_of(old, fresh, 1 if arguments.quick else 20)
        steps = old.steps
        problems = [f"the {name} run did not train to its end" for name, trainer in
                    (("old", old), ("fresh", fresh)) if not trainer.end()]
    growth = growth_of(samples)
    if growth >= MAX_GROWTH_MB:
        problems.append(f"its memory grew by {growth:.2f} MB")
    if abs(drift) >= MAX_DRIFT:
        problems.append(f"the speed changed by {100 * drift:.1f} %")
    figures = {"seconds": seconds, "steps": steps, "growth of memory": f"{growth:.2f} MB",
               "of": f"{samples[-1]:.0f} MB", "change of speed against a fresh run": f"{100 * drift:+.2f} %"}
    print("; ".join(f"{name}: {value}" for name, value in figures.items()))
    if arguments.quick:
        return report([p for p in problems if "train" in p] if growth < 20 else problems)
    verdict = "red" if problems else "green" if seconds >= HOUR else "partial"
    result.record(17, "soak", figures, verdict,
                  "LRA_PROGRAM=build/lra python3 tests/faults/soak.py" +
                  ("" if seconds == HOUR else f" --seconds {seconds}"))
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
