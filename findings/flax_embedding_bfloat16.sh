#!/usr/bin/env bash
# flax 0.12.8 (jax 0.10.2), keras 3.15.1 on jax, torch 2.13.0, CPU: the gradient of an embedding that computes in bfloat16 and keeps
# its table in float32, for a byte that occurs 32,000 times with a gradient of 1. Guess: 32,000, as flax's Dense and LayerNorm give
# for their biases, since the parameter is float32. Seen: 256 from flax's Embed (linen and nnx), from any lookup in a table that was
# cast first, in jax and in torch, and from segment_sum: the sum over tokens is kept in bfloat16, which cannot count beyond 256.
# The gradients are float32 and nothing warns. Keras, torch's autocast and lookups that cast afterwards give 32,000. With random
# gradients and 131,072 tokens of 16 kinds the gradient is off by more than 5 %.
# Byte-level models have few rows and long batches, so their embedding is best looked up in float32 and cast after that.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q jax==0.10.2 flax==0.12.8 keras==3.15.1 torch==2.13.0 numpy
KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import flax.linen
import jax
import jax.numpy as jnp
import keras
import torch
from flax import nnx

TOKENS, KINDS, WIDTH = 32_000, 16, 8
ids = jnp.zeros((8, TOKENS // 8), jnp.int32)
table = jnp.zeros((KINDS, WIDTH))

def first(gradient):
    assert gradient.dtype == jnp.float32
    return float(gradient[0, 0])

def of_lookup(lookup):
    return first(jax.grad(lambda table: lookup(table).astype(jnp.float32).sum())(table))

def of_linen(dtype):
    layer = flax.linen.Embed(KINDS, WIDTH, dtype=dtype)
    loss = lambda table: layer.apply({"params": {"embedding": table}}, ids).astype(jnp.float32).sum()
    return first(jax.jit(jax.grad(loss))(table))

def of_nnx():
    layer = nnx.Embed(KINDS, WIDTH, dtype=jnp.bfloat16, rngs=nnx.Rngs(0))
    return first(nnx.grad(lambda layer: layer(ids).astype(jnp.float32).sum())(layer).embedding[...])

def of_keras():
    layer = keras.layers.Embedding(KINDS, WIDTH, dtype="mixed_bfloat16")
    layer.build(ids.shape)
    assert layer(ids).dtype == jnp.bfloat16
    return of_lookup(lambda table: layer.stateless_call([table], [], ids)[0])

def of_torch(lookup):
    parameter = torch.zeros(KINDS, WIDTH, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y = lookup(parameter, torch.zeros(8, TOKENS // 8, dtype=torch.long))
    y.float().sum().backward()
    assert parameter.grad.dtype == torch.float32
    return parameter.grad[0, 0].item()

embedding = torch.nn.functional.embedding
found = {"flax linen Embed, bfloat16": (of_linen(jnp.bfloat16), 256), "flax nnx Embed, bfloat16": (of_nnx(), 256),
         "flax linen Embed, float32": (of_linen(jnp.float32), TOKENS), "keras Embedding, mixed_bfloat16": (of_keras(), TOKENS),
         "jax, cast and look up": (of_lookup(lambda table: table.astype(jnp.bfloat16)[ids]), 256),
         "jax, look up and cast": (of_lookup(lambda table: table[ids].astype(jnp.bfloat16)), TOKENS),
         "jax segment_sum": (float(jax.ops.segment_sum(jnp.ones(TOKENS, jnp.bfloat16), ids.ravel(), KINDS)[0]), 256),
         "torch, cast and look up": (of_torch(lambda table, ids: embedding(ids, table.bfloat16())), 256),
         "torch, under autocast": (of_torch(lambda table, ids: embedding(ids, table)), TOKENS)}
for name, (gradient, expected) in found.items():
    print(f"{name:31} {gradient:.0f} of {TOKENS}")
    assert gradient == expected, name

keys = jax.random.split(jax.random.key(0))
ids, weights = jax.random.randint(keys[0], (131_072,), 0, KINDS), jax.random.normal(keys[1], (131_072, WIDTH))
gradient, exact = (jax.grad(lambda table: (table.astype(dtype)[ids].astype(jnp.float32) * weights).sum())(table)
                   for dtype in (jnp.bfloat16, jnp.float32))
error = float(jnp.linalg.norm(gradient - exact) / jnp.linalg.norm(exact))
print(f"random gradients of 131,072 tokens: {100 * error:.0f} % off")
assert error > 0.05
PYTHON
