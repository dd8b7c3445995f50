"""Signals at random moments: is the run saved, and how fast does it end?

    LRA_PROGRAM=build/lra python3 tests/faults/signals.py [--quick | --signals N]

SIGTERM and SIGINT must end the run with exit code 3, SIGUSR1 and SIGUSR2 save it while it goes on; the
newest checkpoint must be that of the last step in each case. Two in three signals arrive while a long
run trains, validates or saves; the rest at any moment of a short run's life, from its start to its test.
A signal that comes before the program has begun ends it by the system's default, and must leave what was
there untouched. --quick sends 16 and records nothing; the full form sends 200 and writes
docs/results/scorecard/13-signals.json.
"""
import argparse
import os
import random
import signal
import sys
import tempfile
import time

from shared import result
from shared.tiny_run import BUILD, Loader, Run, make_data, report

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT)
MAX_S = 5.0


def stop(run, number):
    """Sends one that stops; seconds to the end, exit code."""
    begin = time.monotonic()
    run.process.send_signal(number)
    code = run.end()
    return time.monotonic() - begin, code


def newest(run):
    """Step and time of the newest checkpoint."""
    step = run.latest()
    path = run.checkpoints() / f"step_{step}"
    try:
        return step, path.stat().st_mtime_ns
    except OSError:  # replaced by the same step a moment ago
        return newest(run)


def saves(run, number):
    """Sends one that saves; seconds until a checkpoint that is not older stands, exit code or None."""
    logged, begin, before = run.logged(), time.monotonic(), newest(run)
    run.process.send_signal(number)
    done = run.wait_for(lambda: run.latest() >= logged and newest(run) != before)
    return time.monotonic() - begin, None if done else run.process.returncode


def while_training(run, number, chance, loader):
    """One signal to a run that goes on for ever; seconds and problems."""
    run.start()
    if not run.wait_for_training(chance.randrange(60)):
        return 0.0, [f"it ended: {run.said()}"]
    time.sleep(chance.random() * 0.02)
    problems = []
    if number in (signal.SIGUSR1, signal.SIGUSR2):
        seconds, code = saves(run, number)
        if code is not None:
            problems.append(f"it ended with {code}")
        _, code = stop(run, signal.SIGTERM)
    else:
        seconds, code = stop(run, number)
    if code != 3:
        problems.append(f"exit code {code}: {run.said()}")
    elif not run.record()["status"] == "stopped" or not run.record()["steps"] == run.latest():
        problems.append(f"the record says {run.record()['status']} at step {run.record()['steps']}, "
                        f"step {run.latest()} is saved")
    elif run.logged() != run.latest():
        problems.append(f"step {run.logged()} is logged, step {run.latest()} saved")
    verdict = loader.verdict(run)
    return seconds, problems + ([] if verdict.startswith("OK") else [verdict])


def any_time(run, number, chance, length, loader):
    """One signal to a short run at any moment of its life; seconds, how it ended, problems."""
    run.start()
    time.sleep(chance.random() * length)
    seconds, code = stop(run, number)
    began = (run.folder / "record.json").exists()
    saving = number in (signal.SIGUSR1, signal.SIGUSR2)
    if code == 0:
        wrong = [] if run.record()["status"] == "done" else ["exit code 0, and the run is not done"]
        return seconds, "done", wrong
    if code == 3 and not saving:
        # Before the first step, while data are opened, there is nothing to save and to record.
        wrong = [] if not began or run.record()["steps"] == run.latest() else ["the last step is not saved"]
        verdict = loader.verdict(run)
        return seconds, "stopped", wrong + ([] if verdict.startswith("OK") else [verdict])
    if code == -number and not began:
        return seconds, "before its start", []
    return seconds, "otherwise", [f"exit code {code}: {run.said()}"]


def life(root, data):
    """Seconds that a short run takes."""
    begin, run = time.monotonic(), Run(root, "life", data, train__steps=60)
    if run.to_the_end() != 0:
        raise RuntimeError(run.said())
    return time.monotonic() - begin


def send_all(root, count, build):
    """Problems, seconds of each signal, and how the short runs ended."""
    data, chance, loader = make_data(root), random.Random(13), Loader(build)
    long_run, length = Run(root, "long", data), life(root, data)
    problems, times, ends = [], [], {}
    for i in range(count):
        number = SIGNALS[i % 4]
        if i % 3 == 2:
            run = Run(root, f"short{i}", data, train__steps=60)
            seconds, end, found = any_time(run, number, chance, length, loader)
            ends[end] = ends.get(end, 0) + 1
        else:
            if i % 60 == 0:  # a fresh one, whose log is short
                long_run = Run(root, f"long{i}", data)
            seconds, found = while_training(long_run, number, chance, loader)
        times.append(seconds)
        problems += [f"signal {i}, {number.name}: {text}" for text in found]
    loader.close()
    return problems, sorted(times), ends


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--signals", type=int, default=200)
    parser.add_argument("--build", default=BUILD)
    arguments = parser.parse_args()
    count = 16 if arguments.quick else arguments.signals
    with tempfile.TemporaryDirectory() as root:
        problems, times, ends = send_all(root, count, arguments.build)
    slow = times[min(count - 1, int(0.99 * count))]
    if slow > MAX_S:
        problems.append(f"the 99th percentile is {slow:.2f} s")
    figures = {"signals": count, "problems": len(problems), "median": f"{times[count // 2]:.2f} s",
               "99th percentile": f"{slow:.2f} s", "longest": f"{times[-1]:.2f} s",
               "short runs ended": ", ".join(f"{end} {number}" for end, number in sorted(ends.items())),
               "load of the machine": f"{os.getloadavg()[0]:.1f}"}
    print("; ".join(f"{name}: {value}" for name, value in figures.items()))
    if not arguments.quick:
        verdict = "red" if problems else "green" if count >= 200 else "partial"
        result.record(13, "signals", figures, verdict,
                      "LRA_PROGRAM=build/lra python3 tests/faults/signals.py")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
