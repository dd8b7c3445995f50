"""One peer in a process of its own: builds it, warms up, then times a window at every request.

    peer_process.py KIND NAME WORKLOAD BATCH LENGTH DROP MODE DTYPE DEVICE THREADS SECONDS [FILE]

MODE is train (forward, backward and update) or infer (forward without dropout), DTYPE fp32 or bf16,
DEVICE cpu or cuda. FILE holds a larger batch, of which a step takes BATCH sequences; the last of them
updates. Without it tokens are random. Prints "ready" and then, for every line that it reads, one line of JSON: tokens
per second in a window of whole steps that fill SECONDS, and the peak resident bytes so far; on a GPU
the peak bytes of tensors in place of them. A window on a GPU is waited for once, at its end.

What cannot be built or run, such as a package that is not installed, ends with a line "failed: WHY".
"""
import dataclasses
import json
import math
import resource
import sys
import time

from workload import WORKLOADS, examples

WARM_UP_STEPS = 2


def framework_of(kind):
    """The module that builds peers of a kind."""
    if kind == "jax":
        import jax_peers
        return jax_peers
    import torch_peers
    return torch_peers


def build(kind, name, work, batch, length, drop, mode, dtype, device, threads, file):
    work = dataclasses.replace(WORKLOADS[work], batch=int(batch))
    words = {} if kind == "jax" else {"kind": kind, "device": device, "threads": int(threads)}
    return framework_of(kind).build(name=name, length=int(length), drop=float(drop), dtype=dtype,
                                    train=mode == "train", work=work,
                                    batch=examples(work, int(length), file), **words)


def window(step, tokens, seconds, gpu):
    """`gpu` is the framework where it computes on one."""
    start, steps = time.perf_counter(), 0
    while steps == 0 or time.perf_counter() - start < seconds:
        result = step()
        if not gpu:
            result = float(result)  # JAX returns before it has computed
        steps += 1
    if gpu:
        gpu.wait(result)
    rate = steps * tokens / (time.perf_counter() - start)
    if not math.isfinite(float(result)):
        raise ArithmeticError(f"the step gave {float(result)}")
    if gpu:
        return {"tokens_per_s": rate, "peak_tensor_bytes": gpu.peak_tensor_bytes()}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"tokens_per_s": rate, "peak_resident_bytes": peak}


def warm_up(step, gpu):
    for _ in range(WARM_UP_STEPS):
        result = step()
    if not gpu:
        float(result)
        return
    gpu.wait(result)
    gpu.forget_peak()


def serve(kind, name, work, batch, length, drop, mode, dtype, device, threads, seconds, file=""):
    step = build(kind, name, work, batch, length, drop, mode, dtype, device, threads, file)
    gpu = framework_of(kind) if device == "cuda" else None
    warm_up(step, gpu)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(window(step, int(batch) * int(length), float(seconds), gpu)), flush=True)


def main():
    try:
        serve(*sys.argv[1:])
    except Exception as error:
        print("failed:", f"{type(error).__name__}: {error}".splitlines()[0], flush=True)
        raise


if __name__ == "__main__":
    main()
