"""State-space layers against their forms in PyTorch and JAX, forward and backward, in turn.

  python bench/state_space.py [--layer s4d|s5|s6] [--library build/liblra_ops.so] [--threads N]
                              [--rounds R] [--json FILE]

s4d: three implementations of one layer, both directions, N real states (N / 2 conjugate pairs):
  scan    torch.ops.lra.diagonal_scan
  tables  the kernel from two small tables of powers, then rfft and irfft of 2 L
  vander  the kernel from one array [D, N / 2, L] of powers, as published, then the same
s5: one state space of N states (N / 2 pairs) for D channels, both directions, with B and C:
  mimo    a product, torch.ops.lra.state_scan, a product
  tree    the same around an associative scan of log2 L levels in PyTorch, the algorithm of JAX's
  fft     the same around a convolution of each state by FFT
  jax     jax.lax.associative_scan, compiled, where jax is installed
s6: the selective scan of Mamba, N states for each of D channels:
  fused   torch.ops.lra.selective_scan
  loop    the recurrence, a position at a time
  tree    an associative scan of log2 L levels
  pscan   that of mambapy, a package that runs on CPUs, where it is installed
Rounds alternate between them; a row shows medians, of processor time with one thread.
"""
import argparse
import importlib.util
import json
import math
import os
import statistics
import time

import numpy
import torch

STATES = {"s4d": "4,64", "s5": "16,256", "s6": "16"}
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
    parts = lambda z: torch.stack([z.real, z.imag], -3).transpose(-1, -2)
    return torch.ops.lra.diagonal_scan(x, parts(a), parts(2 * c))


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


def planes(z):
    return torch.stack([z.real, z.imag], -2)


def mimo(u, log_a, b, c):
    a = torch.exp(log_a)
    v = torch.ops.lra.linear(u, torch.cat([b.real, b.imag]))
    x = torch.ops.lra.state_scan(v.unflatten(2, (2, len(a))), planes(a), True)
    weights = torch.stack([2 * c.real, -2 * c.imag], 2)  # [D, 2, 2, P]
    return torch.ops.lra.linear(x.flatten(2), weights.flatten(1))


def tree_scan(a, v):
    """x[t] = a[t] x[t - 1] + v[t] along axis 1: pairs joined, scanned, and filled up."""
    if v.shape[1] == 1:
        return v
    even_a, odd_a, even_v, odd_v = a[:, ::2], a[:, 1::2], v[:, ::2], v[:, 1::2]
    pairs = even_a[:, :odd_a.shape[1]] * odd_a, odd_a * even_v[:, :odd_v.shape[1]] + odd_v
    odd = tree_scan(*pairs)
    rest = even_v[:, 1:] + even_a[:, 1:] * odd[:, :even_v.shape[1] - 1]
    even = torch.cat([even_v[:, :1], rest], 1)
    x = torch.empty_like(v)
    x[:, ::2], x[:, 1::2] = even, odd
    return x


def around(states):
    """Both directions of states(a, v), with B in front and C behind."""
    def layer(u, log_a, b, c):
        v = u.to(b.dtype) @ b.T
        x = states(log_a, v), states(log_a, v.flip(1)).flip(1)
        return 2 * sum((x[k] @ c[:, k].T).real for k in (0, 1))
    return layer


def tree_states(log_a, v):
    return tree_scan(torch.exp(log_a).expand(1, v.shape[1], -1), v)


def fft_states(log_a, v):
    length = v.shape[1]
    powers = torch.exp(log_a * torch.arange(length)[:, None])
    spectrum = torch.fft.fft(v, 2 * length, 1) * torch.fft.fft(powers, 2 * length, 0)
    return torch.fft.ifft(spectrum, dim=1)[:, :length]


def fused(x, dt, log_a, b, c):
    return torch.ops.lra.selective_scan(x, dt, -torch.exp(log_a), b, c, torch.zeros(x.shape[2]))


def selective(states):
    """The selective scan around states(decay, inputs), both [B, L, D, N]."""
    def layer(x, dt, log_a, b, c):
        step = torch.nn.functional.softplus(dt)
        decay = torch.exp(-step[..., None] * torch.exp(log_a).T)
        return (states(decay, (step * x)[..., None] * b) * c).sum(3)
    return layer


def loop_states(decay, v):
    h, rows = 0, []
    for t in range(v.shape[1]):
        h = decay[:, t] * h + v[:, t]
        rows.append(h)
    return torch.stack(rows, 1)


class Jax:
    """Value and gradients of the layer in JAX, behind the interface of run()."""

    def __init__(self):
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        import jax
        import jax.numpy as jnp
        self.numpy = jnp

        def join(left, right):
            return right[0] * left[0], right[0] * left[1] + right[1]

        def layer(u, log_a, b, c):
            v = u @ b.T
            a = jnp.broadcast_to(jnp.exp(log_a), v.shape)
            x = [jax.lax.associative_scan(join, (a, v), reverse=r, axis=1)[1]
                 for r in (False, True)]
            return 2 * sum((x[k] @ c[:, k].T).real for k in (0, 1))

        self.forward = jax.jit(layer)
        self.both = jax.jit(lambda grad, *leaves: jax.vjp(layer, *leaves)[1](grad))

    def __call__(self, leaves, grad):
        """Forward alone, and forward with backward: the difference counts as backward."""
        arrays = [self.numpy.asarray(t.detach().numpy()) for t in leaves]
        grad = self.numpy.asarray(grad.numpy())
        start = CLOCK()
        y = self.forward(*arrays).block_until_ready()
        middle = CLOCK()
        grads = [g.block_until_ready() for g in self.both(grad, *arrays)]
        end = CLOCK()
        to_torch = lambda z: torch.tensor(numpy.asarray(z))
        # JAX's gradient of a complex number is the conjugate of PyTorch's.
        return ([to_torch(y)] + [to_torch(g).conj() if g.dtype.kind == "c" else to_torch(g)
                                 for g in grads], middle - start, end - middle - (middle - start))


def run(f, leaves, grad):
    """Value and gradients, seconds forward and backward."""
    if isinstance(f, Jax):
        return f(leaves, grad)
    for t in leaves:
        t.grad = None
    start = CLOCK()
    y = f(*leaves)
    middle = CLOCK()
    y.backward(grad)
    end = CLOCK()
    return [y.detach()] + [t.grad.clone() for t in leaves], middle - start, end - middle


def in_turn(functions, leaves, grad, rounds):
    """{name: medians in ms, ratios to the first and differences from it}"""
    times, results, first = {}, {}, next(iter(functions))
    for turn in range(rounds + 1):
        for name, f in functions.items():
            values, forward, backward = run(f, leaves, grad)
            if turn == 0:  # compiles, and fills caches
                results[name] = values
            else:
                times.setdefault(name, []).append((forward, backward))
    row = {}
    for name, pairs in times.items():
        row[name + "_ms"] = 1e3 * statistics.median(f + b for f, b in pairs)
        row[name + "_forward_ms"] = 1e3 * statistics.median(f for f, _ in pairs)
        if name == first:
            continue
        row["ratio_" + name] = statistics.median(
            sum(p) / sum(q) for p, q in zip(times[name], times[first]))
        row["difference_" + name] = max(
            ((a - b).abs().max() / b.abs().max()).item()
            for a, b in zip(results[first], results[name]))
    return row


def leaf(t):
    return t.detach().clone().requires_grad_()


def measure_s4d(batch, length, dim, n, rounds, functions):
    log_a, c = poles(dim, n)
    x, grad = torch.randn(2, batch, length, dim)
    return in_turn(functions, [leaf(t) for t in (x, log_a, c)], grad, rounds)


def measure_s5(batch, length, dim, n, rounds, functions):
    log_a = poles(n // 2, 4)[0][:, 1]
    b = torch.randn(n // 2, dim, dtype=torch.complex64) / math.sqrt(dim)
    c = torch.randn(dim, 2, n // 2, dtype=torch.complex64) / math.sqrt(n)
    u, grad = torch.randn(2, batch, length, dim)
    return in_turn(functions, [leaf(t) for t in (u, log_a, b, c)], grad, rounds)


def measure_s6(batch, length, dim, n, rounds, functions):
    x, dt, grad = torch.randn(3, batch, length, dim)
    b, c = torch.randn(2, batch, length, 1, n)
    log_a = torch.log(torch.arange(n) + 1.0)[:, None].expand(n, dim)
    return in_turn(functions, [leaf(t) for t in (x, dt - 3, log_a, b, c)], grad, rounds)


def layer_functions(layer):
    if layer == "s4d":
        return measure_s4d, {"scan": scan, "tables": tables, "vander": vander}
    if layer == "s6":
        functions = {"fused": fused, "loop": selective(loop_states), "tree": selective(tree_scan)}
        if importlib.util.find_spec("mambapy"):
            from mambapy.pscan import pscan
            functions["pscan"] = selective(pscan)
        return measure_s6, functions
    functions = {"mimo": mimo, "tree": around(tree_states), "fft": around(fft_states)}
    if importlib.util.find_spec("jax"):
        functions["jax"] = Jax()
    return measure_s5, functions


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default="build/liblra_ops.so")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lengths", default="1024,4096")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--states", help="4,64 for s4d, 16,256 for s5, 16 for s6")
    parser.add_argument("--layer", default="s4d", choices=list(STATES))
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.ops.load_library(args.library)
    torch.set_num_threads(args.threads)
    if args.threads > 1:
        global CLOCK
        CLOCK = time.perf_counter
    torch.set_flush_denormal(True)
    integers = lambda text: [int(part) for part in text.split(",")]
    measure, functions = layer_functions(args.layer)
    first, *others = functions
    titles = [f"{first} ms (forward)"] + [t for name in others for t in (f"{name} ms", "x")]
    print("| L | D | N | " + " | ".join(titles) + " | ns a token and channel |")
    print("| ---: " * (len(titles) + 4) + "|")
    rows = []
    for n in integers(args.states or STATES[args.layer]):
        for length in integers(args.lengths):
            for dim in integers(args.dims):
                r = {"batch": args.batch, "length": length, "dim": dim, "n": n}
                r |= measure(args.batch, length, dim, n, args.rounds, functions)
                rows.append(r)
                ns = 1e6 * r[first + "_ms"] / (args.batch * length * dim)
                cells = [f"{r[first + '_ms']:.1f} ({r[first + '_forward_ms']:.1f})"]
                cells += [t for name in others
                          for t in (f"{r[name + '_ms']:.0f}", f"{r['ratio_' + name]:.1f}")]
                print(f"| {length} | {dim} | {n} | " + " | ".join(cells) + f" | {ns:.1f} |",
                      flush=True)
    worst = max(r["difference_" + name] for r in rows for name in others)
    print(f"\nlargest difference of values and gradients, relative to the largest: {worst:.1e}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"layer": args.layer, "threads": args.threads, "rounds": args.rounds, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
