"""Lines of the parsers that the inputs of a fuzz target reach, measured by clang's coverage.

The first lines of a target name the files it covers, and functions in them that are not parsers
(writers, finders of files):

    // Covers: src/data/png_image.cpp
    // Without: encode_png
"""
import collections
import json
import pathlib
import re
import shutil
import subprocess

Line = collections.namedtuple("Line", "file number")


class Lines:
    def __init__(self, reached, missed):
        self.reached, self.missed = reached, missed
        self.total = reached + len(missed)

    def missed_text(self):
        by_file = collections.defaultdict(list)
        for line in sorted(self.missed):
            by_file[line.file.name].append(str(line.number))
        return "; ".join(f"{name} {','.join(numbers)}" for name, numbers in by_file.items()) or "-"


def words_after(here, target, label):
    """The words of one of the two lists; a list may go on in the next lines of the comment."""
    comment = []
    for line in (here / f"{target}.cpp").read_text().splitlines():
        if not line.startswith("//"):
            break
        comment.append(line.lstrip("/ "))
    found = re.search(rf"\b{label}: (.*?)(?= (?:Covers|Without):|$)", " ".join(comment))
    return found.group(1).split() if found else []


def covered_files(here, target):
    return words_after(here, target, "Covers")


def tool(name):
    found = shutil.which(f"{name}-14") or shutil.which(name)
    if not found:
        raise SystemExit(f"{name} is missing: install the package llvm-14")
    return found


def export(program, profile, files, *more):
    return subprocess.run([tool("llvm-cov"), "export", str(program), f"-instr-profile={profile}", *more, *map(str, files)],
                          check=True, capture_output=True, text=True).stdout


def lines_of_functions(data, words):
    """The lines of all functions, and of those whose names hold one of the words."""
    names = {function["name"] for function in data["functions"]}
    readable = subprocess.run([tool("llvm-cxxfilt")], input="\n".join(n.split(":")[-1] for n in names), check=True,
                              capture_output=True, text=True).stdout.splitlines()
    readable = dict(zip(names, readable))
    excluded = set()
    for function in data["functions"]:
        if any(word in readable[function["name"]].split("(lra")[0] for word in words):
            first = function["regions"][0]
            file = pathlib.Path(function["filenames"][0])
            excluded.update(Line(file, number) for number in range(first[0], first[2] + 1))
    return excluded


def measure(root, here, target, inputs):
    """Lines of the files that `target` covers, for its inputs (files and folders)."""
    folder = root / "build-fuzz-coverage" / "tests" / "fuzz"
    program, raw, profile = folder / f"fuzz_{target}", folder / f"{target}.profraw", folder / f"{target}.profdata"
    subprocess.run([program, *inputs], check=True, stdout=subprocess.DEVNULL,
                   env={"LLVM_PROFILE_FILE": str(raw), "OMP_NUM_THREADS": "1"})
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", str(raw), "-o", str(profile)], check=True)
    files = [root / name for name in covered_files(here, target)]
    data = json.loads(export(program, profile, files))["data"][0]
    excluded = lines_of_functions(data, words_after(here, target, "Without"))
    reached, missed = 0, []
    file = None
    for text in export(program, profile, files, "--format=lcov").splitlines():
        if text.startswith("SF:"):
            file = pathlib.Path(text[3:])
        elif text.startswith("DA:"):
            number, count = text[3:].split(",")[:2]
            line = Line(file, int(number))
            if line in excluded:
                continue
            if int(count) > 0:
                reached += 1
            else:
                missed.append(line)
    return Lines(reached, missed)
