#!/usr/bin/env bash
# transformers 5.23.0 (torch 2.13.0, CPU): the random blocks of BigBird's block-sparse attention in evaluation.
# Guess: a query sees its three random blocks in evaluation as in training, perhaps others. Seen: in evaluation all three are block 0,
# which every query sees anyway, so a query in the middle sees 5 of 64 blocks instead of 8, and block 0 counts four times.
# So the trained pattern is not the evaluated one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy transformers==5.23.0
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from transformers import BigBirdConfig, BigBirdModel

BLOCK, BLOCKS = 16, 64
torch.manual_seed(0)
config = BigBirdConfig(vocab_size=99, hidden_size=64, num_attention_heads=1, num_hidden_layers=1, intermediate_size=64,
                       max_position_embeddings=BLOCK * BLOCKS, block_size=BLOCK, num_random_blocks=3,
                       hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
model = BigBirdModel(config, add_pooling_layer=False)


def blocks_seen(training):
    model.train(training)
    x = torch.randn(1, BLOCK * BLOCKS, 64, requires_grad=True)
    (model(inputs_embeds=x).last_hidden_state[0, BLOCK * BLOCKS // 2] @ torch.randn(64)).backward()
    return int(x.grad[0].view(BLOCKS, -1).abs().sum(1).gt(0).sum())


trained, evaluated = blocks_seen(True), blocks_seen(False)
print(f"blocks of {BLOCKS} that a query in the middle sees: {trained} in training, {evaluated} in evaluation")
assert trained > 5 and evaluated == 5
PYTHON
