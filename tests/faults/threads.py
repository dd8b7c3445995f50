"""1, 2 and 4 threads give the same bits, for every model, and what that costs.

    LRA_PROGRAM=build/lra python3 tests/faults/threads.py [--quick] [--without PROGRAM]

Every model on generated ListOps (padded), in float32 and bfloat16, and Pathfinder (images), and
Synthesizer's other variants; weights, optimizer state and every figure after 12 steps. 3 threads, which
divide nothing evenly, are tried too. --without names the program of a revision before the guarantee:
then a training step of Text, release sizes, 1,024 tokens, is measured on both in turn, in processor time
of one thread, for the Transformer and the models with products of their own. --quick: ListOps alone, 1 and 3 threads, nothing recorded; else
docs/results/scorecard/03-threads.json.
"""
import argparse
import itertools
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

from shared import result, runs

BF16 = "train.precision=bf16"
VARIANTS = ("random", "dense", "factorized_dense")
MEASURED = ("transformer", "linformer", "sinkhorn", "synthesizer", "linear_transformer")
ROUNDS, MOST_STEPS = 5, 5


def cases(tasks, quick):
    """Task, model and further settings of every run that is compared with itself."""
    for task, model in itertools.product(tasks, runs.models()):
        yield task, model, []
        if task == "listops" and not quick:
            yield task, model, [BF16]
    for variant in VARIANTS:
        yield "listops", "synthesizer", [f"mixer.variant={variant}"]


def problems_of(root, case, steps, threads):
    """Differences from the run on one thread."""
    task, model, settings = case
    one = runs.train(root, "one", task, model, steps, 1, settings)
    expected, wrong, name = runs.state(one), [], f"{model} on {task} {' '.join(settings)}".strip()
    for count in threads:
        other = runs.train(root, "other", task, model, steps, count, settings)
        differ = runs.differences(expected, runs.state(other))
        if differ:
            tensors = ", ".join(runs.differing_tensors(one, other))
            wrong.append(f"{name}, {count} threads: {', '.join(differ)}; tensors {tensors}")
        shutil.rmtree(other)
    shutil.rmtree(one)
    print(f"{name}: {len(wrong)} differences", flush=True)
    return wrong


def seconds_of_steps(program, model, steps):
    """Processor time of a process that makes that many training steps after its set-up."""
    def used():
        times = resource.getrusage(resource.RUSAGE_CHILDREN)
        return times.ru_utime + times.ru_stime
    before = used()
    subprocess.run([program, "bench", "--measure-one", model, "--lengths", "1024", "--batch", "1",
                    "--threads", "1", "--windows", str(steps), "--window-seconds", "0", "--quiet",
                    "--json"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**runs.ENVIRONMENT, "OMP_NUM_THREADS": "1"})
    return used() - before


def step_ratio(without, model):
    """Time of a step with the guarantee over that without: the median of rounds in turn."""
    ratios = []
    for _ in range(ROUNDS):
        with_it, before = (seconds_of_steps(program, model, MOST_STEPS) -
                           seconds_of_steps(program, model, 1)
                           for program in (runs.PROGRAM, without))
        ratios.append(with_it / before)
    print(f"{model}: a step takes {statistics.median(ratios):.2f} of the time without", flush=True)
    return statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--without", help="a program without the guarantee, to compare speeds")
    arguments = parser.parse_args()
    tasks = ["listops"] if arguments.quick else ["listops", "pathfinder"]
    steps, threads = (5, [3]) if arguments.quick else (12, [2, 3, 4])
    wrong, compared, figures = [], 0, {}
    with tempfile.TemporaryDirectory() as root:
        runs.make_data(root, tasks)
        for case in cases(tasks, arguments.quick):
            wrong += problems_of(root, case, steps, threads)
            compared += 1
    if arguments.without:
        ratios = {model: step_ratio(os.path.realpath(arguments.without), model)
                  for model in MEASURED}
        figures = {"time of a step against that without, one thread":
                   f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f}"}
        wrong += [f"{model}: a step takes {ratio:.2f} of the time without"
                  for model, ratio in ratios.items() if ratio > 1.1]
    for problem in wrong:
        print("FAILED:", problem, file=sys.stderr)
    if not arguments.quick:
        verdict = "red" if wrong else "green" if arguments.without else "partial"
        result.record(3, "threads", {"runs compared": compared, "threads": "1, 2, 3, 4",
                                     "steps": steps, "differences": len(wrong), **figures}, verdict,
                      "LRA_PROGRAM=build/lra python3 tests/faults/threads.py --without PROGRAM")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
