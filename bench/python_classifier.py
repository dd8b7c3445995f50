"""The Transformer of configs/models/transformer.toml in plain PyTorch, for bench/python_overhead.py.

As a script it trains itself in a loop without anything else: the least that a step can cost.

    python3 bench/python_classifier.py '{"steps": 30, "batch": 8, "length": 512, "threads": 1}'

A training pass appends the time at which it begins to the file that LRA_BENCH_TIMES names: of the
processor with one thread, on which other programs have less influence.
"""
import json
import os
import struct
import sys
import time

import torch

TIMES = os.environ.get("LRA_BENCH_TIMES")
clock = time.process_time if os.environ.get("OMP_NUM_THREADS") == "1" else time.monotonic


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
        self.out = torch.nn.Linear(width, width, bias=False)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(approximate="tanh"),
            torch.nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).transpose(1, 3).unbind(2)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Transformer(torch.nn.Module):
    """Tokens [B, L] -> logits [B, classes]."""

    def __init__(self, vocab_size, num_classes, max_length, width=256, heads=4, layers=4):
        super().__init__()
        self.file = os.open(TIMES, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if TIMES else None
        self.tokens = torch.nn.Embedding(vocab_size, width)
        self.positions = torch.nn.Parameter(torch.randn(max_length, width) * 0.02)
        self.blocks = torch.nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, num_classes)

    def forward(self, tokens):
        if self.training and self.file is not None:
            os.write(self.file, struct.pack("d", clock()))
        x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(x)).mean(1))


def main():
    a = json.loads(sys.argv[1])
    torch.set_num_threads(a["threads"])
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    model = Transformer(17, 10, a["length"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for _ in range(a["steps"]):
        tokens = torch.randint(1, 17, (a["batch"], a["length"]))
        loss = torch.nn.functional.cross_entropy(model(tokens), torch.randint(10, (a["batch"],)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
