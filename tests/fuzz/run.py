#!/usr/bin/env python3
"""Fuzzes the parsers and keeps count in docs/results/fuzz.json, so that several sittings add up.

    tests/fuzz/run.py                              a minute for every target, then line coverage
    tests/fuzz/run.py --seconds 600 png tar        longer, and only some targets
    tests/fuzz/run.py --rounds 0 --seconds 120     round after round, until every target had an hour of
                                                   processor time or 1e8 runs
    tests/fuzz/run.py --seconds 0                  line coverage only

Counts belong to one state of a target's sources (the files that it names under "Covers", and
itself): they begin again when one of these changes. A sitting that finds a crash leaves the input in
build-fuzz/crashes and ends with 1; one that a signal stopped ends with 143. An input may take a
second and 256 MB, the sanitizers' own memory included; what the address sanitizer keeps back after
free is cut to 8 MB for that.

Several sittings may run at a time, each with targets of its own.

The corpus grows in build-fuzz/corpus and is not committed: it begins with tests/fuzz/corpus.
"""
import argparse
import atexit
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import coverage

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from shared import result

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "fuzz"
WORK = ROOT / "build-fuzz"
# Programs of this sitting only: others may build at the same time.
PROGRAMS = WORK / "sittings" / str(os.getpid())
MAX_BYTES = 8192
ENOUGH_RUNS, ENOUGH_SECONDS = 1e8, 3600  # as line 18 of the scorecard promises
INTERRUPTED = 72  # libFuzzer's exit code when a signal asked it to stop: no crash
STOPPED = 143  # ours then
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "ASAN_OPTIONS": "quarantine_size_mb=8:malloc_context_size=4:handle_abort=1",
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", help="names, as png; all when none is given")
    parser.add_argument("--seconds", type=int, default=60, help="per target and round (60)")
    parser.add_argument("--runs", type=int, default=-1, help="per target and round, at most")
    parser.add_argument("--rounds", type=int, default=1, help="0: until every target has had enough")
    parser.add_argument("--record", type=pathlib.Path, default=ROOT / "docs/results/fuzz.json")
    options = parser.parse_args()
    known = sorted(path.stem for path in HERE.glob("*.cpp") if path.stem != "replay_main")
    for name in options.targets:
        if name not in known:
            parser.error(f"there is no target {name}; known: {' '.join(known)}")
    options.targets = options.targets or known
    return options


def build(preset):
    subprocess.run(["cmake", "--preset", preset], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", preset], cwd=ROOT, check=True)


def keep_programs():
    with others_wait():
        build("fuzz")
        shutil.copytree(WORK / "tests" / "fuzz", PROGRAMS, ignore=shutil.ignore_patterns("CMakeFiles", "*.cmake"))
    atexit.register(shutil.rmtree, PROGRAMS, ignore_errors=True)


def sources_hash(target):
    digest = hashlib.sha256()
    for path in [HERE / f"{target}.cpp", *(ROOT / name for name in coverage.covered_files(HERE, target))]:
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def read_record(path):
    return json.loads(path.read_text()) if path.exists() else {"targets": {}}


def entry_of(record, target, sources):
    """The counts of a target in the state of its sources, fresh ones when that is new."""
    entry = record["targets"].get(target)
    if entry is None or entry["sources"] != sources:
        entry = {"sources": sources, "runs": 0, "cpu_seconds": 0, "crashes": 0, "over_a_second": 0, "peak_mb": 0}
    record["targets"][target] = entry
    return entry


def write_record(record, path, options):
    # Only the full sitting measures line 18; a short one must not change its provenance.
    if options.rounds == 0:
        record |= result.provenance("tests/fuzz/run.py --rounds 0 --seconds 200")
    record["targets"] = dict(sorted(record["targets"].items()))
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(record, indent=1) + "\n")
    partial.replace(path)


@contextlib.contextmanager
def others_wait():
    """One sitting at a time builds, or changes the record."""
    WORK.mkdir(exist_ok=True)
    with (WORK / "sittings.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def changed_entry(options, target, sources):
    """The counts of a target, to be changed and written."""
    path = options.record
    path.parent.mkdir(parents=True, exist_ok=True)
    with others_wait():
        record = read_record(path)
        entry = entry_of(record, target, sources)
        yield entry
        write_record(record, path, options)


def had_enough(target, options, sources):
    entry = entry_of(read_record(options.record), target, sources)
    return entry["runs"] >= ENOUGH_RUNS or entry["cpu_seconds"] >= ENOUGH_SECONDS


def statistic(log, name):
    found = re.search(rf"stat::{name}:\s+(\d+)", log)
    return int(found.group(1)) if found else 0


def run_libfuzzer(target, *arguments):
    """Exit code, output and processor seconds."""
    program, log_path = PROGRAMS / f"fuzz_{target}", PROGRAMS / f"{target}.log"
    with log_path.open("w") as log:
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=log, cwd=WORK,
                                   env=os.environ | ENVIRONMENT)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, log_path.read_text(errors="replace"), usage.ru_utime + usage.ru_stime


def executed(log):
    """Number of runs: from the statistics, or, after a crash, from the last line that counts."""
    counted = statistic(log, "number_of_executed_units")
    return counted or max((int(n) for n in re.findall(r"^#(\d+)", log, re.MULTILINE)), default=0)


def too_slow(target, crashes):
    """Inputs that take a second of the processor's time; libFuzzer reports those that took one on the clock."""
    found = []
    for path in crashes.glob("slow-unit-*"):
        _, _, seconds = run_libfuzzer(target, str(path))
        # Starting the program takes some tenths of a second.
        if seconds > 1.5:
            found.append(path)
        else:
            path.unlink()
    return found


def fuzz(target, options, sources):
    """One turn of one target, added to the record. False when it crashed."""
    corpus, crashes = WORK / "corpus" / target, WORK / "crashes" / target
    corpus.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(parents=True, exist_ok=True)
    code, log, seconds = run_libfuzzer(
        target, f"-max_total_time={options.seconds}", f"-runs={options.runs}", f"-max_len={MAX_BYTES}", "-timeout=60", "-report_slow_units=1",
        "-rss_limit_mb=256", "-malloc_limit_mb=256", "-print_final_stats=1", f"-artifact_prefix={crashes}/",
        str(corpus), str(HERE / "corpus" / target))
    slow = too_slow(target, crashes)
    with changed_entry(options, target, sources) as entry:
        entry["runs"] += executed(log)
        entry["cpu_seconds"] = round(entry["cpu_seconds"] + seconds, 1)
        entry["crashes"] += code not in (0, INTERRUPTED)
        entry["over_a_second"] += len(slow)
        entry["peak_mb"] = max(entry["peak_mb"], statistic(log, "peak_rss_mb"))
    print(f"{target}: {entry['runs']:,} runs, {entry['cpu_seconds']:,.0f} CPU seconds, {entry['crashes']} crashes, "
          f"peak {entry['peak_mb']} MB", flush=True)
    if code not in (0, INTERRUPTED):
        print(f"{target}: exit code {code}; the input is in {crashes}, the end of what was said:\n{log[-2000:]}",
              file=sys.stderr, flush=True)
    for path in slow:
        print(f"{target}: {path} takes over a second", file=sys.stderr, flush=True)
    if code == INTERRUPTED:
        print(f"{target}: stopped by a signal", file=sys.stderr)
        sys.exit(STOPPED)
    return code == 0 and not slow


def minimise(target):
    """Leaves the inputs that reach something of their own. True when that went well."""
    corpus, smaller = WORK / "corpus" / target, WORK / "minimised" / target
    shutil.rmtree(smaller, ignore_errors=True)
    smaller.mkdir(parents=True)
    corpus.mkdir(parents=True, exist_ok=True)
    code, _, _ = run_libfuzzer(target, "-merge=1", f"-max_len={MAX_BYTES}", str(smaller), str(corpus),
                               str(HERE / "corpus" / target))
    if code != 0:
        return False
    shutil.rmtree(corpus)
    smaller.rename(corpus)
    return True


def measure_coverage(options, sources):
    with others_wait():
        build("fuzz-coverage")
    total = covered = 0
    for target in options.targets:
        minimise(target)
        inputs = [HERE / "corpus" / target, WORK / "corpus" / target]
        lines = coverage.measure(ROOT, HERE, target, inputs)
        with changed_entry(options, target, sources[target]) as entry:
            entry["lines"], entry["lines_reached"] = lines.total, lines.reached
        total, covered = total + lines.total, covered + lines.reached
        print(f"{target}: {lines.reached} of {lines.total} lines; not: {lines.missed_text()}", flush=True)
    print(f"{covered / max(1, total):.1%} of the lines")


def main():
    options = parse_arguments()
    sources = {target: sources_hash(target) for target in options.targets}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(STOPPED))
    keep_programs()
    good, turn, left = True, 0, options.targets
    while options.seconds > 0 and left and (options.rounds == 0 or turn < options.rounds):
        turn += 1
        for target in left:
            good = fuzz(target, options, sources[target]) and good
        if options.rounds == 0:
            left = [target for target in left if not had_enough(target, options, sources[target])]
    measure_coverage(options, sources)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
