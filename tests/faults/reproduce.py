"""`lra reproduce` makes a recorded run again bit for bit, and says so when it cannot.

    LRA_PROGRAM=build/lra python3 tests/faults/reproduce.py [--quick]

A run of every model is reproduced from its record alone, with another number of threads every other time.
Then records that cannot hold: one digit of the weights' hash changed with and without the record's own
hash, another seed, other data, a run that was stopped, a measurement. --quick: three models, nothing recorded; else
docs/results/scorecard/07-reproduce.json.
"""
import argparse
import json
import shutil
import subprocess
import sys
import tempfile

from shared import result, runs

STEPS = 30


def reproduce(root, record, *words):
    """Exit code, the answer (None without one) and the line of complaint."""
    done = subprocess.run([runs.PROGRAM, "reproduce", str(record), "--data", f"{root}/data",
                           "--quiet", "--json", *words], env=runs.ENVIRONMENT, capture_output=True,
                          text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr.strip()


def changed(record, root, change):
    """A copy of a record with one thing changed."""
    document = json.loads(record.read_text())
    change(document)
    copy = runs.pathlib.Path(root) / "changed.json"
    copy.write_text(json.dumps(document))
    return copy


def problems_of_models(root, models):
    """Every model from its record, which lies alone in another folder."""
    wrong = []
    for i, model in enumerate(models):
        folder = runs.train(root, "run", "listops", model, STEPS)
        record = shutil.copy(folder / "record.json", f"{root}/alone.json")
        shutil.rmtree(folder)
        code, answer, complaint = reproduce(root, record, "--threads", str(1 + i % 2))
        if code != 0 or not answer["equal"]:
            wrong.append(f"{model}: exit code {code}, {complaint}, {answer}")
        print(f"{model}: exit code {code}", flush=True)
    return wrong


def problems_of_false_records(root):
    """Records that must not be called reproduced."""
    record = runs.train(root, "run", "listops", "local", STEPS) / "record.json"
    other_digit = {"0": "1"}

    def other_hash(document):
        digit = document["weights_hash"][0]
        document["weights_hash"] = other_digit.get(digit, "0") + document["weights_hash"][1:]

    def other_seed(document):
        document["config"]["run"]["seed"] += 1

    def other_data(document):
        document["data_hash"] = document["data_hash"][::-1]

    def of_earlier_program(change):
        def change_both(document):
            del document["record_hash"]
            change(document)
        return change_both

    cases = [("weights", other_hash, False), ("seed", other_seed, False),
             ("weights, without the hash", of_earlier_program(other_hash), True),
             ("data, without the hash", of_earlier_program(other_data), False),
             ("stopped, without the hash",
              of_earlier_program(lambda document: document.update(status="stopped")), False),
             ("bench, without the hash",
              of_earlier_program(lambda document: document.update(kind="bench")), False)]
    wrong = []
    for name, change, runs_again in cases:
        code, answer, complaint = reproduce(root, changed(record, root, change))
        said = [row["what"] for row in answer["results"] if not row["equal"]] if answer else []
        good = code == 2 and (("weights" in said and not answer["equal"]) if runs_again else
                              (answer is None and len(complaint.splitlines()) == 1))
        if not good:
            wrong.append(f"{name} changed: exit code {code}, {complaint}, {said}")
        print(f"{name} changed: exit code {code}, differs: {said}, {complaint}", flush=True)
    return wrong, len(cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    models = runs.models()[:3] if arguments.quick else runs.models()
    with tempfile.TemporaryDirectory() as root:
        runs.make_data(root, ["listops"])
        wrong = problems_of_models(root, models)
        of_false, cases = problems_of_false_records(root)
    for problem in wrong + of_false:
        print("FAILED:", problem, file=sys.stderr)
    if not arguments.quick:
        figures = {"models": len(models), "reproduced": len(models) - len(wrong), "steps": STEPS,
                   "false records": cases, "found out": cases - len(of_false)}
        result.record(7, "reproduce", figures, "red" if wrong + of_false else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/reproduce.py")
    return 1 if wrong + of_false else 0


if __name__ == "__main__":
    sys.exit(main())
