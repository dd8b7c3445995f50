"""Every call of input or output fails once: is a failure ever taken for a success?

    LRA_PROGRAM=build/lra python3 tests/faults/io_errors.py [--quick | --stride N] [--jobs N] [--build FOLDER]

A preloaded library (shared/failing_io.c, compiled here) makes the n-th call that concerns the scratch
folder fail, for every n: once with EIO, EDQUOT, ENOSPC, and with ENOSPC from there on, as on a full
disk; writes that do half of what they should; EINTR where a call may be interrupted; files that are
mapped into memory and cannot be read there. Commands: `lra train` from the start and resumed, `lra data make`,
`lra data import`, `lra data check`, `lra report`.
With an error the program must end with exit code 74 and one line (a report says what it cannot read and
leaves it out: with 2 when nothing is left), or with 0 and the very files of a run
without errors, which only calls may lead to whose failure loses nothing (reading folders, removing what
is in the way). Interruptions and short writes must change nothing. After each failure every checkpoint
loads, and the same command, given again, ends with the files of an undisturbed run and leaves nothing
else but an old checkpoint that could not be removed, which costs space. --quick takes every 40th call and records nothing; the full form writes
docs/results/scorecard/09-io-errors.json.
"""
import argparse
import collections
import concurrent.futures
import errno
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import hostile_archives
from shared import hostile_archives as archives
from shared import result
from shared.tiny_run import BUILD, ENVIRONMENT, PROGRAM, Loader, Run, make_data, report

# Name, errno, whether it lasts.
FAULTS = (("EIO", errno.EIO, ""), ("ENOSPC", errno.ENOSPC, ""), ("EDQUOT", errno.EDQUOT, ""),
          ("disk full", errno.ENOSPC, "1"), ("EINTR", errno.EINTR, ""), ("short write", "SHORT", ""))
HARMLESS = ("EINTR", "short write")
# Calls that must never fail unnoticed. Not among them: reads, and the removal of unneeded files.
DURABLE = ("create", "write", "pwrite", "writev", "fsync", "fdatasync", "syncfs", "rename", "symlink", "link",
           "mkdir", "ftruncate")
# Lock files carry a process id for messages only. A checkpoint is renamed before it is removed: when
# that fails it stays.
NO_PROMISE = re.compile(r"\.(lock|turn)$|/step_\d+\.partial$")
OLD_CHECKPOINT = re.compile(r"checkpoints/step_\d+(\.partial)?(/|$)")


def compile_library(folder):
    """The preloaded library."""
    source = pathlib.Path(__file__).parent / "shared" / "failing_io.c"
    library = folder / "failing_io.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


class Command:
    """A command, and what it has made when it ends well."""

    def __init__(self, name, words, outputs, before=None, told=(74,)):
        self.name, self.words, self.outputs, self.before, self.told = name, words, outputs, before, told

    def prepare(self, root):
        """A scratch folder as the command finds it."""
        shutil.rmtree(root, ignore_errors=True)
        if self.before:
            shutil.copytree(self.before, root, symlinks=True)
        else:
            root.mkdir()

    def run(self, root, library, at=0, fault=("none", 0, "")):
        """Exit code, standard error, and the calls that were counted."""
        log = root.parent / "calls.log"
        log.unlink(missing_ok=True)
        environment = {**ENVIRONMENT, "LD_PRELOAD": str(library), "FAULT_ROOT": str(root), "FAULT_AT": str(at),
                       "FAULT_LOG": str(log), "FAULT_ERRNO": str(fault[1]), "FAULT_ONWARD": fault[2]}
        done = subprocess.run(self.words(root), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env=environment, check=False, timeout=300)
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return done.returncode, done.stderr.decode("utf-8", "replace"), [line.split(" ", 2) for line in lines]

    def state(self, root):
        """Every name below the root, and the content of what must be the same in every run."""
        found = {}
        for path in sorted(root.rglob("*")):
            name = re.sub(r"tfevents\..*", "tfevents", str(path.relative_to(root)))
            if path.is_symlink():
                found[name] = os.readlink(path)
            elif path.name == "metrics.jsonl":
                found[name] = [re.sub(r'"[a-z]+_per_s":[^,}]*', "", line)
                               for line in path.read_text(encoding="utf-8").splitlines()]
            elif path.is_file() and self.outputs.search(name):
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                found[name] = ""
        return found


def judge_end(code, text, fault, call, root, told):
    """Problems with the end of the program."""
    if fault[0] in HARMLESS:
        return [] if code == 0 else [f"exit code {code}: {text.strip()}"]
    durable = call[1] in DURABLE and not NO_PROMISE.search(call[2])
    if code == 0:
        return ["exit code 0, as if it had not failed"] if durable else []
    problems = [] if code == 74 or (not durable and code in told) else [f"exit code {code}"]
    if text.count("\n") != 1 or not text.startswith("lra: ") or str(root) not in text:
        problems.append("not one line that names a file")
    return [f"{problem}: {text.strip()[-300:]!r}" for problem in problems]


class Trial:
    """One kind of failure of one command, in a folder of its own."""

    def __init__(self, command, folder, library, loader, good):
        self.command, self.root, self.library, self.loader = command, folder / "root", library, loader
        self.good = good
        self.counts = collections.Counter()
        self.recovered = {}
        self.problems = []

    def one(self, at, fault):
        """Lets call `at` fail, then gives the command again; whether there was such a call."""
        self.command.prepare(self.root)
        code, text, calls = self.command.run(self.root, self.library, at, fault)
        if len(calls) < at:
            return False
        call = calls[at - 1]
        problems = judge_end(code, text, fault, call, self.root, self.command.told)
        self.counts["calls that failed"] += 1
        self.counts["told"] += code != 0
        state = self.command.state(self.root)
        if code == 0 and difference(state, self.good):
            problems.append(f"other files than without the error: {difference(state, self.good)}")
        problems += self.again(state)
        self.problems += [f"{self.command.name}, {fault[0]} at call {at} ({call[1]} "
                          f"{os.path.relpath(call[2], self.root)}): {problem}" for problem in problems]
        return True

    def again(self, state):
        """Gives the command once more, without errors; what is wrong then."""
        key = str(sorted(state.items()))
        if key in self.recovered:
            return self.recovered[key]
        problems = []
        for checkpoints in self.root.rglob("checkpoints"):
            verdict = self.loader.verdict(Checkpoints(checkpoints))
            if not verdict.startswith("OK"):
                problems.append(f"afterwards {verdict}")
        if state == self.good:
            return problems
        code, text, _ = self.command.run(self.root, self.library)
        if code != 0 or "damaged" in text:
            problems.append(f"given again, exit code {code}: {text.strip()[-300:]!r}")
        elif different := difference(self.command.state(self.root), self.good):
            problems.append(f"given again, other files: {different}")
        self.recovered[key] = problems
        return problems

    def all(self, fault, first, stride):
        """Every stride-th call."""
        while self.one(first, fault):
            first += stride


def good_state(command, folder, library):
    """The output of the command when nothing fails."""
    folder.mkdir()
    command.prepare(folder / "root")
    code, text, _ = command.run(folder / "root", library)
    if code != 0:
        raise RuntimeError(text)
    return command.state(folder / "root")


def try_command(command, scratch, library, build, stride, jobs):
    """Every failure of one command; counts and problems."""
    name = command.name.replace(" ", "-")
    good = good_state(command, scratch / name, library)

    def one_kind(number):
        folder, loader = scratch / f"{name}-{number}", Loader(build)
        folder.mkdir()
        trial = Trial(command, folder, library, loader, good)
        trial.all(FAULTS[number], 1 + number % stride, stride)
        loader.close()
        shutil.rmtree(folder)
        return trial
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        trials = list(pool.map(one_kind, range(len(FAULTS))))
    counts = sum((trial.counts for trial in trials), collections.Counter())
    return counts, [problem for trial in trials for problem in trial.problems]


class Checkpoints:
    """A folder of checkpoints, as Loader wants it."""

    def __init__(self, path):
        self.path = path

    def checkpoints(self):
        return self.path


def difference(state, good):
    """Names that are not the same, but for old checkpoints that are still there."""
    names = [name for name in sorted({*state, *good}) if state.get(name) != good.get(name)]
    return ", ".join([name for name in names if name in good or not OLD_CHECKPOINT.search(name)][:5])


def train_command(scratch, before=None):
    """Two checkpoints, of which the second replaces the first."""
    def words(root):
        run = Run(root, "run", scratch / "data", train__steps=4, train__checkpoint_every=2,
                  train__eval_every=4, train__keep_checkpoints=1)
        return [*run.command(), "--quiet"]
    name = "train" if before is None else "train --resume"
    return Command(name, words, re.compile(r"safetensors$|config\.toml$"), before)


def commands(scratch, library):
    """Every command that is tried."""
    listops = [PROGRAM, "data", "make", "listops", "--train", "50", "--val", "5", "--test", "5", "--quiet"]
    source = scratch / "reviews.tar"
    make_files, sizes = hostile_archives.IMPORTERS["text"]
    source.write_bytes(archives.good_tar(make_files()) + bytes(1024))
    train = train_command(scratch)
    yield train
    # A run that a failing device has ended at its second checkpoint.
    root, stopped = scratch / "making" / "root", scratch / "stopped"
    root.parent.mkdir()
    train.prepare(root)
    _, _, calls = train.run(root, library)
    at = next(int(number) for number, call, path in calls if call == "rename" and path.endswith("step_4"))
    train.prepare(root)
    train.run(root, library, at, FAULTS[0])
    shutil.copytree(root, stopped, symlinks=True)
    yield train_command(scratch, stopped)
    yield Command("data make", lambda root: [*listops, "--out", str(root / "listops")], re.compile("."))
    yield Command("data import", lambda root: [PROGRAM, "data", "import", "text", str(source), "--quiet",
                                               "--out", str(root / "text"), *sizes], re.compile("."))
    checked = scratch / "checked"
    shutil.copytree(scratch / "data", checked)
    yield Command("data check", lambda root: [PROGRAM, "data", "check", "listops", str(root / "listops"), "--quiet"],
                  re.compile("."), checked)
    finished = scratch / "finished"
    finished.mkdir()
    Run(finished, "run", scratch / "data", train__steps=2).to_the_end()
    yield Command("report", lambda root: [PROGRAM, "report", str(root), "--quiet", "--out",
                                          str(root / "report.html")], re.compile("$^"), finished, (74, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="kinds of failure at a time")
    parser.add_argument("--build", default=BUILD)
    arguments = parser.parse_args()
    stride = 40 if arguments.quick else arguments.stride
    counts, problems = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        library = compile_library(scratch)
        make_data(scratch)
        for command in commands(scratch, library):
            found, wrong = try_command(command, scratch, library, arguments.build, stride, arguments.jobs)
            counts += found
            problems += wrong
            print(f"{command.name}: {found['calls that failed']} failures, {len(wrong)} problems",
                  *wrong[:3], sep="\n  ", flush=True)
    if not arguments.quick:
        figures = {"every": "call" if stride == 1 else f"{stride}th call", "failing calls": counts["calls that failed"], "told": counts["told"],
                   "false successes and other problems": len(problems),
                   "kinds": ", ".join(fault[0] for fault in FAULTS)}
        verdict = "red" if problems else "green" if stride == 1 else "partial"
        result.record(9, "io-errors", figures, verdict,
                      "LRA_PROGRAM=build/lra python3 tests/faults/io_errors.py" +
                      ("" if stride == 1 else f" --stride {stride}"))
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
