"""Feeds hostile archives to everything that reads archives: `lra data import text`, `lra data
import image`, and `lra data fetch retrieval`, which unpacks one to disk.

    LRA_PROGRAM=build/lra python3 tests/faults/hostile_archives.py [--quick]

Each must be refused: exit code 2, one line on standard error, within 1 s (of the processor: other
work on the machine must not count) and 200 MB, the target not left behind, and no byte changed around it. --quick takes every fourth case and records nothing; the
full form writes docs/results/scorecard/20-archives.json.
"""
import argparse
import concurrent.futures
import functools
import gzip
import hashlib
import http.server
import os
import pathlib
import shutil
import sys
import tempfile
import threading

from shared import hostile_archives as hostile
from shared import result

PROGRAM = os.path.realpath(os.environ["LRA_PROGRAM"])
MAX_SECONDS, MAX_MB = 1.0, 200
UNPACKED = "lra_release.gz.unpacked"


def reviews():
    """aclImdb with two reviews in each folder."""
    return {f"aclImdb/{split}/{label}/{i}_{3 if label == 'neg' else 8}.txt":
            f"A {label} review, number {i} of {split}".encode()
            for split in ("train", "test") for label in ("neg", "pos") for i in range(2)}


def images():
    """CIFAR-10 with 10 images in each file."""
    files = {}
    for index, name in enumerate([f"data_batch_{n}.bin" for n in range(1, 6)] + ["test_batch.bin"]):
        body = b"".join(bytes([i]) + hashlib.shake_128(bytes([index, i])).digest(3072)
                        for i in range(10))
        files[f"cifar-10-batches-bin/{name}"] = body
    return files


def pairs():
    """The benchmark's archive with two pairs in each file."""
    return {f"lra_release/tsv_data/new_aan_pairs.{split}.tsv":
            f"1.0\ta{split}\tb{split}\tone {split}\ttwo\n0.0\tc{split}\td{split}\tthree\tfour {split}\n".encode()
            for split in ("train", "eval", "test")}


# Name of the task, files of an honest archive, settings that make it complete.
IMPORTERS = {
    "text": (reviews, ["--set", "task.num_train=4", "--set", "task.num_test=4"]),
    "image": (images, ["--set", "task.num_train=45", "--set", "task.num_val=5",
                       "--set", "task.num_test=10"]),
    "retrieval": (pairs, ["--set", "task.num_train=2", "--set", "task.num_val=2",
                          "--set", "task.num_test=2"]),
}


# The benchmark's own archive has 1.6 million entries, so a million empty ones are taken, and cost time.
HARMLESS = {"retrieval, a million entries"}

# No digest of that archive is published, so an empty answer is already no download.
FAILED_DOWNLOADS = {"retrieval, empty": 74}


# A new process counts the memory of the one it came from, until it becomes another program: none is
# started while a bomb is being made.
MEMORY = threading.Lock()


def measure(command, cwd, errors):
    """Runs a command; returns exit code, seconds of processor time, peak MB of the process."""
    with MEMORY:
        pid = os.fork()
    if pid == 0:
        try:
            os.chdir(cwd)
            null = os.open("/dev/null", os.O_RDWR)
            err = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for target, source in ((0, null), (1, null), (2, err)):
                os.dup2(source, target)
            os.execv(command[0], command)
        finally:
            os._exit(127)  # the program could not be started
    _, status, usage = os.wait4(pid, 0)
    seconds = usage.ru_utime + usage.ru_stime
    return os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss / 1024


def snapshot(folder):
    """Everything below a folder: kind, size and digest of each path."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        seen[str(path)] = (state.st_mode, hashlib.sha256(content).hexdigest())
    return seen


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without talking about it."""

    def log_message(self, *arguments):
        pass


class Trial:
    """A folder with canaries around the target, and a server for what is fetched."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.sandbox = self.root / "sandbox"
        self.target = self.sandbox / "deep" / "er"
        for folder in (self.target, self.sandbox / "outside", self.sandbox / "cwd",
                       self.root / "served"):
            folder.mkdir(parents=True)
        for folder in (self.sandbox, self.sandbox / "deep", self.sandbox / "outside"):
            (folder / "canary").write_text("sings")
        handler = functools.partial(Quiet, directory=str(self.root / "served"))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def run(self, task, make):
        """Imports what `make` gives; returns exit code, seconds, MB and what was said."""
        served = self.root / "served" / "archive.tar"
        with MEMORY:
            archive = make()
            digest = hashlib.sha256(archive).hexdigest()
            served.write_bytes(archive)
            del archive
        settings, errors = IMPORTERS[task][1], self.root / "errors"
        out = str(self.target / task)
        if task == "retrieval":
            # A download is stored next to the target; `data fetch` gets it there before it is read.
            url = f"http://127.0.0.1:{self.server.server_address[1]}/archive.tar"
            command = [PROGRAM, "data", "fetch", task, "--out", out, "--quiet", "--timeout", "5",
                       "--sha256", digest, "--url", url, *settings]
        else:
            command = [PROGRAM, "data", "import", task, str(served), "--out", out, "--quiet",
                       *settings]
        code, seconds, peak = measure(command, self.sandbox / "cwd", errors)
        return code, seconds, peak, errors.read_text(encoding="utf-8", errors="replace")

    def clear(self):
        """Takes what the fetch keeps, by design, away; returns what else stands in the target."""
        left = []
        for path in sorted(self.target.iterdir()):
            if path.name == "lra_release.gz" or path.suffix == ".lock":
                path.unlink()
            elif path.name == UNPACKED and not any(path.iterdir()):
                path.rmdir()
            else:
                left.append(path.name)
        return left


def cases_of(task, outside):
    """Name of every archive for one importer, and a function that makes it."""
    files = IMPORTERS[task][0]()
    good = hostile.good_tar(files)
    path = next(iter(files))
    for name, entries in hostile.inner(path, outside).items():
        yield name, functools.partial(gzip.compress, good + entries + bytes(1024), mtime=0)
    yield from hostile.whole_files(good, path).items()


def judge(name, code, text):
    """Problems with the refusal of one archive; empty if there are none."""
    wrong = []
    if code != FAILED_DOWNLOADS.get(name, 2):
        wrong.append(f"exit code {code}")
    if text.count("\n") != 1 or not text.startswith("lra: "):
        wrong.append("not one line")
    if any(ord(c) < 32 and c != "\n" for c in text):
        wrong.append("control characters are printed")
    return [f"{name}: {problem}: {text.strip()[:200]!r}" for problem in wrong]


def remove_imported(trial, task):
    """Takes away what an honest import leaves."""
    for path in (trial.target / task, trial.target / UNPACKED):
        shutil.rmtree(path, ignore_errors=True)
    trial.clear()


def check_honest(trial, task):
    """The honest archive is imported: else refusals prove nothing."""
    good = hostile.good_tar(IMPORTERS[task][0]()) + bytes(1024)
    for name, make in {"honest": lambda: gzip.compress(good), "plain": lambda: good,
                       "padded": lambda: good + bytes(9216)}.items():
        code, _, _, text = trial.run(task, make)
        if code != 0:
            return [f"{task}, {name}: exit code {code}: {text}"]
        remove_imported(trial, task)
    return []


def attack(trial, task, every):
    """Problems, number of cases, slowest seconds and largest MB for one importer."""
    problems, count, slowest, largest = check_honest(trial, task), 0, 0.0, 0.0
    before = snapshot(trial.sandbox)
    for index, (name, make) in enumerate(cases_of(task, str(trial.sandbox / "outside"))):
        if index % every:
            continue
        name = f"{task}, {name}"
        code, seconds, peak, text = trial.run(task, make)
        if name in HARMLESS:
            problems += [] if code == 0 else [f"{name}: exit code {code}: {text}"]
            remove_imported(trial, task)
        else:
            problems += judge(name, code, text)
        left = trial.clear()
        if left:
            problems.append(f"{name}: left behind: {left}")
        elif snapshot(trial.sandbox) != before:
            problems.append(f"{name}: something changed outside the target")
        if seconds > MAX_SECONDS or peak > MAX_MB:
            problems.append(f"{name}: {seconds:.2f} s, {peak:.0f} MB")
        count, slowest, largest = count + 1, max(slowest, seconds), max(largest, peak)
    return problems, count, slowest, largest


def attack_in_folder(task, every):
    """attack() in a folder of its own."""
    with tempfile.TemporaryDirectory() as root:
        return attack(Trial(root), task, every)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    problems, figures = [], {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        ends = list(pool.map(lambda task: attack_in_folder(task, 4 if arguments.quick else 1),
                             IMPORTERS))
    for task, (found, count, slowest, largest) in zip(IMPORTERS, ends):
        problems += found
        figures[f"{task}, archives"] = f"{count}"
        figures[f"{task}, most processor time"] = f"{slowest:.2f} s"
        figures[f"{task}, most memory"] = f"{largest:.0f} MB"
        print(f"{task}: {count} archives, slowest {slowest:.2f} s, at most {largest:.0f} MB")
    for problem in problems:
        print("FAILED:", problem, file=sys.stderr)
    if not arguments.quick:
        figures["bytes outside the target"] = 0 if not problems else "see the output"
        figures["wrong"] = len(problems)
        result.record(20, "archives", figures, "red" if problems else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/hostile_archives.py")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
