"""Layers of other people's packages that want a few lines around them to enter the arena.

The others go in by their own names: tests/python/outside_check.py.
"""
import torch
from mambapy.mamba import MambaBlock, MambaConfig
from transformers import BigBirdConfig, BigBirdModel, LongformerConfig
from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention


def mamba(dim, d_state=16):
    """MambaBlock takes its arguments as a config."""
    return MambaBlock(MambaConfig(d_model=dim, n_layers=1, d_state=d_state))


class BigBird(torch.nn.Module):
    """BigBirdModel makes the four masks of its layers; lengths are multiples of block_size."""

    def __init__(self, dim, heads, max_length, layer, block_size=16, num_random_blocks=1):
        super().__init__()
        config = BigBirdConfig(
            hidden_size=dim, num_attention_heads=heads, max_position_embeddings=max_length,
            block_size=block_size, num_random_blocks=num_random_blocks)
        self.attention = BigBirdBlockSparseAttention(config, seed=layer)
        self.output = torch.nn.Linear(dim, dim)

    def forward(self, x, mask):
        blocked, band, queries, keys = BigBirdModel.create_masks_for_block_sparse_attn(
            mask.to(x.dtype), self.attention.block_size)
        y, _ = self.attention(
            x, band_mask=band, from_mask=queries, to_mask=keys, from_blocked_mask=blocked,
            to_blocked_mask=blocked)
        return self.output(y)


class Longformer(torch.nn.Module):
    """LongformerModel marks padding by a negative number; lengths are multiples of the window."""

    def __init__(self, dim, heads, window=32):
        super().__init__()
        config = LongformerConfig(
            hidden_size=dim, num_attention_heads=heads, attention_window=[window])
        self.attention = LongformerSelfAttention(config, layer_id=0)
        self.output = torch.nn.Linear(dim, dim)

    def forward(self, x, mask):
        y, *_ = self.attention(
            x, attention_mask=(~mask).to(x.dtype) * -10000, is_index_masked=~mask,
            is_global_attn=False)
        return self.output(y)
