#!/usr/bin/env bash
# torchdata 0.11.0 (torch 2.13.0, CPU): a StatefulDataLoader resumed in the middle of an epoch, with torch's generator restored
# as it was when the state was taken. Guess: without workers, the rest of the epoch is the same to the bit. Seen: the order of
# examples is, in this epoch and the next, but random numbers that examples draw (noise, crops) are others, since a new iterator
# draws a seed from the same generator. With workers it is the same.
# So an exact resume needs random numbers that depend on seed, epoch and example alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy torchdata==0.11.0
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import torch
from torchdata.stateful_dataloader import StatefulDataLoader

class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.tensor([i, torch.rand(()).item()])

for workers in (0, 2):
    make = lambda: StatefulDataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=workers)
    torch.manual_seed(1)
    whole, loader = [], make()
    for epoch in range(2):
        for step, batch in enumerate(loader):
            whole.append(batch)
            if (epoch, step) == (0, 5):
                state, generator = loader.state_dict(), torch.get_rng_state()
    loader = make()
    torch.set_rng_state(generator)
    loader.load_state_dict(state)
    rest = [batch for _ in range(2) for batch in loader]
    pairs = list(zip(whole[6:], rest, strict=True))
    order = all(torch.equal(a[:, 0], b[:, 0]) for a, b in pairs)
    noise = sum(torch.equal(a[:, 1], b[:, 1]) for a, b in pairs)
    print(f"{workers} workers: the same order: {order}; batches with the same random numbers: {noise} of {len(pairs)}")
    assert order and noise == 0
PYTHON
