"""Accuracy on longer sequences than those of training: docs/results/lengths.md.

  LRA_PROGRAM=build/lra python bench/length_generalization.py --task recall|state|listops [--models NAME[:SETTING=VALUE],...]
      [--tests 64,512,1024,2048] [--examples N] [--seeds 0,1,2] [--threads N] [--out FOLDER] [--set KEY=VALUE]...

Each model is trained once for each seed with the task's preset `small` and the settings of --set, then evaluated
on new examples of every length by `lra eval --set task.length=LENGTH`, with the weights as they are: expressions of
LENGTH/2 to LENGTH symbols for listops, with --set task.length as large as the longest. A model may have settings
of its own behind colons. Runs and data stay in the folder and are not made again. Prints a table:
means over seeds, and their range in parentheses.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from result_tables import program, run_json


def lengths_of(text):
    return [int(word) for word in text.split(",")]


def words_of(settings):
    return [word for setting in settings for word in ("--set", setting)]


def trained(args, model, settings, seed):
    name = "-".join([args.task, model, *settings, f"s{seed}"]).replace("/", "_")
    run = args.out / "runs" / name
    if not (run / "record.json").exists():
        command = ["train", args.task, model, "--out", run, "--data", args.out / "trained-on", "--seed", seed,
                   "--threads", args.threads, "--quiet", *words_of(args.set + settings)]
        (args.out / "trained-on").mkdir(parents=True, exist_ok=True)
        subprocess.run([program(), *map(str, command)], check=True, stdout=subprocess.DEVNULL)
    return run


def accuracy_at(args, run, length):
    data = args.out / f"length-{length}"
    data.mkdir(parents=True, exist_ok=True)
    changed = ["task.num_train=0", "task.num_val=0", f"task.num_test={args.examples}"] + {
        "recall": [f"task.length={length}"],
        "state": [f"task.length={length}", "task.min_length=0"],
        "listops": [f"task.min_length={length // 2}", f"task.max_length={length}"]}[args.task]
    said = run_json(["eval", run, "--data", data, "--threads", args.threads, *words_of(changed)])
    return said["accuracy"]


def cell(values):
    text = f"{100 * statistics.mean(values):.1f}"
    return text if len(values) == 1 else f"{text} ({100 * min(values):.1f} to {100 * max(values):.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", required=True, choices=["recall", "state", "listops"])
    parser.add_argument("--models", default="transformer,mamba2,gated_deltanet,retnet,gla,min_gru,rg_lru,s4d")
    parser.add_argument("--tests", type=lengths_of, default=[512, 1024, 2048])
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--seeds", type=lengths_of, default=[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("lengths"))
    parser.add_argument("--set", action="append", default=[])
    args = parser.parse_args()
    print(f"| {args.task}, {' '.join(args.set) or 'preset small'} | trained | " + " | ".join(map(str, args.tests)) + " |")
    print("| --- |" + " ---: |" * (1 + len(args.tests)))
    for word in args.models.split(","):
        model, *settings = word.split(":")
        runs = [trained(args, model, settings, seed) for seed in args.seeds]
        own = [json.loads((run / "record.json").read_text())["test"]["accuracy"] for run in runs]
        cells = [cell(own)] + [cell([accuracy_at(args, run, length) for run in runs]) for length in args.tests]
        print(f"| {' '.join([model, *settings])} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
