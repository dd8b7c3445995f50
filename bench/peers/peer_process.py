"""One peer in a process of its own: builds it, warms up, then times a window at every request.

    peer_process.py KIND NAME LENGTH DROP THREADS SECONDS

Prints "ready" and then, for every line that it reads, one line of JSON: tokens per second in a
window of whole steps that fill SECONDS, and the peak resident bytes so far.
"""
import json
import math
import resource
import sys
import time

from workload import BATCH

WARM_UP_STEPS = 2


def build(kind, name, length, drop, threads):
    if kind == "jax":
        import jax_peers
        return jax_peers.build(name, length, drop)
    import torch_peers
    return torch_peers.build(kind, name, length, drop, threads)


def window(step, length, seconds):
    start, steps = time.perf_counter(), 0
    while steps == 0 or time.perf_counter() - start < seconds:
        loss = step()
        steps += 1
    rate = steps * BATCH * length / (time.perf_counter() - start)
    if not math.isfinite(loss):
        sys.exit(f"the loss is {loss}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"tokens_per_s": rate, "peak_resident_bytes": peak}


def main():
    kind, name, length, drop, threads, seconds = sys.argv[1:]
    step = build(kind, name, int(length), float(drop), int(threads))
    for _ in range(WARM_UP_STEPS):
        step()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(window(step, int(length), float(seconds))), flush=True)


if __name__ == "__main__":
    main()
