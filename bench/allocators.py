#!/usr/bin/env python3
"""Which memory allocator makes training steps fastest, and what does it keep?

    LRA_PROGRAM=build/lra python3 bench/allocators.py [--repeats 5] [--models A,B] [--out docs/results]

Training steps of the released Text model, batch 4, one thread, in turn: the program's arena for large
tensors; without it, the heap as the program sets it (no page goes back to the system between steps), that heap as
the C library has it, and whatever of jemalloc, mimalloc and tcmalloc is installed (libjemalloc2,
libmimalloc2.0, libtcmalloc-minimal4). All but the first are preloaded libraries. A figure is the median over
the repeats of the steps per second as a part of those of the same turn with the arena; memory is the largest
resident.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import result_tables as tables

LENGTHS, BATCH = (1024, 4096), 4
OWN = "arena"
LIBRARIES = {
    "jemalloc": ("libjemalloc.so.2", {}),
    "jemalloc that keeps pages": ("libjemalloc.so.2", {"MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"}),
    "mimalloc": ("libmimalloc.so.2", {}),
    "tcmalloc": ("libtcmalloc_minimal.so.4", {}),
}


# C functions that take the place of the program's calls and do nothing.
NO_ARENA = "void _ZN3c1015SetCPUAllocatorEPNS_9AllocatorEh(void *a, unsigned char b) { (void)a; (void)b; }"
NO_SETTINGS = "int mallopt(int key, int value) { (void)key; (void)value; return 1; }"


def library_of(folder, name, functions):
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text("\n".join(functions) + "\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return str(library)


def installed():
    """Paths of the shared libraries that the loader knows, by name."""
    listing = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: line.split()[-1] for line in listing.splitlines()[1:] if "=>" in line}


def ways_of(folder):
    """Name -> variables of the environment."""
    known = installed()
    heap = library_of(folder, "no_arena", [NO_ARENA])
    plain = library_of(folder, "no_settings", [NO_ARENA, NO_SETTINGS])
    ways = {OWN: {}, "heap that keeps pages": {"LD_PRELOAD": heap}, "heap of the C library": {"LD_PRELOAD": plain}}
    for name, (library, variables) in LIBRARIES.items():
        if library in known:
            ways[name] = {"LD_PRELOAD": f"{heap}:{known[library]}", **variables}
        else:
            print(f"{name}: {library} is not installed; left out", file=sys.stderr)
    return ways


def measure(model, length, variables):
    words = ["bench", "--measure-one", model, "--lengths", length, "--batch", BATCH, "--threads", 1,
             "--windows", 3, "--window-seconds", 1]
    done = subprocess.run([tables.program(), *map(str, words), "--json", "--quiet"], check=True,
                          stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1", **variables})
    return json.loads(done.stdout)


def case(model, length, ways, repeats):
    turns = []
    for turn in range(repeats):
        turns.append({name: measure(model, length, variables) for name, variables in ways.items()})
        print(model, length, turn + 1, {name: f"{m['steps_per_s']:.3f}" for name, m in turns[-1].items()},
              flush=True)
    return {"model": model, "length": length, "allocators": {
        name: {"relative": [t[name]["steps_per_s"] / t[OWN]["steps_per_s"] for t in turns],
               "peak_resident_bytes": max(t[name]["peak_resident_bytes"] for t in turns)} for name in ways}}


def row(result):
    return [f"{result['model']}, {result['length']:,}"] + [
        f"{statistics.median(a['relative']):.2f} ({min(a['relative']):.2f} to {max(a['relative']):.2f}), "
        f"{a['peak_resident_bytes'] / 1e6:,.0f} MB" for a in result["allocators"].values()]


def page(results, repeats, provenance):
    return ("# Memory allocators\n\nWritten by `bench/allocators.py`. Training steps per second of Text as "
            f"released, batch {BATCH}, one thread, as a part of those with the arena: median "
            f"of {repeats} turns, the lowest and the highest; and the largest resident memory.\n\n"
            + tables.markdown(["model, length", *results[0]["allocators"]], map(row, results))
            + f"\nMeasured with {tables.where_measured(provenance)}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--models", default="transformer,local,performer")
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ways = ways_of(pathlib.Path(folder))
        results = [case(model, length, ways, a.repeats)
                   for model in a.models.split(",") for length in LENGTHS]
    provenance = tables.provenance(1)
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "allocators.json").write_text(
        json.dumps({"results": results, "provenance": provenance}, indent=1) + "\n")
    (a.out / "allocators.md").write_text(page(results, a.repeats, provenance))


if __name__ == "__main__":
    main()
