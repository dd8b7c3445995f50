"""A run that is killed again and again: does every checkpoint load, and what is lost?

    LRA_PROGRAM=build/lra python3 tests/faults/kill_storm.py [--quick | --kills N] [--jobs N] [--build FOLDER]

SIGKILL at a random moment: mostly while it trains and saves (every fifth step), one time in eight while
it starts. After each kill every checkpoint in the folder is opened as a resume does, the newest must be
at most one interval behind the last step that was logged, and, bit for bit, the one that an undisturbed
run has at that step. Then the run goes on. --quick kills 15 times and records nothing; the full form
kills 1,000 times and writes docs/results/scorecard/08-kills.json.
"""
import argparse
import concurrent.futures
import random
import sys
import tempfile
import time

from shared import result
from shared.tiny_run import BUILD, Loader, Run, make_data, report

INTERVAL = 5
KILLS_A_RUN = 50  # a log of thousands of lines would only make each resume slower
REFERENCE_STEPS = 2000


def disturb(run, chance):
    """Starts, waits, kills. Whether it was training by then."""
    run.start()
    trains = chance.random() < 0.875 and run.wait_for_training(chance.randrange(3 * INTERVAL))
    time.sleep(chance.random() * (0.02 if trains else 0.6))
    run.kill()
    return trains


def judge(run, loader, before, reference):
    """Problems after a kill, the newest step, and the number of logged steps that are lost."""
    problems, verdict, logged = [], loader.verdict(run), run.logged()
    steps = [int(word) for word in verdict.split()[1:]] if verdict.startswith("OK") else []
    newest = max(steps, default=0)
    if not verdict.startswith("OK"):
        problems.append(f"a checkpoint does not load: {verdict}")
    elif newest < before:
        problems.append(f"step {newest} is the newest, it was {before} before")
    elif logged - newest > INTERVAL:
        problems.append(f"step {logged} was logged, step {newest} is saved")
    elif 0 < newest <= REFERENCE_STEPS and newest in reference and run.files() != reference[newest]:
        problems.append(f"step {newest} differs from the undisturbed run's")
    if "damaged" in run.said():
        problems.append(f"a checkpoint was found damaged: {run.said()}")
    return problems, newest, max(0, logged - newest)


def undisturbed(root, data):
    """Bytes of the checkpoints of a run that nobody kills, by step."""
    run = Run(root, "whole", data, train__steps=REFERENCE_STEPS,
              train__keep_checkpoints=REFERENCE_STEPS)
    if run.to_the_end() != 0:
        raise RuntimeError(run.said())
    found = {}
    for folder in run.checkpoints().glob("step_*"):
        found[int(folder.name[5:])] = {name: (folder / f"{name}.safetensors").read_bytes()
                                       for name in ("model", "optimizer")}
    return found


def kill_one(run, kills, loader, reference):
    """Kills one run `kills` times: what is wrong, steps lost each time, how often it was training."""
    chance, problems, lost, training, newest = random.Random(run.folder.name), [], [], 0, 0
    for number in range(kills):
        training += disturb(run, chance)
        found, newest, steps = judge(run, loader, newest, reference)
        problems += [f"{run.folder.name}, kill {number}: {text}" for text in found]
        lost.append(steps)
    return problems, lost, training


def storm(root, data, kills, jobs, build):
    """Problems and figures of `kills` kills, of runs of which `jobs` go on at a time."""
    reference, numbers = undisturbed(root, data), range(0, kills, KILLS_A_RUN)

    def trial(number):
        loader = Loader(build)
        end = kill_one(Run(root, f"run{number}", data), min(KILLS_A_RUN, kills - number), loader, reference)
        loader.close()
        print(f"run {number // KILLS_A_RUN}: {len(end[1])} kills, {len(end[0])} problems", flush=True)
        return end
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        ends = list(pool.map(trial, numbers))
    problems = [problem for end in ends for problem in end[0]]
    return problems, {"kills": sum(len(end[1]) for end in ends),
                      "of these while it trained or saved": sum(end[2] for end in ends),
                      "unloadable checkpoints or other problems": len(problems),
                      "most steps lost": max(max(end[1]) for end in ends),
                      "steps between checkpoints": INTERVAL}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--build", default=BUILD)
    arguments = parser.parse_args()
    kills = 15 if arguments.quick else arguments.kills
    with tempfile.TemporaryDirectory() as root:
        problems, figures = storm(root, make_data(root), kills, arguments.jobs, arguments.build)
    print("; ".join(f"{name}: {value}" for name, value in figures.items()))
    if not arguments.quick:
        verdict = "red" if problems else "green" if kills >= 1000 else "partial"
        result.record(8, "kills", figures, verdict,
                      "LRA_PROGRAM=build/lra python3 tests/faults/kill_storm.py")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
