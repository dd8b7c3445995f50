#!/usr/bin/env bash
# torch 2.13.0, safetensors 0.8.0, numpy 2.4.6, CPU: tensors that are conjugated lazily, as z.conj() and z.conj().imag are.
# Guess: wherever a tensor goes, its values go. Seen: four ways out of torch's operators read the memory without the bit that
# says so. A DataLoader with workers gives z instead of z.conj() and imaginary parts of the other sign, safetensors stores and
# numpy.from_dlpack gives the same, and all_reduce over gloo leaves such an imaginary part as it was, not summed over the ranks.
# DataLoaders without workers, torch.save and all_gather are right; Tensor.numpy() refuses.
# So what leaves a process is best resolved first (resolve_conj, resolve_neg, clone); `contiguous()` keeps the bit.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy==2.4.6 safetensors==0.8.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import os

import numpy
import safetensors.torch
import torch
import torch.distributed as dist
import torch.multiprocessing

spectra = torch.fft.rfft(torch.randn(4, 16, generator=torch.Generator().manual_seed(0)))
numbers, parts = spectra.conj().contiguous(), spectra.conj().imag
opposite = spectra.imag.clone()
assert torch.equal(parts, -opposite)

def batches(tensor, workers):
    return torch.stack(list(torch.utils.data.DataLoader(tensor, batch_size=None, num_workers=workers)))

assert torch.equal(batches(numbers, 0), numbers) and torch.equal(batches(parts, 0), parts)
loaded = batches(numbers, 1), batches(parts, 1)
print("DataLoader, one worker: conjugated", torch.equal(loaded[0], numbers), "sign kept", torch.equal(loaded[1], parts))
assert torch.equal(loaded[0], spectra) and torch.equal(loaded[1], opposite)

torch.save(numbers, "numbers.pt")
assert torch.equal(torch.load("numbers.pt"), numbers)
stored = safetensors.torch.load(safetensors.torch.save({"numbers": numbers}))["numbers"]
print("safetensors: conjugated", torch.equal(stored, numbers))
assert torch.equal(stored, spectra)

shared = torch.from_numpy(numpy.from_dlpack(parts).copy())
print("numpy.from_dlpack: sign kept", torch.equal(shared, parts))
assert torch.equal(shared, opposite)

def rank(index, results):
    dist.init_process_group("gloo", init_method="file://" + results + ".store", rank=index, world_size=2)
    gathered = [torch.zeros_like(opposite) for _ in range(2)]
    dist.all_gather(gathered, spectra.conj().imag)
    lazy, resolved = spectra.conj().imag, spectra.conj().imag.clone()
    dist.all_reduce(lazy)
    dist.all_reduce(resolved)
    if index == 0:
        torch.save((gathered, lazy, resolved), results)
    dist.destroy_process_group()

torch.multiprocessing.start_processes(rank, (os.path.abspath("results"),), 2, start_method="fork")
gathered, lazy, resolved = torch.load("results")
print("all_reduce over 2 ranks, share of the sum:", (lazy.norm() / resolved.norm()).item())
assert torch.equal(gathered[1], parts) and torch.equal(resolved, 2 * parts) and torch.equal(lazy, parts)
PYTHON
