"""One peer in a process of its own: builds it, warms up, then times a window at every request.

    peer_process.py KIND NAME WORKLOAD LENGTH DROP MODE DTYPE THREADS SECONDS

MODE is train (forward, backward and update) or infer (forward without dropout), DTYPE fp32 or bf16.
Prints "ready" and then, for every line that it reads, one line of JSON: tokens per second in a
window of whole steps that fill SECONDS, and the peak resident bytes so far.
"""
import json
import math
import resource
import sys
import time

from workload import WORKLOADS

WARM_UP_STEPS = 2


def build(kind, name, work, length, drop, mode, dtype, threads):
    if kind == "jax":
        import jax_peers
        return jax_peers.build(name, length, drop, mode == "train", dtype, work)
    import torch_peers
    return torch_peers.build(kind, name, length, drop, mode == "train", dtype, threads, work)


def window(step, tokens, seconds):
    start, steps = time.perf_counter(), 0
    while steps == 0 or time.perf_counter() - start < seconds:
        result = step()
        steps += 1
    rate = steps * tokens / (time.perf_counter() - start)
    if not math.isfinite(result):
        sys.exit(f"the step gave {result}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"tokens_per_s": rate, "peak_resident_bytes": peak}


def main():
    kind, name, work, length, drop, mode, dtype, threads, seconds = sys.argv[1:]
    work, length = WORKLOADS[work], int(length)
    step = build(kind, name, work, length, float(drop), mode, dtype, int(threads))
    for _ in range(WARM_UP_STEPS):
        step()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(window(step, work.batch * length, float(seconds))), flush=True)


if __name__ == "__main__":
    main()
