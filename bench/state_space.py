"""The diagonal scan against S4D's convolution in PyTorch, forward and backward, in turn.

  python bench/state_space.py [--library build/liblra_ops.so] [--threads N] [--rounds R] [--json FILE]

Three implementations of one layer, both directions, N real states (N / 2 conjugate pairs):
  scan    torch.ops.lra.diagonal_scan
  tables  the kernel from two small tables of powers, then rfft and irfft of 2 L
  vander  the kernel from one array [D, N / 2, L] of powers, as published, then the same
Rounds alternate between them; a row shows medians, of processor time with one thread.
"""
import argparse
import json
import math
import statistics
import time

import torch

CLOCK = time.process_time  # of one thread: other programs have less influence on it


def poles(d, n):
    """a = exp(dt lambda) of S4D-Lin, [D, N / 2], and c for two directions."""
    g = torch.Generator().manual_seed(1)
    dt = torch.exp(torch.rand(d, 1, generator=g) * math.log(100) + math.log(1e-3))
    lam = -0.5 + 1j * math.pi * torch.arange(n // 2)
    c = torch.randn(2, d, n // 2, dtype=torch.complex64, generator=g) * dt
    return (dt * lam).to(torch.complex64), c


def scan(x, log_a, c):
    a = torch.exp(log_a)
    planes = lambda z: torch.stack([z.real, z.imag], -3).transpose(-1, -2)
    return torch.ops.lra.diagonal_scan(x, planes(a), planes(2 * c))


def convolved(x, kernels):
    length = x.shape[1]
    k = torch.cat([kernels[0], kernels[1].flip(-1)], -1)  # [D, 2 L]
    u = x.transpose(1, 2)
    y = torch.fft.irfft(torch.fft.rfft(u, n=2 * length) * torch.fft.rfft(k), n=2 * length)
    return y[..., :length].transpose(1, 2)


def vander(x, log_a, c):
    powers = torch.exp(log_a[..., None] * torch.arange(x.shape[1]))
    return convolved(x, 2 * torch.einsum("kdn,dnl->kdl", c, powers).real)


def tables(x, log_a, c):
    length = x.shape[1]
    m = 1 << (math.ceil(math.log2(length)) // 2)
    rows = -(-length // m)
    high = torch.exp(log_a[..., None] * (m * torch.arange(rows)))
    low = torch.exp(log_a[..., None] * torch.arange(m))
    k = 2 * torch.einsum("kdnr,dnm->kdrm", c[..., None] * high, low).real
    return convolved(x, k.flatten(-2)[..., :length])


def run(f, x, log_a, c, grad):
    for t in (x, log_a, c):
        t.grad = None
    start = CLOCK()
    y = f(x, log_a, c)
    middle = CLOCK()
    y.backward(grad)
    end = CLOCK()
    return y.detach(), middle - start, end - middle


def measure(batch, length, dim, n, rounds):
    log_a, c = poles(dim, n)
    x, grad = torch.randn(2, batch, length, dim)
    leaves = [t.clone().requires_grad_() for t in (x, log_a, c)]
    times, results = {}, {}
    for turn in range(rounds + 1):
        for f in (scan, tables, vander):
            y, forward, backward = run(f, *leaves, grad)
            if turn == 0:
                results[f.__name__] = [y] + [t.grad.clone() for t in leaves]
            else:
                times.setdefault(f.__name__, []).append((forward, backward))
    row = {"batch": batch, "length": length, "dim": dim, "n": n}
    for name, pairs in times.items():
        row[name + "_ms"] = 1e3 * statistics.median(f + b for f, b in pairs)
        row[name + "_forward_ms"] = 1e3 * statistics.median(f for f, _ in pairs)
    for name in ("tables", "vander"):
        row["ratio_" + name] = statistics.median(
            sum(p) / sum(q) for p, q in zip(times[name], times["scan"]))
        row["difference_" + name] = max(
            ((a - b).abs().max() / b.abs().max()).item()
            for a, b in zip(results["scan"], results[name]))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default="build/liblra_ops.so")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lengths", default="1024,4096")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--states", default="4,64")
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.ops.load_library(args.library)
    torch.set_num_threads(args.threads)
    if args.threads > 1:
        global CLOCK
        CLOCK = time.perf_counter
    torch.set_flush_denormal(True)
    integers = lambda text: [int(part) for part in text.split(",")]
    print("| L | D | N | scan ms (forward) | two tables + FFT ms | x | Vandermonde + FFT ms | x | ns a token and channel |")
    print("| ---: " * 9 + "|")
    rows = []
    for n in integers(args.states):
        for length in integers(args.lengths):
            for dim in integers(args.dims):
                r = measure(args.batch, length, dim, n, args.rounds)
                rows.append(r)
                ns = 1e6 * r["scan_ms"] / (args.batch * length * dim)
                print(f"| {length} | {dim} | {n} | {r['scan_ms']:.1f} ({r['scan_forward_ms']:.1f}) "
                      f"| {r['tables_ms']:.0f} | {r['ratio_tables']:.1f} | {r['vander_ms']:.0f} "
                      f"| {r['ratio_vander']:.1f} | {ns:.1f} |", flush=True)
    worst = max(max(r["difference_tables"], r["difference_vander"]) for r in rows)
    print(f"\nlargest difference of values and gradients, relative to the largest: {worst:.1e}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"threads": args.threads, "rounds": args.rounds, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
