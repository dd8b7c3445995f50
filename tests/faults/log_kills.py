"""A run that is killed while it logs: how much is lost, and does a step stand twice?

    LRA_PROGRAM=build/lra python3 tests/faults/log_kills.py [--quick | --kills N]

Every step is logged. After each kill the last whole event in the event file, and the line of the same
step in metrics.jsonl, may be at most a second older than the kill. At the end TensorBoard's reader and
metrics.jsonl must give each step once, in order, with the same figures. --quick kills 10 times and
records nothing; the full form kills 200 times and writes docs/results/scorecard/16-log.json.
"""
import argparse
import logging
import random
import struct
import sys
import tempfile
import time

from shared import result
from shared.tiny_run import Run, make_data, report

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.compat.proto.event_pb2 import Event
except ImportError:
    print("skipped: no tensorboard package")
    sys.exit(77)

KILLS_A_RUN = 40
INTERVAL = 20  # steps between checkpoints: each resume has some to write again
MAX_LOST_S = 1.0


def events_of(path):
    """The whole events of a file; a last one that was cut short is left out."""
    content, at, events = path.read_bytes(), 0, []
    while at + 12 <= len(content):
        size = struct.unpack_from("<Q", content, at)[0]
        if at + 16 + size > len(content):
            break
        events.append(Event.FromString(content[at + 12:at + 12 + size]))
        at += 16 + size
    return events


def killed(run, chance):
    """Kills it at a random moment of its training; seconds lost, and what is wrong."""
    run.start()
    if not run.wait_for_training(chance.randrange(4 * INTERVAL)):
        return 0.0, [f"it ended: {run.said()}"]
    time.sleep(chance.random() * 0.02)
    moment = time.time()
    run.kill()
    logged = [event for event in events_of(sorted(run.folder.glob("events.out.tfevents.*"))[-1])
              if event.HasField("summary")]
    lost = moment - logged[-1].wall_time
    steps = [line["step"] for line in run.metrics() if line["kind"] == "train"]
    problems = []
    if lost > MAX_LOST_S:
        problems.append(f"the last event is {lost:.2f} s old")
    if steps[-1] < logged[-1].step:
        problems.append(f"metrics.jsonl ends at step {steps[-1]}, the events at {logged[-1].step}")
    return lost, problems


def once_each(run):
    """Problems with the log of the whole run, as read by TensorBoard and line by line."""
    problems = []
    lines = [line for line in run.metrics() if line["kind"] == "train"]
    if [line["step"] for line in lines] != list(range(1, len(lines) + 1)):
        problems.append("metrics.jsonl does not hold every step once")
    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # it names each resume
    reader = EventAccumulator(str(run.folder), size_guidance={"scalars": 0})
    reader.Reload()
    scalars = reader.Scalars("train/loss")
    if [event.step for event in scalars] != [line["step"] for line in lines]:
        problems.append(f"TensorBoard has {len(scalars)} steps, metrics.jsonl {len(lines)}")
    elif any(struct.pack("<f", line["loss"]) != struct.pack("<f", event.value)
             for line, event in zip(lines, scalars)):
        problems.append("TensorBoard and metrics.jsonl have other figures")
    return len(lines), problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--kills", type=int, default=200)
    arguments = parser.parse_args()
    kills = 10 if arguments.quick else arguments.kills
    chance, problems, lost, steps = random.Random(16), [], [], 0
    with tempfile.TemporaryDirectory() as root:
        data = make_data(root)
        for first in range(0, kills, KILLS_A_RUN):
            run = Run(root, f"run{first}", data, train__checkpoint_every=INTERVAL, train__eval_every=100)
            for number in range(first, min(kills, first + KILLS_A_RUN)):
                seconds, found = killed(run, chance)
                lost.append(seconds)
                problems += [f"kill {number}: {text}" for text in found]
            count, found = once_each(run)
            steps += count
            problems += [f"{run.folder.name}: {text}" for text in found]
    lost.sort()
    figures = {"kills": kills, "steps logged": steps, "problems": len(problems),
               "age of the last event when killed, median": f"{1000 * lost[kills // 2]:.0f} ms",
               "most": f"{1000 * lost[-1]:.0f} ms"}
    print("; ".join(f"{name}: {value}" for name, value in figures.items()))
    if not arguments.quick:
        verdict = "red" if problems else "green" if kills >= 200 else "partial"
        result.record(16, "log", figures, verdict,
                      "LRA_PROGRAM=build/lra python3 tests/faults/log_kills.py")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
