"""Generated data is the same whoever compiles the generator, and how.

    LRA_PROGRAM=build/lra python3 tests/faults/golden_hashes.py [--quick | --release]

Builds the tests of the tasks room, without LibTorch, with g++ and clang++ at -O0 and -O3, and runs the
release build too: golden hashes of every task for 3 seeds (imports: of one source), the same bytes on 1,
2 and 4 threads, and sample i made alone. --quick runs the release build alone and records nothing;
--release runs it alone and records a part; the full form writes docs/results/scorecard/05-generators.json.
"""
import argparse
import os
import re
import subprocess
import sys

from shared import result

BUILDS = [(compiler, level) for compiler in ("g++", "clang++") for level in ("-O0", "-O3")]
TESTS = ":".join(("*DataIsThatOfTheGoldenHashes*", "*AnyNumberOfThreadsGivesTheSameBytes*",
                  "*SamplesDoNotDependOnSizesOrThreads*",
                  "*EveryImageIsAFunctionOfItsNumberAlone*"))


def build(compiler, level):
    """Path of the test program of one compiler and level."""
    folder = result.ROOT / f"build-golden-{compiler.replace('+', 'p')}{level}"
    # g++ 12 at -O3 takes the insertion of a character into a string for a copy that overlaps, and the
    # comparison of two vectors for one of half of all memory.
    flags = f"{level} -Wno-restrict -Wno-stringop-overread" if compiler == "g++" else level
    subprocess.run(["cmake", "-S", result.ROOT, "-B", folder, "-G", "Ninja", "-DLRA_TORCH=OFF",
                    "-DLRA_BENCH=OFF", "-DCMAKE_BUILD_TYPE=Debug",
                    f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_CXX_FLAGS_DEBUG={flags}"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "--target", "test_tasks"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder / "test_tasks"


def run(name, program):
    """Number of tests that passed and of those that failed."""
    done = subprocess.run([program, f"--gtest_filter={TESTS}"], capture_output=True, text=True,
                          check=False)
    passed = len(re.findall(r"^\[       OK \]", done.stdout, re.MULTILINE))
    failed = len(set(re.findall(r"^\[  FAILED  \] (\S+?),? ", done.stdout, re.MULTILINE)))
    if done.returncode != 0:
        print(done.stdout[-3000:], done.stderr[-1000:])
        failed = max(1, failed)
    print(f"{name}: {passed} tests passed, {failed} failed", flush=True)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--release", action="store_true")
    arguments = parser.parse_args()
    release = os.path.join(os.path.dirname(os.path.realpath(os.environ["LRA_PROGRAM"])),
                           "test_tasks")
    ends = {"g++ -O2": run("g++ -O2", release)}
    if not arguments.quick and not arguments.release:
        for compiler, level in BUILDS:
            name = f"{compiler} {level}"
            ends[name] = run(name, build(compiler, level))
    counts = {passed for passed, _ in ends.values()}
    good = all(failed == 0 for _, failed in ends.values()) and len(counts) == 1 and 0 not in counts
    if not arguments.quick:
        figures = {"builds": ", ".join(ends), "tests in each": "/".join(map(str, sorted(counts))),
                   "failed": sum(failed for _, failed in ends.values()),
                   "seeds": 3, "threads": "1, 2, 4"}
        kept = "partial" if arguments.release else "green"
        result.record(5, "generators", figures, kept if good else "red",
                      "LRA_PROGRAM=build/lra python3 tests/faults/golden_hashes.py" +
                      (" --release" if arguments.release else ""))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
