#!/usr/bin/env python3
"""Trains models on sets of the archives of time series (UCR, UEA), beside what is published and what was expected.

    LRA_PROGRAM=build/lra python3 bench/archives.py FOLDER [--published CSV] [--models s4d,transformer] [--steps N]
        [--seeds 0,1,2] [--work build/archives] [--out docs/results/archives]

Below FOLDER are files NAME_TRAIN.ts and NAME_TEST.ts, in folders of any depth: the packages aeon and sktime carry some.
CSV holds accuracies by set and classifier, separated by semicolons; the package tslearn carries that of Bagnall et al.
2017. Every set is imported as the task custom with its official split, a tenth of the training examples is drawn for
validation, and the preset small is trained. Writes OUT.json and OUT.md.
"""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys

PROGRAM = os.path.realpath(os.environ.get("LRA_PROGRAM", "build/lra"))
# Test accuracy of S4D that was expected before the first run, in percent.
EXPECTED = {"ItalyPowerDemand": 95, "GunPoint": 93, "ArrowHead": 72, "OSULeaf": 65, "ACSF1": 60, "BasicMotions": 97,
            "JapaneseVowels": 96, "PLAID": 70, "PickupGestureWiimoteZ": 55}
COLUMNS = {"Euclidean_1NN": "nearest neighbor", "DTW_R1_1NN": "with warping", "COTE": "COTE"}
PAGE = """# Archives of time series

Written by `bench/archives.py`. Sets of the UCR and UEA archives, imported as the task `custom` with their official splits,
trained with the preset `small` for {steps} steps; a tenth of the training examples is held out for validation, the last
weights are tested. Test accuracy in percent, the mean of {seeds} seeds and its range. *Expected* was written down before the
first run. *Baseline* is the best trivial one of the import. The last three columns are those of Bagnall et al. 2017 (The
Great Time Series Classification Bake Off), as the package tslearn has them: nearest neighbor by Euclidean distance, the
same with dynamic time warping, and COTE, their best ensemble.

{table}

Measured with lra {program} on {processor}.
"""


def lra(*args):
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"archives: lra {' '.join(map(str, args))} ended with {done.returncode}: {done.stderr.strip()}")
    return done


def find_sets(folder):
    """{name: (train, test)} of the official splits."""
    found = {}
    for train in sorted(pathlib.Path(folder).rglob("*_TRAIN.ts")):
        name = train.name.removesuffix("_TRAIN.ts")
        test = train.with_name(f"{name}_TEST.ts")
        if name in EXPECTED and test.exists():
            found.setdefault(name, (train, test))
    return found


def read_published(path):
    if path is None:
        return {}
    with open(path, encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter=";")
        first = rows.fieldnames[0]
        return {row[first]: {to: 100 * float(row[of]) for of, to in COLUMNS.items() if row[of]} for row in rows}


def run(args, name, model, seed, data):
    """The record of one run; an earlier call's run is taken up."""
    out = args.work / "runs" / f"{name}-{model}-s{seed}"
    if not (out / "record.json").exists():
        lra("train", "custom", model, "--data", data.parent, "--seed", seed, "--out", out, "--quiet", "--set",
            f"train.steps={args.steps}", "--set", f"train.eval_every={max(1, args.steps // 8)}", "--set",
            "train.test_checkpoint=last")
    record = json.loads((out / "record.json").read_text(encoding="utf-8"))
    if record["status"] != "done":
        sys.exit(f"archives: {out} is not done ({record['status']})")
    return record


def measure(args, name, files, published):
    data = args.work / name / "custom"
    if not data.exists():
        data.parent.mkdir(parents=True, exist_ok=True)
        lra("data", "import", "custom", *files, "--out", data, "--quiet")
    manifest = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
    row = {"set": name, "expected": EXPECTED[name], "published": published.get(name, {}), "models": {}}
    for model in args.models.split(","):
        records = [run(args, name, model, seed, data) for seed in args.seeds.split(",")]
        row["models"][model] = [100 * record["test"]["accuracy"] for record in records]
        first = records[0]
        row |= {"train": first["data_examples"]["train"] + first["data_examples"]["val"],
                "test": first["test"]["num_examples"], "baseline": 100 * max(first["baselines"].values()),
                "findings": [f["check"] for f in first.get("data_checks", [])],
                "program": first["provenance"]["git_revision"][:12], "processor": first["provenance"]["processor"]}
    row["settings"] = {key: manifest["settings"].get(key) for key in ("length", "channels", "num_classes")}
    print(f"{name}: {row['models']}", flush=True)
    return row


def spread(values):
    mean = f"{statistics.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.1f} to {max(values):.1f})"


def table(rows, args):
    models = args.models.split(",")
    head = ["set", "train, test", "baseline", "S4D, expected", *models, *COLUMNS.values()]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for row in rows:
        cells = [row["set"], f"{row['train']}, {row['test']}", f"{row['baseline']:.1f}", str(row["expected"])]
        cells += [spread(row["models"][model]) for model in models]
        cells += [f"{row['published'][c]:.1f}" if c in row["published"] else "" for c in COLUMNS.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--published")
    parser.add_argument("--models", default="s4d,transformer")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/archives"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/results/archives"))
    parser.add_argument("--only", help="names of sets, separated by commas")
    args = parser.parse_args()
    published, rows = read_published(args.published), []
    for name, files in find_sets(args.folder).items():
        if args.only is None or name in args.only.split(","):
            rows.append(measure(args, name, files, published))
    args.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    args.out.with_suffix(".md").write_text(PAGE.format(
        table=table(rows, args), steps=f"{args.steps:,}", seeds=len(args.seeds.split(",")),
        program=rows[0]["program"], processor=rows[0]["processor"]), encoding="utf-8")
    print(table(rows, args))


if __name__ == "__main__":
    main()
