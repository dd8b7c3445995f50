"""The mechanisms in JAX (flax.linen), from their definitions.

A core maps queries, keys and values [B, H, L, E] to [B, H, L, E]; `drop` is the rate of attention
dropout. Random keys come from the streams "dropout" and "mixer".
"""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

HIDDEN = -1e9


def attend(core, q, k, v, bias=None, drop=0.0):
    """Softmax attention over the last two axes, with dropout of the weights."""
    scores = jnp.einsum("...qe,...ke->...qk", q, k) * q.shape[-1] ** -0.5
    weights = jax.nn.softmax(scores if bias is None else scores + bias, -1)
    if drop:
        keep = jax.random.bernoulli(core.make_rng("dropout"), 1 - drop, weights.shape)
        weights = jnp.where(keep, weights / (1 - drop), 0)
    return jnp.einsum("...qk,...ke->...qe", weights, v)


def in_blocks(x, block):
    """[B, H, L, E] -> [B, H, N, block, E], padded with zeros."""
    batch, heads, length, width = x.shape
    x = jnp.pad(x, ((0, 0), (0, 0), (0, -length % block), (0, 0)))
    return x.reshape(batch, heads, -1, block, width)


def from_blocks(x, length):
    return x.reshape(*x.shape[:2], -1, x.shape[-1])[:, :, :length]


def padding_bias(length, block):
    """[N, 1, block]: hides the padding of the last block."""
    place = np.arange(length + -length % block).reshape(-1, 1, block)
    return np.where(place < length, 0.0, HIDDEN).astype(np.float32)


class Exact(nn.Module):
    drop: float

    @nn.compact
    def __call__(self, q, k, v):
        return attend(self, q, k, v, drop=self.drop)


class Local(nn.Module):
    """Softmax attention inside blocks."""
    drop: float
    block: int = 50

    @nn.compact
    def __call__(self, q, k, v):
        length = q.shape[2]
        q, k, v = (in_blocks(t, self.block) for t in (q, k, v))
        bias = padding_bias(length, self.block)
        return from_blocks(attend(self, q, k, v, bias, self.drop), length)


class BigBird(nn.Module):
    """Blocks of 64: the first and the last, a window of three and three random ones."""
    drop: float
    block: int = 64
    random: int = 3

    def columns(self, heads, n):
        """[H, n - 2, 8] key blocks of the middle rows, and which of them count: each once."""
        rng, rows = np.random.default_rng(0), []
        for _ in range(heads):
            for i in range(1, n - 1):
                fixed = [0, n - 1, i - 1, i, i + 1]
                others = [c for c in range(n) if c not in fixed]
                rows.append(fixed + list(rng.choice(others, self.random, replace=False)))
        columns = np.array(rows).reshape(heads, n - 2, -1)
        first = np.array([[c not in row[:p] for p, c in enumerate(row)] for row in rows])
        return columns, first.reshape(columns.shape)

    @nn.compact
    def __call__(self, q, k, v):
        batch, heads, length, width = q.shape
        n = length // self.block
        columns, counts = self.columns(heads, n)
        qb, kb, vb = (in_blocks(t, self.block) for t in (q, k, v))
        near = [jax.vmap(lambda x, c: x[:, c], (1, 0), 1)(t, columns).reshape(
            batch, heads, n - 2, -1, width) for t in (kb, vb)]
        bias = np.where(np.repeat(counts, self.block, -1), 0.0, HIDDEN)[:, :, None]
        middle = attend(self, qb[:, :, 1:-1], *near, bias.astype(np.float32), self.drop)
        ends = attend(self, qb[:, :, (0, n - 1)].reshape(batch, heads, -1, width), k, v,
                      drop=self.drop).reshape(batch, heads, 2, self.block, width)
        return from_blocks(jnp.concatenate([ends[:, :, :1], middle, ends[:, :, 1:]], 2), length)


class Reformer(nn.Module):
    """One round of angular hashing, buckets of 64 on average, chunks of 64 and the one before."""
    drop: float
    chunk: int = 64

    @nn.compact
    def __call__(self, q, k, v):
        del k  # queries and keys are shared
        batch, heads, length, width = q.shape
        rotations = jax.random.normal(self.make_rng("mixer"),
                                      (heads, width, length // self.chunk // 2))
        turned = jnp.einsum("bhle,her->bhlr", jax.lax.stop_gradient(q), rotations)
        bucket = jnp.argmax(jnp.concatenate([turned, -turned], -1), -1)
        order = jnp.argsort(bucket, -1, stable=True)
        back = jnp.argsort(order, -1)
        take = lambda x: in_blocks(jnp.take_along_axis(x, order[..., None], 2), self.chunk)
        keys = q / (jnp.linalg.norm(q, axis=-1, keepdims=True) + 1e-6)
        qs, ks, vs = take(q), take(keys), take(v)
        bucket = jnp.take_along_axis(bucket, order, 2).reshape(batch, heads, -1, self.chunk)
        before = lambda x, fill: jnp.concatenate([jnp.concatenate(
            [jnp.full_like(x[:, :, :1], fill), x[:, :, :-1]], 2), x], 3)
        seen = bucket[..., None] == before(bucket, -1)[..., None, :]
        itself = np.eye(self.chunk, 2 * self.chunk, self.chunk, dtype=bool)
        bias = jnp.where(itself, -1e5, jnp.where(seen, 0.0, HIDDEN))
        out = attend(self, qs, before(ks, 0), before(vs, 0), bias, self.drop)
        return jnp.take_along_axis(from_blocks(out, length), back[..., None], 2)


class Linformer(nn.Module):
    drop: float
    rank: int = 16

    @nn.compact
    def __call__(self, q, k, v):
        heads, length = q.shape[1:3]
        project = self.param("project", nn.initializers.normal(length ** -0.5),
                             (heads, self.rank, length))
        k, v = (jnp.einsum("hrl,bhle->bhre", project, t) for t in (k, v))
        return attend(self, q, k, v, drop=self.drop)


class Features(nn.Module):
    """phi(q) (phi(k)^T v), divided by phi(q) sum phi(k)."""
    drop: float

    def feature(self, x):
        return jax.nn.elu(x) + 1

    @nn.compact
    def __call__(self, q, k, v):
        q, k = self.feature(q), self.feature(k)
        product = jnp.einsum("bhle,bhlf->bhef", k, v)
        total = jnp.einsum("bhle,bhe->bhl", q, k.sum(2))
        return jnp.einsum("bhle,bhef->bhlf", q, product) / (total[..., None] + 1e-6)


class ReluPerformer(Features):
    def feature(self, x):
        return jax.nn.relu(x) + 1e-3


class Sinkhorn(nn.Module):
    """Blocks of 50; a linear sort network of block sums, five normalizations; Gumbel noise in training."""
    drop: float
    block: int = 50
    iterations: int = 5
    temperature: float = 0.75

    @nn.compact
    def __call__(self, q, k, v):
        heads, length, width = q.shape[1:]
        q, k, v = (in_blocks(t, self.block) for t in (q, k, v))
        n = q.shape[2]
        network = self.param("sort", nn.initializers.lecun_normal(), (heads, width, n))
        logits = jnp.einsum("bhne,hem->bhnm", k.sum(3), network)
        if self.has_rng("noise"):
            logits = logits + jax.random.gumbel(self.make_rng("noise"), logits.shape)
        logits = logits / self.temperature
        for _ in range(self.iterations):
            logits = jax.nn.log_softmax(jax.nn.log_softmax(logits, -1), -2)
        moved = [jnp.einsum("bhnm,bhmre->bhnre", jnp.exp(logits), t) for t in (k, v)]
        k, v = (jnp.concatenate([m, t], 3) for m, t in zip(moved, (k, v)))
        own = padding_bias(length, self.block)
        bias = np.concatenate([np.zeros_like(own), own], -1)
        return from_blocks(attend(self, q, k, v, bias, self.drop), length)


CORES = {"exact": Exact, "local": Local, "bigbird": BigBird, "reformer": Reformer,
         "linformer": Linformer, "linear": Features, "relu_performer": ReluPerformer,
         "sinkhorn": Sinkhorn}
