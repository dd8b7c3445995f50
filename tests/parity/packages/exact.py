"""Mechanisms that choose pairs of tokens, by the packages that compute them.

Each function maps x [B, L, D], valid bool [B, L], our weights and the settings of the mixer to
[B, L, D]; rows of padding may hold anything.
"""
from unittest import mock

import torch
from local_attention import LocalAttention
from torch.nn.functional import scaled_dot_product_attention
from transformers import BigBirdConfig, LongformerConfig
from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention, BigBirdModel
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

from definitions import draws, pairs
from packages.carry import HEADS, WIDTH, call, joined, merged, project


def transformer(x, valid, w, settings):
    """torch.nn.MultiheadAttention"""
    module = torch.nn.MultiheadAttention(WIDTH, HEADS, bias=False, batch_first=True)
    weights = {"in_proj_weight": w["qkv.weight"], "out_proj.weight": w["output.weight"]}
    return call(module, weights, x, x, x, key_padding_mask=~valid, need_weights=False)[0]


def sparse_transformer(x, valid, w, settings):
    """torch's scaled_dot_product_attention; the pairs are those of our definition"""
    allowed = torch.from_numpy(pairs.sparse_transformer(x.shape[1], 0, settings))
    # A padded query may see itself: the package gives NaN to those that see nothing.
    allowed = allowed & valid[:, None, None, :] | torch.eye(x.shape[1], dtype=bool)
    return merged(scaled_dot_product_attention(*project(x, w["qkv.weight"], 3), allowed), w)


def synthesizer(x, valid, w, settings):
    """torch's scaled_dot_product_attention, to which the scores are a bias"""
    length = x.shape[1]
    if settings["variant"] == "random":
        scores = w["random"][:, :length, :length]
    else:
        scores = (w["factor1"] @ w["factor2"].transpose(1, 2))[:, :length, :length]
    allowed = valid[:, None, None, :]
    if settings["causal"]:
        allowed = allowed & torch.ones(length, length, dtype=bool).tril()
    bias = scores.masked_fill(~allowed, float("-inf"))
    if settings["dot_product"]:
        q, k, v = project(x, w["qkv.weight"], 3)
    else:
        (v,) = project(x, w["value.weight"])
        q = k = torch.zeros_like(v)
    return merged(scaled_dot_product_attention(q, k, v, bias), w)


def local(x, valid, w, settings):
    """local-attention, which looks neither back nor ahead"""
    attend = LocalAttention(settings["block"], look_backward=0, look_forward=0, autopad=True,
                            use_rotary_pos_emb=False)
    return merged(attend(*project(x, w["qkv.weight"], 3), mask=valid), w)


def longformer(x, valid, w, settings):
    """transformers; padded here to whole windows, as its model does"""
    config = LongformerConfig(hidden_size=WIDTH, num_attention_heads=HEADS, num_hidden_layers=1,
                              attention_window=[settings["window"]])
    batch, length, _ = x.shape
    rest = -length % settings["window"]
    kind = torch.where(valid, 0, -1)  # > 0 is global
    kind[:, :settings["global_tokens"]] = 1
    kind = torch.nn.functional.pad(kind, (0, rest), value=-1)
    query, key, value = w["qkv.weight"].chunk(3)
    # The package has these projections without global tokens, too, but does not use them.
    query_global, key_global, value_global = (
        (w["global_query.weight"], *w["global_key_value.weight"].chunk(2))
        if settings["global_tokens"] else (query, key, value))
    weights = {"query.weight": query, "key.weight": key, "value.weight": value,
               "query_global.weight": query_global, "key_global.weight": key_global,
               "value_global.weight": value_global}
    y = call(LongformerSelfAttention(config, 0), weights,
             torch.nn.functional.pad(x, (0, 0, 0, rest)), kind, is_index_masked=kind < 0,
             is_index_global_attn=kind > 0, is_global_attn=bool((kind > 0).any()))[0]
    return joined(y[:, :length], w)


def bigbird(x, valid, w, settings):
    """transformers, with our random blocks: its own are drawn in training, and in evaluation all
    of them are block 0, which is seen already"""
    block, wanted = settings["block"], settings["random_blocks"]
    config = BigBirdConfig(hidden_size=WIDTH, num_attention_heads=HEADS, use_bias=False,
                           block_size=block, num_random_blocks=wanted)
    blocks = x.shape[1] // block
    drawn = []
    for head in range(HEADS):
        rows = draws.bigbird_blocks(draws.weight_key(0, "pattern"), head, blocks, wanted, blocks)
        drawn.append([sorted(seen - {0, n - 1, n, n + 1, blocks - 1})
                      for n, seen in enumerate(rows)][1:-1])
    attention = BigBirdBlockSparseAttention(config)
    blocked, band, from_mask, to_mask = BigBirdModel.create_masks_for_block_sparse_attn(
        valid.to(x.dtype), block)
    query, key, value = w["qkv.weight"].chunk(3)
    weights = {"query.weight": query, "key.weight": key, "value.weight": value}
    # The first draws for one head after the other, at lengths of the paper; the second for all.
    with (mock.patch.object(attention, "_bigbird_block_rand_mask", side_effect=drawn) as by_head,
          mock.patch.object(attention, "_bigbird_block_rand_mask_with_head",
                            return_value=drawn) as together):
        y = call(attention, weights, x, band, from_mask, to_mask, blocked, blocked)[0]
    assert (by_head.call_count, together.call_count) in ((HEADS, 0), (0, 1))
    return joined(y, w)
