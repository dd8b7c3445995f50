"""Disks of 20 sizes fill up: is a partial file ever left under a final name?

    LRA_PROGRAM=build/lra python3 tests/faults/full_disk.py [--quick] [--build FOLDER]

Each size is a tmpfs of its own, mounted in a private mount namespace; `lra train`, `lra data make`,
`lra data import` and `lra report` write to it. They end with exit code 0; or with 2 or 74, one line that
says how much is missing or what cannot be written, and no file under a final name that is not whole. A
training run whose checkpoints cannot fit is refused before it begins (exit code 2) and leaves nothing;
one that is stopped by the full disk ends, when there is room and it is resumed, with the bytes of an
undisturbed run. --quick takes five sizes and records nothing; the full form writes
docs/results/scorecard/11-full-disk.json. Skipped (77) where nothing may be mounted.
"""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

import hostile_archives
from shared import hostile_archives as archives
from shared import result
from shared.tiny_run import BUILD, ENVIRONMENT, PROGRAM, Loader, Run, make_data, report

INSIDE = "FULL_DISK_NAMESPACE"
PAGE = 4096


def enter_namespace():
    """Runs this script again where it may mount; its exit code, or 77."""
    for words in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        probe = [*words, "sh", "-c", 'd=$(mktemp -d) && mount -t tmpfs tmpfs "$d" && umount "$d" && rmdir "$d"']
        try:
            if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
                command = [*words, sys.executable, *sys.argv]
                return subprocess.run(command, env={**os.environ, INSIDE: "1"}, check=False).returncode
        except FileNotFoundError:
            break
    print("skipped: nothing may be mounted here")
    return 77


class Disk:
    """A tmpfs of a size, in bytes."""

    def __init__(self, folder, size):
        self.folder, self.size = folder, size

    def __enter__(self):
        self.folder.mkdir(exist_ok=True)
        self._mount("tmpfs", f"size={self.size}")
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", str(self.folder)], check=True)

    def _mount(self, source, options):
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, source, str(self.folder)], check=True)

    def grow(self):
        self._mount("tmpfs", "remount,size=256m")


def lra(words):
    """Exit code and standard error."""
    done = subprocess.run([PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=ENVIRONMENT, check=False)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def judge_words(code, text, allowed):
    """Problems with the end of a command."""
    if code == 0:
        return []
    problems = [] if code in allowed else [f"exit code {code}"]
    if text.count("\n") != 1 or not text.startswith("lra: "):
        problems.append("not one line")
    return [f"{problem}: {text.strip()[-300:]!r}" for problem in problems]


def try_training(disk, data, loader, whole):
    """How a run on this disk ended, and what is wrong."""
    run = Run(disk.folder, "run", data, **whole.own)
    code = run.to_the_end()
    # The bar and messages are not asked for here: what is said is the error.
    problems = judge_words(code, "\n".join(run.said().strip().splitlines()[-1:]) + "\n", (2, 74))
    if code == 2 and run.folder.exists():
        problems.append("the refused run left its folder")
    if code == 74:
        verdict = loader.verdict(run)
        if not verdict.startswith("OK"):
            problems.append(verdict)
        left = [path.name for path in run.folder.rglob("*") if ".tmp" in path.name]
        if left:
            problems.append(f"left behind: {left}")
    if code != 0:
        disk.grow()
        again = run.to_the_end()
        if again != 0 or "damaged" in run.said():
            problems.append(f"with room again it ended with {again}: {run.said()}")
    if not problems and (run.files() != whole.files() or run.result() != whole.result()):
        problems.append("it ended with other files than an undisturbed run")
    return {0: "fits", 2: "refused before", 74: "stopped by the full disk"}.get(code, str(code)), problems


def try_command(disk, name, words, output):
    """How `words` ended on this disk, and what is wrong."""
    code, text = lra([*words, "--quiet", "--out", output])
    problems = judge_words(code, text, (74,))
    if code != 0 and output.exists():
        problems.append(f"{output.name} is there")
    if code != 0 and list(disk.folder.iterdir()):
        problems.append(f"left behind: {[path.name for path in disk.folder.iterdir()]}")
    if code == 0 and name.startswith("data") and lra(["data", "check", name.split()[2], output])[0] not in (0, 2):
        problems.append("the data cannot be opened")
    if code == 0 and not output.exists():
        problems.append("exit code 0, and nothing is there")
    return "fits" if code == 0 else "refused or stopped", problems


def bytes_needed(disk, words, output):
    """Bytes that a command takes on a disk that is large enough."""
    with disk:
        code, text = lra([*words, "--quiet", "--out", disk.folder / output])
        if code != 0:
            raise RuntimeError(text)
        info = os.statvfs(disk.folder)
        return (info.f_blocks - info.f_bfree) * info.f_frsize


def commands(scratch, whole):
    """Further commands: name, words, name of the output."""
    source = scratch / "images.tar"
    make_files, sizes = hostile_archives.IMPORTERS["image"]
    source.write_bytes(archives.good_tar(make_files()) + bytes(1024))
    yield ("data make listops", ["data", "make", "listops", "--train", "200", "--val", "20", "--test", "20"],
           "listops")
    yield "data import image", ["data", "import", "image", source, *sizes], "image"
    pairs = scratch / "pairs"
    pairs.mkdir()
    for split in ("train", "eval", "test"):
        lines = [f"{n % 2}.0\tP{n}\tQ{n}\t{split} {n} {'a' * 12000}\t{'b ' * 4000}\n" for n in range(40)]
        (pairs / f"new_aan_pairs.{split}.tsv").write_text("".join(lines))
    yield "data import retrieval", ["data", "import", "retrieval", pairs], "retrieval"
    yield "report", ["report", whole.folder], "report.html"


def trials(scratch, sizes, build):
    """Problems, and how often each command ended how."""
    problems, ends = [], collections.Counter()
    data, loader = make_data(scratch), Loader(build)
    settings = {"train__steps": 700, "train__checkpoint_every": 20, "train__eval_every": 100}
    whole = Run(scratch, "whole", data, **settings)
    whole.own = settings
    if whole.to_the_end() != 0:
        raise RuntimeError(whole.said())
    for size in sizes:
        with Disk(scratch / "disk", size) as disk:
            end, found = try_training(disk, data, loader, whole)
            ends[f"train, {end}"] += 1
            problems += [f"{size} bytes, train: {text}" for text in found]
    for name, words, output in commands(scratch, whole):
        needed = bytes_needed(Disk(scratch / "disk", 64 << 20), words, output)
        # The same number of sizes, from a twentieth of the bytes needed to a quarter more.
        for number in range(1, len(sizes) + 1):
            size = max(PAGE, needed * number * 5 // (4 * len(sizes)))
            with Disk(scratch / "disk", size) as disk:
                end, found = try_command(disk, name, words, disk.folder / output)
                ends[f"{name}, {end}"] += 1
                problems += [f"{size} bytes, {name}: {text}" for text in found]
    loader.close()
    return problems, ends


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", default=BUILD)
    arguments = parser.parse_args()
    if not os.environ.get(INSIDE):
        return enter_namespace()
    count = 5 if arguments.quick else 20
    sizes = [PAGE * (8 + 200 * number // count) for number in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        problems, ends = trials(pathlib.Path(folder), sizes, arguments.build)
    for end, number in sorted(ends.items()):
        print(f"{end}: {number}")
    for needed in ("fits", "refused before", "stopped by the full disk"):
        if not ends[f"train, {needed}"] and not arguments.quick:
            problems.append(f"no size at which training is '{needed}': the sizes say nothing")
    if not arguments.quick:
        figures = {"sizes": count, **{end: number for end, number in sorted(ends.items())},
                   "problems": len(problems)}
        result.record(11, "full-disk", figures, "red" if problems else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/full_disk.py")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
