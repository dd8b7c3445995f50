"""The tests under instruments: sanitizers, counted lines and branches, gradients against slopes.

    LRA_PROGRAM=build/lra python3 tests/faults/instruments.py [--quick] [--only PART]...

PART is one of
  addresses    the torch-free rooms under g++'s sanitizers of addresses and undefined behaviour
  threads      the torch-free rooms under clang++'s sanitizer of threads, which libarcher tells what OpenMP
               orders
  coverage     the lines and branches under src/ that the unit tests and tests/e2e/*.sh reach, in a build
               by clang++ that counts them (build-coverage; an hour of two cores at first); of every file
               says build-coverage/files.txt what was reached
  gradients    the tests of the release build that hold gradients in float64 to central differences

--quick is --only gradients. The full form writes docs/results/scorecard/24-instruments.json, a part
nothing. Real data in LRA_TEST_DATA is read by the tests as always.
"""
import argparse
import ctypes.util
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from shared import result

sys.path.insert(0, str(result.ROOT / "tests" / "fuzz"))
from coverage import export, tool

ROOMS = ("base", "io", "records", "data", "checks", "tasks", "kernels", "report")  # free of LibTorch
OTHER_ROOMS = ("ops", "layers", "mixers", "models", "training", "analysis", "cli", "compute")
LINES, BRANCHES = 90, 80  # per cent
COVERAGE = result.ROOT / "build-coverage"
SKIPPED = 77
# The sanitizer of threads keeps the handlers of signals itself, and a handler that puts the system's own back
# has no effect under it: these tests expect to be ended by the second signal.
ENDED_BY_SIGNALS = "StopFlag.IsRaisedBySigusr2InABatchJobAndOnlyCtrlCTwiceEndsAtOnce:*StopFlagStops.AtOnceByASecondSignal*"


def build(preset, *targets):
    """The folder of a build by a preset."""
    subprocess.run([result.ROOT / "tools/build", preset, *targets], check=True, stdout=subprocess.DEVNULL)
    return result.ROOT / f"build-{preset}"


def run_tests(name, program, variables=None, words=()):
    """How many of its tests passed, and whether it ended well."""
    done = subprocess.run([program, *words], cwd=result.ROOT, env={**os.environ, **(variables or {})},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    passed = len(re.findall(r"^\[       OK \]", done.stdout, re.MULTILINE))
    if done.returncode != 0:
        print(done.stdout[-8000:])
    print(f"{name}: {passed} tests passed, exit code {done.returncode}", flush=True)
    return passed, done.returncode == 0 and passed > 0


def archer():
    """The library that tells the thread sanitizer what OpenMP orders; it belongs to clang's OpenMP."""
    places = [*glob.glob("/usr/lib/llvm-*/lib/libarcher.so"), ctypes.util.find_library("archer")]
    found = next((place for place in places if place), None)
    if not found:
        sys.exit("instruments: no libarcher.so: install libomp-dev")
    return found


def under(preset, variables, *words):
    """How many tests of the torch-free rooms pass under a sanitizer, and whether it had no complaint."""
    folder = build(preset, *(f"test_{room}" for room in ROOMS))
    # A complaint ends the program, so that a test that passed has none.
    ends = [run_tests(f"{preset} {room}", folder / f"test_{room}", variables, words) for room in ROOMS]
    return sum(passed for passed, _ in ends), all(well for _, well in ends)


def addresses():
    passed, good = under("asan", {"ASAN_OPTIONS": "detect_stack_use_after_return=1"})
    return {"tests under the sanitizers of addresses and undefined behaviour": passed}, good


def threads():
    passed, good = under("tsan", {"OMP_TOOL_LIBRARIES": archer(), "TSAN_OPTIONS": "ignore_noninstrumented_modules=1"},
                         f"--gtest_filter=-{ENDED_BY_SIGNALS}")
    return {"tests under the sanitizer of threads": passed}, good


def counted_tests(profiles):
    """Runs everything that counts; the names of what did not pass."""
    # %m: one profile for each program or library, into which every process adds its counts.
    variables = {"LLVM_PROFILE_FILE": f"{profiles}/%4m.profraw"}
    failed = [f"test_{room}" for room in (*ROOMS, *OTHER_ROOMS)
              if not run_tests(f"coverage {room}", COVERAGE / f"test_{room}", variables)[1]]
    environment = {**os.environ, **variables, "LRA_PROGRAM": str(COVERAGE / "lra"), "LRA_PYTHON": sys.executable}
    for script in sorted((result.ROOT / "tests/e2e").glob("*.sh")):
        done = subprocess.run(["bash", script], cwd=result.ROOT, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        print(f"{script.name}: exit code {done.returncode}", flush=True)
        if done.returncode not in (0, SKIPPED):
            print(done.stdout[-3000:])
            failed.append(script.name)
    return failed


def is_ours(path):
    """True if a file counts: the sources of the program, without its tests."""
    name = path.name
    return path.is_relative_to(result.ROOT / "src") and not name.endswith("_test.cpp") and not name.startswith("test_")


def counted_files(profiles):
    """Coverage of every file of ours: (path, lines, lines reached, branches, branches reached)."""
    merged = profiles / "all.profdata"
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", *profiles.glob("*.profraw"), "-o", merged], check=True)
    programs = [COVERAGE / "lra", COVERAGE / "liblra_python.so", COVERAGE / "liblra_ops.so",
                *(COVERAGE / f"test_{room}" for room in (*ROOMS, *OTHER_ROOMS))]
    objects = [word for program in programs[1:] for word in ("-object", program)]
    exported = export(programs[0], merged, [], "-summary-only", *objects)
    rows = []
    for file in json.loads(exported)["data"][0]["files"]:
        path = pathlib.Path(file["filename"])
        if is_ours(path):
            lines, branches = file["summary"]["lines"], file["summary"]["branches"]
            rows.append((path.relative_to(result.ROOT), lines["count"], lines["covered"], branches["count"],
                         branches["covered"]))
    return rows


def percent(part, whole):
    return round(100 * part / max(1, whole), 1)


def coverage():
    """Figures, and whether enough was reached."""
    build("coverage", "lra", *(f"test_{room}" for room in (*ROOMS, *OTHER_ROOMS)))
    profiles = COVERAGE / "profiles"
    shutil.rmtree(profiles, ignore_errors=True)
    profiles.mkdir()
    failed = counted_tests(profiles)
    rows = counted_files(profiles)
    with open(COVERAGE / "files.txt", "w", encoding="utf-8") as file:
        for path, lines, lines_reached, branches, branches_reached in sorted(rows):
            print(f"{percent(lines_reached, lines):5} % of {lines:4} lines, {percent(branches_reached, branches):5} % "
                  f"of {branches:4} branches  {path}", file=file)
    lines, lines_reached, branches, branches_reached = (sum(row[column] for row in rows) for column in range(1, 5))
    figures = {"files": len(rows), "lines": lines, "lines reached": f"{percent(lines_reached, lines)} %",
               "branches": branches, "branches reached": f"{percent(branches_reached, branches)} %",
               "failed under coverage": ", ".join(failed) or 0}
    return figures, (not failed and percent(lines_reached, lines) >= LINES
                     and percent(branches_reached, branches) >= BRANCHES)


def gradients():
    """Figures, and whether every gradient is the slope."""
    folder = pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent
    ends = [run_tests(f"gradients of {room}", folder / f"test_{room}",
                      words=["--gtest_filter=*GradientIsTheSlope*:*GradientsMatchCentralDifferences*"])
            for room in ("kernels", "ops", "mixers")]
    # src/ops/test_tensors.h holds them to this.
    return {"gradients held to slopes within 1e-7": sum(passed for passed, _ in ends)}, all(well for _, well in ends)


PARTS = {part.__name__: part for part in (addresses, threads, coverage, gradients)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=PARTS)
    arguments = parser.parse_args()
    parts = ["gradients"] if arguments.quick else arguments.only or list(PARTS)
    figures, good = {}, True
    for part in parts:
        more, well = PARTS[part]()
        figures, good = figures | more, good and well
    print("; ".join(f"{name}: {value}" for name, value in figures.items()))
    if not arguments.quick and not arguments.only:
        result.record(24, "instruments", figures, "green" if good else "red",
                      "LRA_PROGRAM=build/lra python3 tests/faults/instruments.py")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
