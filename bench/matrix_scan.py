"""Decayed linear attention and the delta rule against PyTorch in chunks, forward and backward, in turn.

  python bench/matrix_scan.py [--kinds ssd,gla,delta] [--lengths 1024,4096] [--width 128] [--heads 4]
                              [--batch B] [--chunk T] [--threads N] [--rounds R] [--library FILE]

ssd has one decay for a head (Mamba-2, RetNet), gla one for each row of the state (GLA, HGRN2), delta the
gated delta rule (Gated DeltaNet). fused is torch.ops.lra.matrix_scan, chunks the same recurrence in plain
PyTorch, by products inside chunks of T positions and a loop over chunks. Keys and values of a head are
width / heads wide. Times are medians over rounds, of the processor time of all threads (--clock wall: of the
clock on the wall); memory is what a process grows by at its peak. The exponent is that of time in length.
"""
import argparse
import math
import multiprocessing
import pathlib
import re
import statistics

import state_space
import torch


def meetings(rows, columns, sums, first):
    """sum_n rows_in columns_jn exp(c_in - c_jn), 0 for j > i - first."""
    after = torch.ones(rows.shape[-2], rows.shape[-2], dtype=torch.bool).triu(1 - first)
    weights = (sums[..., :, None, :] - sums[..., None, :, :]).masked_fill(after[..., None], -math.inf).exp()
    if sums.shape[-1] == 1:
        return (rows @ columns.mT) * weights[..., 0]
    return (rows[..., :, None, :] * columns[..., None, :, :] * weights).sum(-1)


def chunked(chunk):
    def layer(q, k, v, log_decay, beta=None):
        chunks = lambda t: t.unflatten(1, (-1, chunk)).permute(0, 3, 1, 2, 4)
        q, k, u, sums = chunks(q), chunks(k), chunks(v), chunks(log_decay).cumsum(-2)
        last = sums[..., -1:, :]
        attends, from_start, to_end = meetings(q, k, sums, 0), q * sums.exp(), k * (last - sums).exp()
        if beta is not None:
            beta = chunks(beta[..., None])
            both = beta * torch.cat([u, k * sums.exp()], -1)
            solved = torch.linalg.solve_triangular(beta * meetings(k, k, sums, 1), both, upper=False, unitriangular=True)
            u, reads = solved.split([v.shape[3], k.shape[-1]], -1)
            reads = reads.unbind(2)
        state, outputs = 0, []
        parts = [t.unbind(2) for t in (attends, from_start, last.exp().mT, to_end.mT, u)]
        for n, (attends, from_start, decay, keys, u) in enumerate(zip(*parts)):
            if beta is not None and n > 0:
                u = u - reads[n] @ state
            outputs.append(attends @ u + from_start @ state if n > 0 else attends @ u)
            state = decay * state + keys @ u
        return torch.cat(outputs, 2).transpose(1, 2)
    return layer


def fused(*inputs):
    return torch.ops.lra.matrix_scan(*inputs)


def problem(kind, length, args):
    """Leaves of one problem and the gradient of its result."""
    torch.manual_seed(0)
    shape, each = (args.batch, length, args.heads), args.width // args.heads
    q, k, v, grad = torch.randn(4, *shape, each)
    log_decay = -0.1 * torch.rand(*shape, each if kind == "gla" else 1)
    tensors = [q, torch.nn.functional.normalize(k, dim=-1), v, log_decay]
    if kind == "delta":
        tensors.append(torch.rand(shape))
    return [state_space.leaf(t) for t in tensors], grad


def prepare(args):
    torch.ops.load_library(args.library)
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)


def peak_mib():
    """The most memory since the last call, in MiB."""
    most = re.search(r"VmHWM:\s*(\d+)", pathlib.Path("/proc/self/status").read_text())
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    return int(most.group(1)) / 1024


def growth(name, kind, length, args, results):
    """MiB that a fresh process grows by."""
    prepare(args)
    f = {"fused": fused, "chunks": chunked(args.chunk)}[name]
    state_space.run(f, *problem(kind, args.chunk, args))  # loads and starts everything
    leaves, grad = problem(kind, length, args)
    peak_mib()
    before = peak_mib()
    state_space.run(f, leaves, grad)
    results.put(peak_mib() - before)


def peak(*arguments):
    spawn = multiprocessing.get_context("spawn")
    results = spawn.SimpleQueue()
    process = spawn.Process(target=growth, args=(*arguments, results))
    process.start()
    process.join()
    return results.get()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default="build/liblra_ops.so")
    parser.add_argument("--kinds", default="ssd,gla,delta")
    parser.add_argument("--lengths", default="1024,4096")
    for name, value in {"width": 128, "heads": 4, "batch": 4, "chunk": 64, "threads": 2, "rounds": 5}.items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--clock", choices=("processor", "wall"), default="processor")
    args = parser.parse_args()
    prepare(args)
    if args.clock == "wall":
        import time
        state_space.CLOCK = time.perf_counter
    print("| kind | L | fused ms (forward) | chunks ms | x | fused MiB | chunks MiB | ratio | exponent |")
    print("| --- " + "| ---: " * 8 + "|")
    for kind in args.kinds.split(","):
        before = None
        for length in (int(part) for part in args.lengths.split(",")):
            r = state_space.in_turn({"fused": fused, "chunks": chunked(args.chunk)}, *problem(kind, length, args), args.rounds)
            ours, theirs = (statistics.median(peak(name, kind, length, args) for _ in range(3)) for name in ("fused", "chunks"))
            exponent = f"{math.log(r['fused_ms'] / before[1]) / math.log(length / before[0]):.2f}" if before else ""
            before = length, r["fused_ms"]
            print(f"| {kind} | {length} | {r['fused_ms']:.1f} ({r['fused_forward_ms']:.1f}) | {r['chunks_ms']:.0f} | "
                  f"{r['ratio_chunks']:.1f} | {ours:.0f} | {theirs:.0f} | {ours / max(theirs, 1e-9):.2f} | {exponent} |", flush=True)
            assert r["difference_chunks"] < 1e-4, r["difference_chunks"]


if __name__ == "__main__":
    main()
