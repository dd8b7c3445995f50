#!/usr/bin/env python3
"""Checks who includes whom under src/, and how long the rooms are.

    tools/layers.py [ROOT]

Each folder of src/ is a room, and a room may include only itself and the rooms named below. A folder
of src/tasks is a task: it never includes another task, and of the files in src/tasks itself only
all.cpp includes tasks. Rooms have no more lines without tests than their budget, a folder at most
70 files. Rooms and folders without LibTorch include none of its headers, directly or through others:
the program answers without loading it what they know. CUDA headers belong to files of src/kernels with cuda in their path alone, quoted includes are written from src/ ("base/error.h"), and no header includes
itself through others. Prints file:line for each breach; the exit code is 1 when there is one.
"""
import collections
import pathlib
import re
import sys

EVERYTHING = "base io records data checks tasks kernels ops layers mixers models training analysis report cli compute python"
ALLOWED = {
    "base": "",
    "io": "base",
    "records": "io base",
    "data": "io base",
    "checks": "data io base",
    "tasks": "checks data io base",
    "kernels": "base",
    "ops": "kernels base",
    "layers": "ops base",
    "mixers": "layers ops io base",
    "models": "mixers layers ops io base",
    "training": "records tasks checks data models mixers layers ops io base",
    "analysis": "training records tasks checks data models mixers layers ops io base",
    "report": "records io base",
    "cli": EVERYTHING.removesuffix(" compute python"),
    "compute": EVERYTHING.removesuffix(" python"),
    "python": EVERYTHING,
}
# The most lines that rooms may have together, without their tests. Raising one needs a reason in the
# commit's message.
BUDGETS = {
    "base io records": 7555,
    "data checks tasks": 14435,
    "kernels ops": 27965,
    "layers mixers models": 7695,
    "training": 7330,
    "analysis python": 2785,
    "report": 8065,
    "cli compute": 8455,
}
MOST_FILES = 70  # in one folder
# Headers that the build writes, and the one room that includes them.
GENERATED = {"lra_git_revision.h": "base"}
# Rooms, and folders of other rooms, that are compiled without LibTorch.
TORCH_FREE = {"base", "io", "records", "data", "checks", "tasks", "kernels", "report", "cli", "mixers/specs", "training/settings"}
TORCH_HEADER = re.compile(r"(torch|ATen|c10|caffe2)/")
CUDA_HEADER = re.compile(r"(cuda|cublas|curand|cub/|cooperative_groups|mma\.h|nv/)")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".inc"}


def includes_of(path):
    """Yields (line number, is quoted, what) for each include of a file."""
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def sources_of(root):
    """The source files under root/src."""
    return sorted(p for p in (pathlib.Path(root) / "src").rglob("*") if p.suffix in SUFFIXES)


def is_test(path):
    """True for files that only tests are made of."""
    return "test" in path.stem.split("_")


def task_of(name):
    """The task that a file of src/ belongs to, or None."""
    parts = name.split("/")
    return parts[1] if parts[0] == "tasks" and len(parts) > 2 else None


def breach_between_tasks(name, target):
    """The problem with the include of a file of src/tasks by another, or None."""
    here, there = task_of(name), task_of(target)
    if there in (None, here) or name == "tasks/all.cpp" or is_test(pathlib.PurePath(name)):
        return None
    return "a task includes no other task" if here else "only tasks/all.cpp includes tasks"


def free_part(name):
    """The room or folder without LibTorch that a file of src/ belongs to, or None; tests may use it in folders."""
    parts = name.split("/")
    if parts[0] in TORCH_FREE:
        return parts[0]
    folder = "/".join(parts[:2])
    return folder if folder in TORCH_FREE and not is_test(pathlib.PurePath(name)) else None


def torch_breaches(graph):
    """Includes in parts without LibTorch that lead to it, of {file: [(line, target)]}, as lines of text."""
    known = {}

    def reaches(name):
        if name not in known:
            known[name] = False  # a cycle is another breach
            known[name] = any(TORCH_HEADER.match(target) or reaches(target) for _, target in graph.get(name, []))
        return known[name]

    for name in sorted(filter(free_part, graph)):
        for line, target in graph[name]:
            if TORCH_HEADER.match(target) or (reaches(target) and not free_part(target)):
                yield f"src/{name}:{line}: includes {target}: {free_part(name)} is free of LibTorch"


def breach_of(name, room, quoted, target):
    """The problem with one include of file `name`, or None."""
    if TORCH_HEADER.match(target):
        return None  # torch_breaches
    if CUDA_HEADER.match(target):
        is_cuda_file = room == "kernels" and "cuda" in name
        return None if is_cuda_file else "CUDA headers belong to src/kernels/*cuda*"
    if not quoted:
        return "files of ours are included with quotes" if target.split("/")[0] in ALLOWED else None
    if GENERATED.get(target) == room:
        return None
    other = target.split("/")[0]
    if other not in ALLOWED or "/" not in target:
        return 'a quoted include is written from src/, as "base/error.h"'
    if other != room and other not in ALLOWED[room].split():
        return f"room {room} may include only: {ALLOWED[room] or 'itself'}"
    return breach_between_tasks(name, target) if room == "tasks" else None


def find_cycles(graph):
    """Cycles of {file: [(line, file)]}, one list of (file, line of the include) each."""
    done, cycles = set(), []

    def visit(name, trail):
        names = [entry[0] for entry in trail]
        if name in names:
            cycles.append(trail[names.index(name):])
            return
        if name in done:
            return
        for line, target in graph.get(name, []):
            visit(target, trail + [(name, line)])
        done.add(name)

    for name in sorted(graph):
        visit(name, [])
    return cycles


def lines_of_rooms(root):
    """{room: lines without tests} of the sources under root/src."""
    lines = {}
    for path in sources_of(root):
        room = path.relative_to(pathlib.Path(root) / "src").parts[0]
        if not is_test(path):
            lines[room] = lines.get(room, 0) + len(path.read_text(encoding="utf-8").splitlines())
    return lines


def over_budget(lines):
    """The budgets that {room: lines} exceeds, as lines of text."""
    for rooms, budget in BUDGETS.items():
        total = sum(lines.get(room, 0) for room in rooms.split())
        if total > budget:
            yield f"src/{rooms.split()[0]}:1: {rooms.replace(' ', ' + ')}: {total:,} lines, budget {budget:,}"


def full_folders(root):
    """The folders under root/src with too many files, as lines of text."""
    folders = collections.Counter(path.parent.relative_to(root).as_posix() for path in sources_of(root))
    for folder, files in sorted(folders.items()):
        if files > MOST_FILES:
            yield f"{folder}:1: {files} files in one folder, at most {MOST_FILES}: make folders by what they are"


def check(root):
    """All breaches under root/src, as lines of text."""
    source, breaches, graph = pathlib.Path(root) / "src", [], {}
    for path in sources_of(root):
        name = path.relative_to(source).as_posix()
        room = name.split("/")[0] if "/" in name else ""
        if room not in ALLOWED:
            breaches.append(f"src/{name}:1: not in a room; rooms are: {' '.join(ALLOWED)}")
            continue
        graph[name] = []
        for line, quoted, target in includes_of(path):
            wrong = breach_of(name, room, quoted, target)
            if wrong:
                breaches.append(f"src/{name}:{line}: includes {target}: {wrong}")
            if quoted or TORCH_HEADER.match(target):
                graph[name].append((line, target))
    breaches += torch_breaches(graph)
    for cycle in find_cycles(graph):
        chain = " -> ".join(name for name, _ in cycle + cycle[:1])
        breaches.append(f"src/{cycle[0][0]}:{cycle[0][1]}: includes itself: {chain}")
    breaches += over_budget(lines_of_rooms(root))
    breaches += full_folders(root)
    if not graph and not breaches:
        breaches.append(f"{source}:1: no sources found")
    return breaches


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    breaches = check(root)
    print("\n".join(breaches) if breaches else "include rules and budgets: kept")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
