#!/usr/bin/env bash
# webdataset 1.0.2 (torch 2.13.0, CPU): shuffling with a seed. Guess: the same seed gives the same run, and every epoch has
# another order. Seen: `shuffle` with a seed gives every epoch the very same order, with and without workers; `detshuffle` and
# shards shuffled with `detshuffle=True` do so with workers that are started anew for each epoch, as they are by default, since
# they count epochs in a copy. Without a seed the order is another one in each run, whatever torch and random are seeded with.
# So a reproducible run by these two sees one order, however many epochs it trains.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy webdataset==1.0.2
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import random

import torch
import webdataset

SHARDS, EXAMPLES, EPOCHS = 4, 32, 4
for shard in range(SHARDS):
    with webdataset.TarWriter(f"{shard}.tar") as writer:
        for i in range(shard, EXAMPLES, SHARDS):
            writer.write({"__key__": f"{i:02}", "txt": str(i)})

def dataset(**shards):
    return webdataset.WebDataset([f"{i}.tar" for i in range(SHARDS)], **{"shardshuffle": False, **shards})

def orders(make, workers, keeps_workers):
    """The examples of each epoch in their order, of one run."""
    torch.manual_seed(0)
    random.seed(0)
    loader = torch.utils.data.DataLoader(make().decode().to_tuple("txt"), batch_size=None, num_workers=workers,
                                         persistent_workers=keeps_workers)
    epochs = [[int(example) for example, in loader] for _ in range(EPOCHS)]
    assert all(sorted(epoch) == list(range(EXAMPLES)) for epoch in epochs)
    return epochs

datasets = {"shuffle(seed=1)": lambda: dataset().shuffle(EXAMPLES, seed=1),
            "detshuffle": lambda: dataset().compose(webdataset.detshuffle(EXAMPLES)),
            "shards, seed=1": lambda: dataset(shardshuffle=SHARDS, detshuffle=True, seed=1),
            "shuffle": lambda: dataset().shuffle(EXAMPLES)}
for name, make in datasets.items():
    for workers, keeps_workers in ((0, False), (1, True), (1, False), (2, False)):
        run, again = orders(make, workers, keeps_workers), orders(make, workers, keeps_workers)
        different = len({tuple(epoch) for epoch in run})
        print(f"{name:16} {workers} workers{', kept' if keeps_workers else '':6} orders in {EPOCHS} epochs: {different}; "
              f"the same in another run: {run == again}")
        stuck = name == "shuffle(seed=1)" or name != "shuffle" and workers and not keeps_workers
        assert (different == 1) == bool(stuck) and (run == again) == (name != "shuffle")
PYTHON
