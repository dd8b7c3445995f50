"""An encoder, its training step and its forward pass in JAX with flax.linen and optax."""
import itertools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import jax_mixers
from workload import Workload, sinusoids

jax.config.update("jax_default_prng_impl", "unsafe_rbg")


class Layer(nn.Module):
    work: Workload
    core: str
    drop: float
    train: bool
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        dropout = lambda y: nn.Dropout(self.work.dropout, deterministic=not self.train)(y)
        dense = lambda width, **words: nn.Dense(width, dtype=self.dtype, **words)
        norm = lambda y: nn.LayerNorm(dtype=self.dtype)(y)
        batch, length, _ = x.shape
        heads = dense(3 * self.work.qkv, use_bias=False)(norm(x))
        q, k, v = heads.reshape(batch, length, 3, self.work.heads, -1).transpose(2, 0, 3, 1, 4)
        mixed = jax_mixers.CORES[self.core](self.drop if self.train else 0.0)(q, k, v)
        mixed = mixed.transpose(0, 2, 1, 3).reshape(batch, length, -1)
        x = x + dropout(dense(self.work.width, use_bias=False)(mixed))
        hidden = dropout(nn.gelu(dense(self.work.mlp)(norm(x))))
        return x + dropout(dense(self.work.width)(hidden))


class Encoder(nn.Module):
    work: Workload
    core: str
    drop: float
    train: bool
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, tokens):
        work = self.work
        x = nn.Embed(work.vocabulary, work.width)(tokens) + sinusoids(tokens.shape[1], work.width)
        x = nn.Dropout(work.dropout, deterministic=not self.train)(x).astype(self.dtype)
        for _ in range(work.layers):
            x = Layer(work, self.core, self.drop, self.train, self.dtype)(x)
        x = nn.LayerNorm()(x.astype(jnp.float32)).mean(1)
        return nn.Dense(work.classes)(nn.relu(nn.Dense(work.mlp)(x)))


def build(name, length, drop, train, dtype, work, batch):
    """A function that makes one training step, or one forward pass; it returns a number of it.
    `batch` has tokens and labels; where it is larger than work.batch, calls take its micro-batches in
    turn, and the last one updates. With bf16 the layers compute in bfloat16, parameters stay float32."""
    model = Encoder(work, name, drop, train, jnp.bfloat16 if dtype == "bf16" else jnp.float32)
    optimizer = optax.adamw(1e-4)
    keys = jax.random.split(jax.random.key(0), 2)
    micro_batches = [tuple(jnp.asarray(array[first:first + work.batch], jnp.int32) for array in batch)
                     for first in range(0, len(batch[1]), work.batch)]
    tokens = micro_batches[0][0]
    if len(micro_batches) > 1:
        optimizer = optax.MultiSteps(optimizer, len(micro_batches))
    # "noise" is what the definitions have in training alone.
    streams = lambda key: dict(zip(("mixer", "dropout", "noise")[:3 if train else 1], jax.random.split(key, 3)))
    parameters = jax.jit(model.init)({"params": keys[0], **streams(keys[1])}, tokens)

    if not train:
        infer = jax.jit(lambda p: model.apply(p, tokens, rngs=streams(keys[1])).sum())
        return lambda: infer(parameters)

    def loss_of(parameters, key, tokens, labels):
        logits = model.apply(parameters, tokens, rngs=streams(key))
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def update(parameters, state, key, tokens, labels):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, key, tokens, labels)
        change, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, change), state, loss

    update = jax.jit(update, donate_argnums=(0, 1))
    in_turn = itertools.cycle(micro_batches)
    now = {"parameters": parameters, "state": optimizer.init(parameters), "step": 0}

    def step():
        key = jax.random.fold_in(keys[1], now["step"])
        now["parameters"], now["state"], loss = update(now["parameters"], now["state"], key, *next(in_turn))
        now["step"] += 1
        return loss
    return step


def wait(result):
    """Until the GPU has computed it; a step's update is computed with its loss."""
    jax.block_until_ready(result)


def forget_peak():
    """JAX cannot: its peak has the first compilation in it."""


def peak_tensor_bytes():
    return jax.devices()[0].memory_stats()["peak_bytes_in_use"]
