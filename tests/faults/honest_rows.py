"""Figures say how they came about: of how many runs, how far these lay apart, by which rules and of what.

    LRA_PROGRAM=build/lra python3 tests/faults/honest_rows.py [--quick]

Accuracy: three seeds of a small run, and copies of its record that ended badly, are reported in every
format. The figures are computed again here: mean, deviation and interval over the seeds that ended well,
the lost runs counted, protocol, division and provenance named, both averages there. Speed: what `lra bench`
measures and the report repeats, and every row of the comparisons under docs/results, is the median of at
least five windows, with its spread and provenance. --quick records nothing; the full form writes
docs/results/scorecard/27-honest-rows.json.
"""
import argparse
import json
import math
import pathlib
import re
import shutil
import statistics
import sys
import tempfile

from shared import result, runs

SEEDS, LOST = 3, {"diverged": 1, "failed": 1}
STUDENT_T = 4.302652729911275  # 97.5 % quantile, two degrees of freedom
FORMATS = ("text", "md", "csv", "json", "latex", "html")
COMPARISONS = ("peers*.json", "avx2/peers*.json")
PROVENANCE = ("lra_version", "git_revision", "compiler", "torch_version", "processor", "isa", "device", "threads")


class Claims:
    """Counts what was looked at and lists what does not hold."""

    def __init__(self):
        self.rows, self.wrong = {}, []

    def expect(self, holds, what):
        if not holds:
            self.wrong.append(what)
            print(f"FAILED: {what}", flush=True)

    def near(self, value, expected, what, tolerance=1e-6):
        self.expect(value is not None and math.isclose(value, expected, rel_tol=tolerance, abs_tol=1e-9),
                    f"{what} is {value}, not {expected}")

    def count(self, kind):
        self.rows[kind] = self.rows.get(kind, 0) + 1


def runs_of(root):
    """Folder of the runs; accuracies of the seeds that ended well, in percent."""
    runs.make_data(root, ("listops",))
    accuracies = []
    for seed in range(SEEDS):
        runs.run([*runs.command(root, f"runs/{seed}", "listops", "linformer", 4), "--seed", str(seed)])
        record = json.loads((pathlib.Path(root) / "runs" / str(seed) / "record.json").read_text())
        accuracies.append(100 * record["test"]["accuracy"])
    for number, status in enumerate(LOST, start=SEEDS):
        shutil.copytree(f"{root}/runs/0", f"{root}/runs/{number}")
        path = pathlib.Path(root) / "runs" / str(number) / "record.json"
        record = json.loads(path.read_text())
        record |= {"seed": number, "status": status, "failure": "the loss is not finite"}
        record["config"]["run"]["seed"] = number
        del record["test"], record["record_hash"]
        path.write_text(json.dumps(record))
    return f"{root}/runs", accuracies


def reported(paths, form="json"):
    text = runs.run([runs.PROGRAM, "report", *map(str, paths), "--format", form])
    return json.loads(text) if form == "json" else text


def check_accuracy(claims, folder, accuracies):
    """The row of the three seeds, in JSON by its numbers and in the other formats by its words."""
    row = next(row for row in reported([folder])["rows"] if row["model"] == "linformer")
    cell = next(cell for cell in row["cells"] if cell["task"] == "listops")
    deviation = statistics.stdev(accuracies)
    half_width = STUDENT_T * deviation / math.sqrt(SEEDS)
    claims.near(cell["percent"], statistics.mean(accuracies), "accuracy of the seeds")
    claims.near(cell["deviation"], deviation, "their deviation")
    claims.near(cell["half_width95_over_seeds"], half_width, "their interval", 1e-3)
    claims.expect(cell["seeds"] == SEEDS, f"{cell['seeds']} seeds in the mean")
    for status, number in LOST.items():
        claims.expect(cell[status] == number, f"{cell[status]} {status}")
    for name in ("validation", "division", "checkpoint", "preset", "revisions", "machines"):
        claims.expect(row[name], f"a row without {name}")
    for name in ("average_of_five", "average_of_all"):
        claims.expect(row[name]["percent"] is None, f"{name} of one task")
    record = json.loads((pathlib.Path(folder) / "0" / "record.json").read_text())
    origin = (record["division"], record["provenance"]["git_revision"][:10], record["provenance"]["processor"])
    for form in FORMATS:
        text = reported([folder], form)
        check_words(claims, form, json.dumps(text) if form == "json" else text, origin, half_width)


def check_words(claims, form, text, origin, half_width):
    """Checks how one format presents the row."""
    # Markup between words, and the rest of a table's line where a cell is broken, do not count.
    flat = " ".join(text.replace("\\", "").split())
    for word in origin:
        claims.expect(word in flat, f"{form} does not say '{word}'")
    if form not in ("json", "csv"):
        for word in (f"n={SEEDS}", f"{half_width:.2f}"):
            claims.expect(word in flat, f"{form} does not say '{word}'")
        for status, number in LOST.items():
            claims.expect(re.search(rf"\b{number}[-\s]+{status}", text), f"{form} does not say '{number} {status}'")
        averages = ("Avg of five", "Avg of all") if form == "html" else ("Avg 5", "Avg all")
        claims.expect(all(word in flat for word in averages), f"{form} has one average")
    claims.count("accuracy")


def check_windows(claims, what, value, slowest, fastest, windows):
    claims.expect(windows >= 5, f"{what}: {windows} windows")
    claims.expect(slowest <= value <= fastest, f"{what}: {value} is not between {slowest} and {fastest}")
    claims.count("speed")


def check_bench(claims, root):
    """A measurement of this machine, as the report repeats it."""
    runs.run([runs.PROGRAM, "bench", "--models", "linformer,local", "--lengths", "128,256", "--batch", "2",
              "--preset", "small", "--window-seconds", "0", "--threads", "1", "--out", f"{root}/bench", "--quiet"])
    for row in reported([f"{root}/bench"])["measurements"]:
        what = f"bench of {row['model']} at {row['length']}"
        check_windows(claims, what, row["steps_per_s"], row["slowest_steps_per_s"], row["fastest_steps_per_s"],
                      row["windows"])
        for name in ("preset", "mode", "dtype", "batch", "machine", "revision"):
            claims.expect(row[name], f"{what}: no {name}")


def check_comparisons(claims):
    """Checks the published comparisons with other programs."""
    folder = result.ROOT / "docs" / "results"
    for path in sorted(path for pattern in COMPARISONS for path in folder.glob(pattern)):
        for row in json.loads(path.read_text(encoding="utf-8")):
            what = f"{path.name}: {row['row']} at {row['length']} against {row['peer']}"
            if "failure" in row:
                claims.expect(row["failure"], f"{what}: failed without a reason")
                claims.count("failed")
                continue
            for side in ("lra", "other"):
                figures = row[side]
                windows = figures["windows"]
                check_windows(claims, f"{what}, {side}", figures["tokens_per_s"], min(windows), max(windows),
                              len(windows))
                claims.near(figures["tokens_per_s"], statistics.median(windows), f"{what}: the median of {side}")
                claims.expect(figures["spread"] >= 0, f"{what}: no spread")
            claims.near(row["ratio"], row["lra"]["tokens_per_s"] / row["other"]["tokens_per_s"], f"{what}: the ratio")
            claims.expect(all(row["provenance"].get(name) for name in PROVENANCE), f"{what}: provenance")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="honest_rows.") as root:
        check_accuracy(claims, *runs_of(root))
        check_bench(claims, root)
    check_comparisons(claims)
    good = not claims.wrong and all(claims.rows.get(kind) for kind in ("accuracy", "speed"))
    print(f"{claims.rows}, {len(claims.wrong)} wrong")
    if not arguments.quick:
        figures = {"formats of an accuracy row": claims.rows.get("accuracy", 0), "seeds": SEEDS,
                   "lost runs counted": sum(LOST.values()), "speed rows": claims.rows.get("speed", 0),
                   "comparisons that failed, with the reason": claims.rows.get("failed", 0),
                   "least windows of each": 5, "of them counts": "the median", "wrong": len(claims.wrong)}
        result.record(27, "honest-rows", figures, "green" if good else "red",
                      "LRA_PROGRAM=build/lra python3 tests/faults/honest_rows.py")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
