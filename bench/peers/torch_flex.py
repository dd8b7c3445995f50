"""The mechanisms whose pattern does not depend on the data, with FlexAttention: the pattern is a function of
a query's and a key's place, and what no query of a block sees is not computed.

The functions are those of the modules in torch_mixers.py and, BigBird's, in jax_mixers.py. There is no
dropout of attention weights. FlexAttention computes no gradients on the CPU, so training takes a GPU; its
tiles are chosen by trying (TUNED), since the untried ones refuse blocks of 64.
"""
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

# Tries kernels of FlexAttention, but takes the library's matrix products.
TUNED = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN"}
attend = torch.compile(flex_attention, options=TUNED)


def local(length, heads, block=50):
    return lambda batch, head, query, key: query // block == key // block


def longformer(length, heads, window=512):
    return lambda batch, head, query, key: (query - key).abs() <= window // 2


def bigbird_blocks(heads, n, random=3):
    """[H, n, n]: which blocks of keys a block of queries sees: the first, the last, its neighbors and
    `random` others. The first and the last see all."""
    place = torch.arange(n)
    fixed = (place[:, None] - place).abs() <= 1
    for end in (0, n - 1):
        fixed[end], fixed[:, end] = True, True
    chance = torch.rand(heads, n, n).masked_fill(fixed, -1.0)
    drawn = torch.zeros(heads, n, n, dtype=torch.bool).scatter_(-1, chance.topk(random).indices, True)
    return fixed | drawn


def bigbird(length, heads, block=64):
    blocks = bigbird_blocks(heads, length // block)
    return lambda batch, head, query, key: blocks[head, query // block, key // block]


def sparse(length, heads, stride=50, summary=10):
    def seen(batch, head, query, key):
        near = query // stride == key // stride
        far = key % stride >= stride - summary
        return ((near | far) & (key <= query)) | (query == 0) | (key == 0)
    return seen


class Flex(nn.Module):
    """`pattern` says which keys a query sees; what is not computed is listed in blocks of `size`."""

    def __init__(self, pattern, size, length, heads):
        super().__init__()
        own = heads if pattern is bigbird else None  # else all heads see the same
        self.mask = create_block_mask(pattern(length, heads), None, own, length, length,
                                      device=torch.get_default_device(), BLOCK_SIZE=size)

    def forward(self, q, k, v):
        return attend(q, k, v, block_mask=self.mask)


def core(pattern, size=128):
    return lambda length, heads, width, drop: Flex(pattern, size, length, heads)


CORES = {"local": core(local, 64), "longformer": core(longformer), "bigbird": core(bigbird, 64),
         "sparse": core(sparse)}
