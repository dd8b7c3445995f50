"""Mixers put together from the operators of liblra_ops.so, for their gradients."""
import os
import pathlib

import torch

from definitions import draws
from packages.carry import HEAD_DIM, HEADS

LIBRARY = pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent / "liblra_ops.so"
torch.ops.load_library(str(LIBRARY))
ops = torch.ops.lra


def heads(x, weight, parts=3):
    return ops.linear(x, weight).view(*x.shape[:2], parts, HEADS, HEAD_DIM)


def attend(x, valid, w, **pattern):
    mask = valid.to(torch.uint8)
    y = ops.packed_attention(heads(x, w["qkv.weight"]), mask, mask, scale=HEAD_DIM**-0.5, **pattern)
    return ops.linear(y.flatten(2), w["output.weight"])


def transformer(x, valid, w, settings):
    return attend(x, valid, w)


def blocks_of(rows, block):
    """The key blocks that each query block sees."""
    ends = torch.tensor([0, *map(len, rows)]).cumsum(0)
    keys = torch.tensor([key for row in rows for key in sorted(row)], dtype=torch.int32)
    return {"offsets": ends, "key_blocks": keys, "sizes": [block, block, -1, -1]}


def local(x, valid, w, settings):
    num_blocks = -(-x.shape[1] // settings["block"])
    return attend(x, valid, w, **blocks_of([[n] for n in range(num_blocks)], settings["block"]))


def longformer(x, valid, w, settings):
    assert settings["global_tokens"] == 0
    half = settings["window"] // 2
    return attend(x, valid, w, sizes=[0, 0, half, half])


def bigbird(x, valid, w, settings):
    num_blocks = x.shape[1] // settings["block"]
    key = draws.weight_key(0, "pattern")
    rows = [row for head in range(HEADS)
            for row in draws.bigbird_blocks(key, head, num_blocks, settings["random_blocks"],
                                            num_blocks)]
    return attend(x, valid, w, **blocks_of(rows, settings["block"]))


def linformer(x, valid, w, settings):
    (q,) = heads(x, w["query.weight"], 1).unbind(2)
    k, v = torch.einsum("lr,blphe->brphe", w["projection"][:x.shape[1]],
                        heads(x * valid[:, :, None], w["key_value.weight"], 2)).unbind(2)
    y = ops.attention(q, k, v, query_mask=valid.to(torch.uint8), scale=HEAD_DIM**-0.5)
    return ops.linear(y.flatten(2), w["output.weight"])


def linear_transformer(x, valid, w, settings):
    y = ops.packed_feature_attention(heads(x, w["qkv.weight"]), "elu", valid.to(torch.uint8), 0.0,
                                     settings["eps"])
    return ops.linear(y.flatten(2), w["output.weight"])
