"""Every mixer once more in NumPy float64 from its definition, against lra mixer run.

Values with dense L x L arrays, padding, weights that go out and come in again with the same bits (with
LRA_QUICK under the first settings of each mixer), the tables of docs/mixers.md, and the errors for files that do not fit.
"""
import json
import math
import os
import pathlib
import re
import sys
import tempfile

import numpy as np

try:
    import torch
    from safetensors.numpy import load_file, save_file
    from safetensors.torch import load_file as load_torch, save_file as save_torch
except ImportError:
    print("skipped: no safetensors package, or no torch")
    sys.exit(77)

from definitions import draws, pairs
from definitions.program import apply_mixer, default_settings, lra, lra_json, run_mixer

BATCH, LENGTH, WIDTH, HEADS, HEAD_DIM, MAX_LENGTH = 3, 37, 10, 2, 6, 41
SIZES = ["--heads", HEADS, "--head-dim", HEAD_DIM, "--max-length", MAX_LENGTH]
SEED = 3  # of fresh weights
# Mixers that draw from the seed what no file holds; with the weights of a file the seed is 0.
DRAW_FROM_SEED = ("bigbird",)
# Largest allowed difference, relative to the largest value.
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}
BF16_TOLERANCE = 2**-5


def softmax(scores, allowed):
    """Softmax over the last axis; a row that may see nothing gives zeros."""
    scores = np.where(allowed, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    weights = np.where(allowed, np.exp(scores - np.where(np.isfinite(largest), largest, 0)), 0)
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300)


def project(x, weight, parts=1):
    """-> `parts` arrays [B, H, L, E]"""
    y = (x @ weight.T).reshape(*x.shape[:2], parts, HEADS, HEAD_DIM)
    return list(y.transpose(2, 0, 3, 1, 4))


def merged(y, w):
    """[B, H, L, E] -> [B, L, D]"""
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1) @ w["output.weight"].T


def attend(x, valid, w, allowed=True, causal=False):
    q, k, v = project(x, w["qkv.weight"], 3)
    allowed = allowed & pairs.not_later(x.shape[1]) if causal else allowed
    allowed = allowed & valid[:, None, None, :]
    return merged(softmax(q @ k.swapaxes(2, 3) / math.sqrt(HEAD_DIM), allowed) @ v, w)


def transformer(x, valid, w, settings):
    return attend(x, valid, w, causal=settings["causal"])


def local(x, valid, w, settings):
    length, block = x.shape[1], settings["block"]
    t = np.arange(length)
    group = t // block if settings["groups"] == "contiguous" else t % (MAX_LENGTH // block + 1)
    return attend(x, valid, w, group[:, None] == group[None, :], settings["causal"])


def sparse_transformer(x, valid, w, settings):
    return attend(x, valid, w, pairs.sparse_transformer(x.shape[1], MAX_LENGTH, settings))


def longformer(x, valid, w, settings):
    length = x.shape[1]
    others = attend(x, valid, w, pairs.longformer(length, settings))
    if settings["global_tokens"] == 0:
        return others
    (q,), (k, v) = project(x, w["global_query.weight"]), project(x, w["global_key_value.weight"], 2)
    allowed = valid[:, None, None, :] & (pairs.not_later(length) if settings["causal"] else True)
    global_rows = merged(softmax(q @ k.swapaxes(2, 3) / math.sqrt(HEAD_DIM), allowed) @ v, w)
    return np.where(np.arange(length)[:, None] < settings["global_tokens"], global_rows, others)


def reformer(x, valid, w, settings):
    q, v = project(x, w["query_value.weight"], 2)
    k = q / np.sqrt((q * q).sum(-1, keepdims=True))
    buckets = settings["buckets"] or 2 * -(-MAX_LENGTH // settings["chunk"])
    rotations = draws.reformer_rotations(0, HEADS, settings["rounds"], HEAD_DIM, buckets // 2)
    allowed = [[pairs.reformer(q[b, h], valid[b], rotations[h], settings) for h in range(HEADS)]
               for b in range(BATCH)]
    return merged(softmax(q @ k.swapaxes(2, 3) / math.sqrt(HEAD_DIM), np.array(allowed)) @ v, w)


def soft_permutation(logits, valid, iterations):
    """[B, H, N, N]: rows, then columns, divided by their sums, among the valid blocks [B, N]."""
    s = np.exp(logits) * (valid[:, :, None] & valid[:, None, :])[:, None]
    for _ in range(iterations):
        s = s / np.maximum(s.sum(-1, keepdims=True), 1e-300)
        s = s / np.maximum(s.sum(-2, keepdims=True), 1e-300)
    return s


def sinkhorn(x, valid, w, settings):
    length, block = x.shape[1], settings["block"]
    blocks = -(-length // block)

    def in_blocks(t):
        """[B, H, L, E] -> [B, H, N, block, E]"""
        t = np.pad(t, ((0, 0), (0, 0), (0, blocks * block - length), (0, 0)))
        return t.reshape(*t.shape[:2], blocks, block, -1)

    q, k, v = project(x, w["qkv.weight"], 3)
    q, k, v = (in_blocks(t) for t in (q, *(t * valid[:, None, :, None] for t in (k, v))))
    is_token = in_blocks(valid[:, None, :, None])[:, 0, ..., 0]  # [B, N, block]
    logits = np.einsum("bhnre,hle->bhnl", k, w["sort"][:, :blocks]) / settings["temperature"]
    s = soft_permutation(logits, is_token.any(-1), settings["iterations"])
    k, v = (np.concatenate([t, np.einsum("bhnl,bhlre->bhnre", s, t)], -2) for t in (k, v))
    sorted_rows = np.broadcast_to(is_token.any(1, keepdims=True), is_token.shape)
    allowed = np.concatenate([is_token, sorted_rows], -1)[:, None, :, None, :]
    y = softmax(q @ k.swapaxes(3, 4) / math.sqrt(HEAD_DIM), allowed) @ v
    return merged(y.reshape(*y.shape[:2], -1, HEAD_DIM)[:, :, :length], w)


def bigbird(x, valid, w, settings):
    key = draws.weight_key(settings["seed"], "pattern")
    ends = [1 + max(np.flatnonzero(row).tolist(), default=-1) for row in valid]
    return attend(x, valid, w, np.array([pairs.bigbird(x.shape[1], end, HEADS, key, settings)
                                         for end in ends]), settings["causal"])


def linformer(x, valid, w, settings):
    (q,), (k, v) = project(x, w["query.weight"]), project(x, w["key_value.weight"], 2)
    p = w["projection"][: x.shape[1]] * valid[:, :, None]  # [B, L, rank]
    k, v = (np.einsum("blr,bhle->bhre", p, t) for t in (k, v))
    return merged(softmax(q @ k.swapaxes(2, 3) / math.sqrt(HEAD_DIM), True) @ v, w)


def by_features(phi_q, phi_k, v, valid, eps, causal):
    weights = phi_q @ phi_k.swapaxes(2, 3) * valid[:, None, None, :]
    weights = weights * pairs.not_later(v.shape[2]) if causal else weights
    return weights / (weights.sum(-1, keepdims=True) + eps) @ v


def linear_transformer(x, valid, w, settings):
    q, k, v = project(x, w["qkv.weight"], 3)
    q, k = (np.where(t > 0, t + 1, np.exp(np.minimum(t, 0))) for t in (q, k))
    return merged(by_features(q, k, v, valid, settings["eps"], settings["causal"]), w)


def performer(x, valid, w, settings):
    q, k, v = project(x, w["qkv.weight"], 3)
    if settings["features"] == "relu":
        q, k = (np.maximum(t, 0) + 1e-3 for t in (q, k))
    else:
        scaled = (t * HEAD_DIM**-0.25 for t in (q, k))
        q, k = (np.exp(t @ w["features"].T - (t * t).sum(-1, keepdims=True) / 2) for t in scaled)
    return merged(by_features(q, k, v, valid, 1e-300, settings["causal"]), w)


def synthesizer(x, valid, w, settings):
    length, variant = x.shape[1], settings["variant"]
    if variant == "random":
        scores = w["random"][:, :length, :length]
    elif variant == "factorized_random":
        scores = (w["factor1"] @ w["factor2"].swapaxes(1, 2))[:, :length, :length]
    else:
        hidden = np.maximum(x @ w["hidden.weight"].T + w["hidden.bias"], 0)
        hidden = hidden.reshape(*x.shape[:2], HEADS, HEAD_DIM).transpose(0, 2, 1, 3)
        part = {name: hidden @ w[name + ".weight"].swapaxes(1, 2) + w[name + ".bias"][:, None, :]
                for name in ("scores", "scores_a", "scores_b") if name + ".weight" in w}
        j = np.arange(length)
        n = math.isqrt(MAX_LENGTH - 1) + 1
        scores = (part["scores"][..., :length] if variant == "dense"
                  else part["scores_a"][..., j % n] * part["scores_b"][..., j // n])
    allowed = valid[:, None, None, :]
    if settings["causal"]:
        allowed = allowed & np.tri(length, dtype=bool)
    if settings["dot_product"]:
        q, k, v = project(x, w["qkv.weight"], 3)
        scores = scores + q @ k.swapaxes(2, 3) / math.sqrt(HEAD_DIM)
    else:
        (v,) = project(x, w["value.weight"])
    return merged(softmax(scores, allowed) @ v, w)


def sigmoid(t):
    return 1 / (1 + np.exp(-t))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gated(y, w, kind):
    """Output of a state-space layer: GELU, then a gate that mixes channels."""
    g = gelu(y)
    if kind == "none":
        return g
    z = g @ w["output.linear.weight"].T + w["output.linear.bias"]
    if kind == "glu":
        return z[..., :WIDTH] * sigmoid(z[..., WIDTH:])
    return z if kind == "linear" else (g if kind == "half_glu1" else y) * sigmoid(z)


def s4d_matrix(length, w, settings):
    """[D, L, L]: how x[j] enters y[i] of each channel, from the kernels of both directions."""
    real = settings["init"] == "real"
    rate, frequency = np.exp(w["log_rate"]), 0 if real else w["frequency"]
    dt = np.exp(w["dt"]) if settings["dt_transform"] == "exp" else np.log1p(np.exp(w["dt"]))
    pole = (-rate + 1j * frequency) + np.zeros((WIDTH, 1))
    z = pole * dt[:, None]
    c = w["c"][..., 0] if real else 2 * (w["c"][..., 0] + 1j * w["c"][..., 1])
    reads = c * (np.exp(z) - 1) / pole
    powers = np.exp(z[..., None] * np.arange(length))
    kernels = (reads[..., None] * powers).sum(2).real  # [directions, D, L]
    lag = np.arange(length)[:, None] - np.arange(length)
    matrix = np.where(lag >= 0, kernels[0][:, np.maximum(lag, 0)], 0)
    if settings["bidirectional"]:
        matrix = matrix + np.where(lag < 0, kernels[1][:, np.maximum(-lag - 1, 0)], 0)
    return matrix


def s4d(x, valid, w, settings):
    u = x * valid[:, :, None]
    y = np.einsum("dij,bjd->bid", s4d_matrix(x.shape[1], w, settings), u) + w["skip"] * u
    return gated(y, w, settings["output"])


def state_space(x, valid, pole, b, c, w, settings):
    """Re(C x) of the states x[t] = pole x[t - 1] + b u[t], and from the end for a second direction."""
    u = x * valid[:, :, None]
    y = w["skip"] * u
    for direction in range(c.shape[1]):
        for example, rows, out in zip(valid, u, y):
            state = np.zeros(len(pole), complex)
            places = np.flatnonzero(example)
            for t in places[::-1] if direction else places:
                state = pole * state + b @ rows[t]
                out[t] += (c[:, direction] @ state).real
    return gated(y, w, settings["output"])


def s5(x, valid, w, settings):
    re = np.minimum(w["lambda_re"], -1e-4) if settings["clip_poles"] else w["lambda_re"]
    lam = re + 1j * w["lambda_im"]
    pole = np.exp(lam * np.exp(w["dt"]))
    b = ((pole - 1) / lam)[:, None] * (w["b"][0] + 1j * w["b"][1])
    c = 2 * (w["c"][:, :, 0] + 1j * w["c"][:, :, 1])
    return state_space(x, valid, pole, b, c, w, settings)


def lru(x, valid, w, settings):
    pole = np.exp(-np.exp(w["nu_log"]) + 1j * np.exp(w["theta_log"]))
    b = np.exp(w["gamma_log"])[:, None] * (w["b"][0] + 1j * w["b"][1])
    return state_space(x, valid, pole, b, w["c"][:, :, 0] + 1j * w["c"][:, :, 1], w, settings)


def oscillators(force, steps, a, implicit):
    """Positions [L, P] of oscillators driven by forces, in the order of time."""
    z, x, rows = 0, 0, []
    for f in force:
        before, z = z, z + steps * (f - a * x)
        if implicit:
            s = 1 / (1 + steps**2 * a)
            z, x = s * z, s * (x + steps * before + steps**2 * f)
        else:
            x = x + steps * z
        rows.append(x)
    return np.array(rows)


def linoss(x, valid, w, settings):
    u = x * valid[:, :, None]
    y = w["skip"] * u
    steps, implicit = sigmoid(w["step"]), settings["discretization"] == "im"
    a = np.clip(w["a"], 1e-6 / steps**2, math.inf if implicit else 3.99 / steps**2)
    b, c = w["b"][0] + 1j * w["b"][1], w["c"][:, :, 0] + 1j * w["c"][:, :, 1]
    for direction in range(c.shape[1]):
        for example, rows, out in zip(valid, u, y):
            places = np.flatnonzero(example)
            places = places[::-1] if direction else places
            if len(places):
                states = oscillators(rows[places] @ b.T, steps, a, implicit)
                out[places] += (states @ c[:, direction].T).real
    return gated(y, w, settings["output"])


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return np.logaddexp(x, 0)


def mamba_scan(x, w, k):
    """Of the tokens of one example [L, E], in the order of time."""
    kernel, select = w["conv_weight"][k], w["select_weight"][k]
    rank, states = w["step_weight"].shape[2], w["a_log"].shape[2]
    blocks = len(select)
    padded = np.concatenate([np.zeros((kernel.shape[1] - 1, x.shape[1])), x])
    h, rate, y = 0, -np.exp(w["a_log"][k]), np.empty_like(x)
    for t in range(len(x)):
        u = silu((padded[t:t + kernel.shape[1]] * kernel[:, ::-1].T).sum(0) + w["conv_bias"][k])
        r, b, c = np.split(np.einsum("jrp,jp->jr", select, u.reshape(blocks, -1)),
                           [rank, rank + states], axis=1)
        width = len(u) // blocks
        step = softplus((w["step_weight"][k] * r.repeat(width, 0)).sum(1) + w["step_bias"][k])
        b = b.repeat(width, 0) + (w["b_bias"][k] if "b_bias" in w else 0)
        h = np.exp(step[:, None] * rate) * h + (step * u)[:, None] * b
        y[t] = (c.repeat(width, 0) * h).sum(1) + w["skip"][k] * u
    return y


def mamba(x, valid, w, settings):
    u, z = np.split(x @ w["in_weight"].T, 2, axis=2)
    y = np.zeros_like(u)
    for example, tokens, count in zip(y, u, valid.sum(1)):
        example[:count] = mamba_scan(tokens[:count], w, 0)
        if settings["bidirectional"]:
            example[:count] += mamba_scan(tokens[:count][::-1], w, 1)[::-1]
    return (y * silu(z)) @ w["out_weight"].T


def directions_of(settings):
    return 1 + settings["bidirectional"]


def in_time(run, valid, settings, *arrays):
    """run(direction, arrays of the tokens of one example in the order of time), for each example and direction, whose
    results, the direction's share of channels, are joined. The arrays are [B, L, ...]."""
    directions, joined = directions_of(settings), None
    for n, count in enumerate(valid.sum(1)):
        shares = []
        for d in range(directions):
            order = slice(None, None, -1 if d else 1)
            shares.append(run(d, *(array[n, :count][order] for array in arrays))[order])
        rows = np.concatenate(shares, 1)
        joined = np.zeros((*valid.shape, rows.shape[1])) if joined is None else joined
        joined[n, :count] = rows
    return joined


def share(array, direction, settings, axis=0):
    """The part of an array along an axis that belongs to a direction."""
    return np.split(array, directions_of(settings), axis)[direction]


def convolved(x, kernel, bias):
    """Sum over j of kernel[e, j] x[t - j, e]; x [L, E] in the order of time."""
    padded = np.concatenate([np.zeros((kernel.shape[1] - 1, x.shape[1])), x])
    return bias + np.stack([(padded[t:t + kernel.shape[1]] * kernel[:, ::-1].T).sum(0) for t in range(len(x))])


def memory(q, k, v, a, beta=None):
    """S[t]^T q with S~ = a S[t - 1], S[t] = S~ + k (v, or beta (v - S~^T k))^T;
    q [L, H, K], v [L, H, V], a [L, H, 1 or K]"""
    state, rows = np.zeros((*k.shape[1:], v.shape[2])), []
    for t in range(len(q)):
        state = a[t][:, :, None] * state
        error = v[t]
        if beta is not None:
            error = beta[t][:, None] * (v[t] - np.einsum("hkv,hk->hv", state, k[t]))
        state = state + k[t][:, :, None] * error[:, None]
        rows.append(np.einsum("hkv,hk->hv", state, q[t]))
    return np.stack(rows)


def of_heads(t, heads):
    return t.reshape(*t.shape[:-1], heads, -1)


def rms(x, weight):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * weight


def mamba2(x, valid, w, settings):
    states, inner = settings["states"], settings["expand"] * WIDTH
    shared = directions_of(settings) * states
    cuts = np.cumsum([inner, inner, shared, shared])

    def run(d, u):
        parts = [share(part, d, settings) for part in np.split(w["in_weight"], cuts)]
        rows = [np.concatenate([share(part, d, settings) for part in np.split(w[name], cuts[1:3] - inner)])
                for name in ("conv_weight", "conv_bias")]
        mixed = silu(convolved(u @ np.concatenate(parts[1:4]).T, *rows))
        heads = len(parts[4])
        value = of_heads(mixed[:, :-2 * states], heads)
        step = softplus(u @ parts[4].T + share(w["dt_bias"], d, settings))
        decay = np.exp(-step * np.exp(share(w["a_log"], d, settings)))
        b, c = (np.repeat(t[:, None], heads, 1) for t in (mixed[:, -2 * states:-states], mixed[:, -states:]))
        y = memory(c, b, step[:, :, None] * value, decay[:, :, None])
        y = y + share(w["skip"], d, settings)[:, None] * value
        return rms(y.reshape(len(u), -1) * silu(u @ parts[0].T), share(w["norm_weight"], d, settings))

    return in_time(run, valid, settings, x) @ w["out_weight"].T


def deltanet_sizes(settings):
    keys = settings["key_dim"] or max(1, 3 * WIDTH // (4 * settings["num_heads"]))
    return keys, settings["value_dim"] or 2 * keys


def gated_deltanet(x, valid, w, settings):
    keys, values = deltanet_sizes(settings)
    heads = settings["num_heads"]
    cuts = np.cumsum([heads * keys, heads * keys])

    def run(d, u):
        parts = [silu(convolved(u @ share(weight, d, settings).T, share(kernel, d, settings), 0))
                 for weight, kernel in zip(np.split(w["qkv_weight"], cuts), np.split(w["conv_weight"], cuts))]
        q, k, v = (of_heads(part, heads // directions_of(settings)) for part in parts)
        q, k = (t / np.sqrt((t**2).sum(-1, keepdims=True) + 1e-6) for t in (q, k))
        beta, decay = sigmoid(u @ share(w["beta_weight"], d, settings).T), np.ones((len(u), q.shape[1]))
        if settings["decay"]:
            step = softplus(u @ share(w["decay_weight"], d, settings).T + share(w["dt_bias"], d, settings))
            decay = np.exp(-np.exp(share(w["a_log"], d, settings)) * step)
        beta = beta * (2 if settings["negative_eigenvalues"] else 1)
        return rms(memory(q / np.sqrt(keys), k, v, decay[:, :, None], beta), w["norm_weight"]).reshape(len(u), -1)

    o = in_time(run, valid, settings, x)
    return (o * silu(x @ w["gate_weight"].T) if settings["gate"] else o) @ w["out_weight"].T


def linear_states(x, valid, q, k, v, a, w, settings):
    """The result of layers with states of fixed or gated decays; a [B, L, H, 1 or K]"""
    def run(d, *arrays):
        q, k, v, a = (share(t, d, settings, 1) for t in arrays)
        return rms(memory(q / np.sqrt(q.shape[2]), k, v, a), w["norm_weight"]).reshape(len(q), -1)

    return (in_time(run, valid, settings, q, k, v, a) * silu(x @ w["gate_weight"].T)) @ w["out_weight"].T


def retnet(x, valid, w, settings):
    heads, values = settings["num_heads"], len(w["norm_weight"])
    keys = settings["key_dim"] or max(2, WIDTH // heads // 2 * 2)
    q, k, v = (of_heads(t, heads) for t in np.split(x @ w["qkv_weight"].T, [heads * keys, 2 * heads * keys], 2))
    angle = np.arange(x.shape[1])[:, None, None] * 10000.0**(-np.arange(0, keys, 2) / keys)

    def rotary(t):
        z = (t[..., ::2] + 1j * t[..., 1::2]) * np.exp(1j * angle)
        return np.stack([z.real, z.imag], -1).reshape(t.shape)

    decay = 1 - 2.0**(-5 - np.arange(heads) % (heads // directions_of(settings)))
    a = np.broadcast_to(decay[:, None], (*x.shape[:2], heads, 1))
    return linear_states(x, valid, rotary(q), rotary(k), v, a, w, settings)


def gla(x, valid, w, settings):
    heads = settings["num_heads"]
    keys = len(w["decay_bias"])
    q, k, v = (of_heads(t, heads) for t in np.split(x @ w["qkv_weight"].T, [keys, 2 * keys], 2))
    gates = sigmoid(x @ w["decay_in_weight"].T @ w["decay_out_weight"].T + w["decay_bias"])
    return linear_states(x, valid, q, k, v, of_heads(gates, heads)**(1 / settings["temperature"]), w, settings)


def hgrn2(x, valid, w, settings):
    width = settings["head_channels"] or min(128, WIDTH // 4)
    q, g, v = np.split(x @ w["in_weight"].T, 3, 2)
    bound = sigmoid(w["bound"]) if "bound" in w else 0
    f = bound + (1 - bound) * sigmoid(g)
    arrays = [of_heads(t, WIDTH // width) for t in (silu(q), 1 - f, v, f)]
    o = in_time(lambda d, *t: memory(*(share(one, d, settings, 1) for one in t)).reshape(len(t[0]), -1),
                valid, settings, *arrays)
    return rms(o, w["norm_weight"]) @ w["out_weight"].T


def mlstm(x, valid, w, settings):
    heads = settings["num_heads"]
    u, z = np.split(x @ w["up_weight"].T, 2, 2)
    c = silu(in_time(lambda d, t: convolved(share(t, d, settings, 1), share(w["conv_weight"], d, settings),
                                            share(w["conv_bias"], d, settings)), valid, settings, u))
    of_blocks = lambda t, m: np.einsum("blgp,grp->blgr", of_heads(t, len(m)), m).reshape(t.shape)  # noqa: E731
    q, k, v = (of_blocks(*pair) for pair in zip((c, c, u), w["qkv_weight"]))
    i, g = np.split(np.concatenate([q, k, v], 2) @ w["gate_weight"].T + w["gate_bias"], 2, 2)
    q, k, v = (of_heads(t, heads) for t in (q, k, v))

    def run(d, *arrays):
        q, k, v, i, g = (share(t, d, settings, 1) for t in arrays)
        key, decay = k * np.exp(i)[:, :, None] / np.sqrt(k.shape[2]), sigmoid(g)[:, :, None]
        n = memory(q, key, np.ones_like(v[:, :, :1]), decay)
        h = memory(q, key, v, decay) / np.maximum(np.abs(n), 1)
        return rms(h - h.mean(-1, keepdims=True), share(of_heads(w["norm_weight"], heads), d, settings)).reshape(
            len(q), -1)

    return ((in_time(run, valid, settings, q, k, v, i, g) + w["skip"] * c) * silu(z)) @ w["down_weight"].T


def gated_states(a, v):
    h, rows = 0, []
    for decay, value in zip(a, v):
        h = decay * h + value
        rows.append(h)
    return np.stack(rows)


def min_gru(x, valid, w, settings):
    z = sigmoid(x @ w["gate.weight"].T + w["gate.bias"])
    if settings["forget_gate"]:
        z = z / (z + sigmoid(x @ w["forget.weight"].T + w["forget.bias"]))
    c = x @ w["candidate.weight"].T + w["candidate.bias"]
    if settings["candidate"] == "positive":
        c = np.where(c >= 0, c + 0.5, sigmoid(c))

    def run(d, z, c):
        z, c = share(z, d, settings, 1), share(c, d, settings, 1)
        return gated_states(1 - z, z * c)

    return in_time(run, valid, settings, z, c) @ w["output.weight"].T + w["output.bias"]


def rg_lru(x, valid, w, settings):
    blocks = settings["blocks"]
    mixed = in_time(lambda d, u: convolved(share(u, d, settings, 1), share(w["conv_weight"], d, settings),
                                           share(w["conv_bias"], d, settings)),
                    valid, settings, x @ w["input.weight"].T + w["input.bias"])

    def gate(name):
        return sigmoid(np.einsum("blhp,hqp->blhq", of_heads(mixed, blocks), w[name + "_weight"]).reshape(mixed.shape)
                       + w[name + "_bias"])

    a = np.exp(-8 * gate("a") * softplus(w["lambda"]))

    def run(d, a, v):
        a, v = share(a, d, settings, 1), share(v, d, settings, 1)
        scale = np.sqrt(np.maximum(1 - a**2, 2.5e-7))
        scale[0] = 1
        return gated_states(a, scale * v)

    y = in_time(run, valid, settings, a, gate("i") * mixed) * gelu(x @ w["gate.weight"].T + w["gate.bias"])
    return y @ w["output.weight"].T + w["output.bias"]


def mega_weights(q, k, valid, w, settings):
    """Of one example, [L, L]."""
    length, window = len(q), settings["chunk"] or MAX_LENGTH
    place = np.arange(length)
    seen = (place[:, None] // window == place // window) & valid
    lag = np.clip(place - place[:, None], 1 - window, window - 1)
    bias = w["position_bias"][lag + window - 1]
    if settings["attention"] == "softmax":
        return softmax(q @ k.T / math.sqrt(settings["z_dim"]) + bias, seen)
    scores = q @ k.T / np.maximum(seen.sum(1, keepdims=True), 1) + bias
    return np.where(seen, (1 + np.vectorize(math.erf)(
        math.sqrt(2 * math.pi) * (scores - math.sqrt(0.5)))) / 2, 0)


def mega(x, valid, w, settings):
    width, z, v = WIDTH, settings["z_dim"], settings["v_dim"]
    u = x * valid[:, :, None]
    p = sigmoid(w["ema_delta"])
    q = 1 - p * sigmoid(w["ema_alpha"])
    c = w["ema_eta"] * p * w["ema_beta"] / math.sqrt(settings["ema_dim"])
    lag = np.subtract.outer(np.arange(x.shape[1]), np.arange(x.shape[1]))
    m = w["ema_omega"] * u
    for direction in range(len(q)):
        steps = -lag if direction else lag
        powers = q[direction][..., None, None] ** np.maximum(steps, 0)  # [n, D, L, L]
        kernel = np.einsum("nd,ndij->dij", c[direction], powers) * (steps >= 0)
        m = m + np.einsum("dij,bjd->bid", kernel, u)
    base = silu(m) @ w["base_weight"].T + w["base_bias"]
    gate, shared, r, e = np.split(base, [width, width + z, width + z + v], -1)
    queries, keys = (silu(shared) * w["scale"][i] + w["shift"][i] for i in (0, 1))
    values = silu(x @ w["value_weight"].T + w["value_bias"])
    attended = np.stack([mega_weights(*example, w, settings) @ value
                         for *example, value in zip(queries, keys, valid, values)])
    h = silu(e + (attended * silu(r)) @ w["hidden_weight"].T + w["hidden_bias"])
    return sigmoid(gate) * (h - x)


def conv_shape(settings):
    """Lags in the past, lag 0 among them, and in the future."""
    directions = 2 if settings["bidirectional"] else 1
    width = min(settings["width"] or directions * MAX_LENGTH, directions * MAX_LENGTH)
    future = width // 2 if directions == 2 else 0
    return width - future, future


def joined_scales(scales, settings):
    """SGConv: [S, D, d] -> [D, d 2^(S - 1)]"""
    count, channels, size = scales.shape
    decay = np.linspace(settings["decay_min"], settings["decay_max"], channels)
    joined = []
    for i, scale in enumerate(scales):
        lags = size << max(0, i - 1)
        place = (np.arange(lags) + 0.5) * size / lags - 0.5
        stretched = np.array([np.interp(place, np.arange(size), channel) for channel in scale])
        joined.append(stretched * decay[:, None] ** (count - 1 - i))
    return np.concatenate(joined, 1)


def long_conv(x, valid, w, settings):
    past, future = conv_shape(settings)
    if settings["kind"] == "free":
        k = np.sign(w["kernel"]) * np.maximum(np.abs(w["kernel"]) - settings["squash"], 0)
    else:
        joined = [joined_scales(direction, settings) / size
                  for direction, size in zip(w["kernel"], w["length"])]
        k = np.concatenate([t[:, :future][:, ::-1] for t in joined[1:]] + [joined[0][:, :past]], 1)
    lag = np.subtract.outer(np.arange(x.shape[1]), np.arange(x.shape[1])) + future
    weights = np.where((lag >= 0) & (lag < past + future),
                       k[:, np.clip(lag, 0, past + future - 1)], 0)
    x = x * valid[..., None]
    return gated(np.einsum("dts,bsd->btd", weights, x) + w["skip"] * x, w, settings["output"])


def chordmixer(x, valid, w, settings):
    y = gelu(x @ w["mlp.fc1.weight"].T + w["mlp.fc1.bias"]) @ w["mlp.fc2.weight"].T
    y = y + w["mlp.fc2.bias"]
    tracks = np.array_split(np.arange(x.shape[2]), 1 + (MAX_LENGTH - 1).bit_length())
    for example, tokens in zip(y, valid.sum(1)):
        for m, track in enumerate(tracks[1:]):
            example[:tokens, track] = np.roll(example[:tokens, track], -(2**m), 0)
    return y


REFERENCES = [transformer, local, sparse_transformer, longformer, linformer, reformer, sinkhorn,
              synthesizer, bigbird, linear_transformer, performer, s4d, long_conv,
              chordmixer, s5, lru, linoss, mega, mamba, mamba2, gated_deltanet, min_gru, retnet, gla, hgrn2, mlstm, rg_lru]
# Settings besides the defaults.
CASES = {
    "transformer": [{}, {"causal": True}],
    "local": [{"block": 8}, {"block": 50}, {"block": 8, "groups": "strided"},
              {"block": 50, "groups": "strided"}, {"block": 8, "causal": True},
              {"block": 8, "groups": "strided", "causal": True}],
    "sparse_transformer": [{"summary": 2}, {"stride": 5, "summary": 5, "causal": True, "global_first": True},
                           {"stride": 5, "summary": 3, "causal": True},
                           {"pattern": "strided", "global_first": True},
                           {"pattern": "strided", "stride": 5, "causal": True}],
    "longformer": [{"window": 6, "global_tokens": 0}, {"window": 6}, {"window": 512},
                   {"window": 4, "global_tokens": 3, "causal": True}, {"global_tokens": 50}],
    "linformer": [{"rank": 7}],
    "reformer": [{"chunk": 8}, {"rounds": 1, "chunk": 100, "buckets": 6},
                 {"rounds": 3, "chunk": 5, "buckets": 4, "causal": True}],
    "sinkhorn": [{"block": 8}, {"block": 5, "iterations": 1, "temperature": 2.5}, {"block": 50}],
    "bigbird": [{"block": 3, "random_blocks": 2}, {"block": 2, "random_blocks": 0},
                {"block": 4, "random_blocks": 40}, {"block": 64},
                {"block": 3, "random_range": "first_1024"}, {"block": 3, "random_blocks": 2, "causal": True}],
    "linear_transformer": [{}, {"eps": 0.5}, {"eps": 0.5, "causal": True}],
    "s4d": [{"states": 8}, {"states": 6, "init": "lin", "alpha": 3.0, "shared_poles": False},
            {"states": 4, "init": "inv", "dt_transform": "softplus", "bidirectional": False},
            {"states": 3, "init": "real", "output": "half_glu1"},
            {"states": 4, "output": "half_glu2"}, {"states": 4, "output": "linear"},
            {"states": 4, "output": "none"}],
    "performer": [{"num_features": 16}, {"num_features": 2, "norms": "fixed"},
                  {"features": "relu"}, {"features": "relu", "causal": True},
                  {"num_features": 16, "causal": True}],
    "long_conv": [{}, {"squash": 0.0, "bidirectional": False}, {"width": 5, "output": "half_glu2"},
                  {"kind": "sgconv", "scale_dim": 4, "decay_min": 1.0, "decay_max": 3.0},
                  {"kind": "sgconv", "scale_dim": 1, "bidirectional": False, "output": "none"},
                  {"kind": "sgconv", "width": 9, "output": "half_glu1"}],
    "chordmixer": [{}, {"hidden": 17}],
    "s5": [{"states": 8, "blocks": 2}, {"states": 6, "shared_step": True, "output": "half_glu2"},
           {"states": 12, "blocks": 3, "c_init": "complex_normal", "bidirectional": False},
           {"c_init": "trunc_standard_normal", "clip_poles": True, "output": "none"}],
    "mega": [{"ema_dim": 2, "z_dim": 5, "v_dim": 7}, {"chunk": 8, "bidirectional": False},
             {"ema_dim": 1, "z_dim": 3, "v_dim": 4, "attention": "laplace"},
             {"ema_dim": 3, "z_dim": 3, "v_dim": 4, "attention": "laplace", "chunk": 11}],
    "mamba": [{}, {"states": 3, "conv_width": 1, "dt_rank": 2, "expand": 1, "bidirectional": False},
              {"states": 5, "blocks": 2, "channel_bias": True}],
    "mamba2": [{"states": 5}, {"states": 3, "head_channels": 4, "conv_width": 1, "bidirectional": False},
               {"states": 2, "head_channels": 5, "expand": 1, "a_max": 1.0}],
    "gated_deltanet": [{}, {"num_heads": 3, "bidirectional": False, "negative_eigenvalues": True},
                       {"num_heads": 2, "key_dim": 5, "value_dim": 3, "decay": False, "gate": False, "conv_width": 2}],
    "min_gru": [{}, {"expand": 2, "candidate": "linear", "gate_bias": -3.0}, {"bidirectional": False},
                {"forget_gate": True}],
    "retnet": [{}, {"key_dim": 6}, {"num_heads": 3, "key_dim": 2, "value_dim": 5, "bidirectional": False}],
    "gla": [{}, {"num_heads": 3, "rank": 4, "temperature": 1.0, "decay_bias": 2.0, "bidirectional": False}],
    "hgrn2": [{"head_channels": 5}, {"head_channels": 2, "lower_bound": 0.3, "bidirectional": False}],
    "mlstm": [{}, {"num_heads": 5, "block": 2, "forget_min": -1.0, "bidirectional": False},
              {"num_heads": 2, "expand": 1, "block": 5, "conv_width": 2}],
    "rg_lru": [{"blocks": 2}, {"inner_dim": 6, "blocks": 3, "conv_width": 2, "bidirectional": False}],
    "lru": [{"states": 7}, {"states": 5, "bidirectional": False, "output": "half_glu1"},
            {"states": 3, "r_min": 0.9, "r_max": 0.999, "max_phase": 0.5, "output": "linear"}],
    "linoss": [{"states": 7}, {"states": 5, "discretization": "imex"},
               {"states": 3, "discretization": "imex", "bidirectional": False, "output": "half_glu1"}],
    "synthesizer": [{"variant": variant, "dot_product": mixed, "causal": causal, "rank": 4}
                    for variant in ("random", "factorized_random", "dense", "factorized_dense")
                    for mixed in (False, True) for causal in (False, True)],
}


def is_present(when, settings):
    """'always', 'SETTING = VALUE, VALUE' or 'SETTING > 0'"""
    if when == "always":
        return True
    if when.endswith(" > 0"):
        return settings[when.removesuffix(" > 0")] > 0
    key, wanted = when.split(" = ")
    value = settings[key]
    return (json.dumps(value) if isinstance(value, bool) else str(value)) in wanted.split(", ")


def documented_tensors(name, settings):
    """{tensor: shape} that docs/mixers.md promises."""
    sections = re.split(r"^## ", pathlib.Path("docs/mixers.md").read_text(), flags=re.MULTILINE)
    section = [s for s in sections if s.startswith(f"`{name}`")]
    assert section, f"docs/mixers.md has no section '## `{name}`'"
    n = math.isqrt(MAX_LENGTH - 1) + 1
    values = {"D": WIDTH, "H": HEADS, "E": HEAD_DIM, "Lmax": MAX_LENGTH, "n": n,
              "m": -(-MAX_LENGTH // n), "blocks": -(-MAX_LENGTH // settings.get("block", 1)),
              "directions": 1 + settings.get("bidirectional", False),
              "poles": 1 if settings.get("shared_poles") else WIDTH,
              "parts": 1 if settings.get("init") == "real" else 2, **settings}
    values["modes"] = settings.get("states", 0) // values["parts"]
    if name == "long_conv":
        past, future = conv_shape(settings)
        scales = math.ceil(math.log2(max(1, max(past, future) / settings["scale_dim"])))
        values |= {"W": past + future, "directions": 2 if future else 1, "scales": scales + 1}
    if name in ("s5", "lru", "linoss"):
        values["P"] = settings["states"] // (2 if name == "s5" else 1)
        values["steps"] = 1 if settings.get("shared_step") else values["P"]
    if name == "mamba":
        values["inner"] = settings["expand"] * WIDTH
        values["rank"] = settings["dt_rank"] or -(-WIDTH // (16 * settings["blocks"]))
        values["selected"] = values["rank"] + 2 * settings["states"]
        values["width"] = values["inner"] // settings["blocks"]
    if name == "mamba2":
        inner = settings["expand"] * WIDTH
        mixed = inner + 2 * values["directions"] * settings["states"]
        scans = inner // (settings["head_channels"] or inner // 4)
        values |= {"inner": inner, "mixed": mixed, "scans": scans, "rows": inner + mixed + scans}
    if name in ("gated_deltanet", "retnet", "gla"):
        heads = settings["num_heads"]
        keys = settings["key_dim"] or (WIDTH // (2 * heads) if name == "gla" else max(2, WIDTH // heads // 2 * 2))
        values |= {"K": keys, "V": settings["value_dim"] or (WIDTH // heads if name == "gla" else 2 * keys)}
        if name == "gated_deltanet":
            values["K"], values["V"] = deltanet_sizes(settings)
        values["mixed"] = heads * (2 * values["K"] + values["V"])
    if name == "mlstm":
        values["inner"] = settings["expand"] * WIDTH
        values["groups"] = values["inner"] // settings["block"]
    if name == "min_gru":
        values["inner"] = settings["expand"] * WIDTH
    if name == "rg_lru":
        values["inner"] = settings["inner_dim"] or WIDTH
        values["width"] = values["inner"] // settings["blocks"]
    if name == "mega":
        values["base"] = 2 * WIDTH + settings["z_dim"] + settings["v_dim"]
        values["distances"] = 2 * (settings["chunk"] or MAX_LENGTH) - 1
    if name == "chordmixer":
        values["hidden"] = settings["hidden"] or WIDTH
    shapes = {}
    for tensor, shape, when in re.findall(r"^\| `(\S+)` \| \[(.*)\] \| (.*) \|$", section[0],
                                          flags=re.MULTILINE):
        if not is_present(when, settings):
            continue
        shapes[tensor] = [math.prod(int(word) if word.isdigit() else values[word]
                                    for word in side.split()) for side in shape.split(", ")]
    return shapes


def inputs(dtype):
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, (BATCH, LENGTH, WIDTH)).astype(dtype)
    lengths = np.array([LENGTH, 20, 1])
    mask = np.arange(LENGTH)[None, :] < lengths[:, None]
    return x, mask


def difference(reference, y, x, valid, weights, settings):
    """Largest error at valid positions against the definition, relative to the largest value."""
    exact = reference(x.astype(np.float64), valid,
                      {key: value.astype(np.float64) for key, value in weights.items()}, settings)
    return np.abs(y - exact)[valid].max() / np.abs(exact[valid]).max()


def check_case(reference, settings, dtype, folder, thorough):
    """Fresh weights with a mask; if thorough, also without one, which leaves them as they are, and given back."""
    name = reference.__name__
    full = {**default_settings(name), **settings, "seed": SEED}
    x, mask = inputs(dtype)
    masked = run_mixer(name, folder, {"x": x, "mask": mask}, settings, *SIZES, "--seed", SEED)
    weights = {key: value for key, value in masked.items() if key != "y"}
    shapes = {key: list(value.shape) for key, value in weights.items()}
    assert shapes == documented_tensors(name, full), f"{name} {settings}: tensors are {shapes}"
    cases = [(masked["y"], mask, full)]
    if thorough:
        whole = run_mixer(name, folder, {"x": x}, settings, *SIZES, "--seed", SEED)
        again = run_mixer(name, folder, {"x": x, "mask": mask.astype(np.uint8), **weights}, settings, *SIZES)
        assert set(whole) == set(masked) == set(again), f"{name}: {settings}"
        assert all(np.array_equal(whole[key], weights[key]) for key in weights), f"{name}: {settings}"
        same = weights if name in DRAW_FROM_SEED else masked
        assert all(np.array_equal(again[key], masked[key]) for key in same), f"{name}: {settings}"
        cases += [(whole["y"], np.ones_like(mask), full), (again["y"], mask, {**full, "seed": 0})]
    for y, valid, of in cases:
        error = difference(reference, y, x, valid, weights, of)
        assert error <= TOLERANCE[dtype], f"{name} {settings} {dtype.__name__}: {error:.1e}"
    print(f"ok: {name} {settings} {dtype.__name__}: {error:.1e}")


def check_bf16(reference, settings, folder):
    """BF16 goes in and comes out beside F32 weights."""
    name = reference.__name__
    x = torch.from_numpy(inputs(np.float64)[0]).to(torch.bfloat16)
    save_torch({"x": x}, folder / "in.safetensors")
    apply_mixer(name, folder, settings, *SIZES, "--seed", 0)
    weights = load_torch(folder / "out.safetensors")
    y = weights.pop("y")
    assert y.dtype == torch.bfloat16, f"{name}: {y.dtype}"
    assert all(weight.dtype == torch.float32 for weight in weights.values()), name
    if name == "reformer":  # rounded queries fall into other buckets
        return
    error = difference(reference, y.double().numpy(), x.double().numpy(),
                       np.ones(x.shape[:2], bool), {k: w.numpy() for k, w in weights.items()},
                       {**default_settings(name), **settings, "seed": 0})
    assert error <= BF16_TOLERANCE, f"{name} {settings} bfloat16: {error:.1e}"
    print(f"ok: {name} {settings} bfloat16: {error:.1e}")


def refuse(folder, phrase, tensors, *words):
    """One line with the phrase on standard error, exit code 2, nothing written."""
    save_file(tensors, folder / "bad.safetensors")
    done = lra("mixer", "run", *words, "--in", folder / "bad.safetensors", "--out",
               folder / "never.safetensors")
    assert done.returncode == 2, f"{words}: {done.returncode}, {done.stderr}"
    assert done.stderr.count("\n") == 1 and re.search(phrase, done.stderr), done.stderr
    assert not (folder / "never.safetensors").exists()


def check_errors(folder):
    x = np.zeros((2, 5, 4), np.float32)
    fresh = run_mixer("linformer", folder, {"x": x}, {"rank": 3})
    weights = {key: value for key, value in fresh.items() if key != "y"}
    whole = {"x": x, **weights}
    linformer_3 = ("linformer", "--set", "mixer.rank=3")
    refuse(folder, "unknown model 'linfomer'.*'linformer'", {"x": x}, "linfomer")
    refuse(folder, "tensor 'x': is missing", {"mask": np.ones((2, 5), np.uint8)}, "local")
    refuse(folder, r"tensor 'x': has shape \[2, 5\]", {"x": x[..., 0].copy()}, "local")
    refuse(folder, "tensor 'x': is I32", {"x": x.astype(np.int32)}, "local")
    refuse(folder, r"tensor 'mask': has shape \[5\].*\[2, 5\]",
           {"x": x, "mask": np.ones(5, np.uint8)}, "local")
    refuse(folder, "tensor 'mask': is F32", {"x": x, "mask": x[..., 0].copy()}, "local")
    refuse(folder, "tensor 'mask': holds a value above 1",
           {"x": x, "mask": np.full((2, 5), 2, np.uint8)}, "local")
    refuse(folder, "tensor 'projection': is missing",
           {key: value for key, value in whole.items() if key != "projection"}, *linformer_3)
    refuse(folder, r"tensor 'projection': has shape \[4, 3\].*\[5, 3\]",
           {**whole, "projection": weights["projection"][:4].copy()}, *linformer_3)
    refuse(folder, "tensor 'projection': is F64.*F32",
           {**whole, "projection": weights["projection"].astype(np.float64)}, *linformer_3)
    refuse(folder, "tensor 'projektion': is not.*'projection'",
           {**whole, "projektion": weights["projection"]}, *linformer_3)
    refuse(folder, "--seed: .*its own weights", whole, *linformer_3, "--seed", 1)
    refuse(folder, "3 heads do not divide the width 4", {"x": x}, "local", "--heads", 3)
    refuse(folder, "--max-length: 4 is below", {"x": x}, "local", "--max-length", 4)
    refuse(folder, "unknown section 'rank'", {"x": x}, "linformer", "--set", "rank=3")
    refuse(folder, "mixer.rnk.*'mixer.rank'", {"x": x}, "linformer", "--set", "mixer.rnk=3")
    print("ok: errors")


def check_subnormal_numbers(folder):
    """Those of float32 are 0 in the program, read or made; in float64 the same weights are normal numbers."""
    for dtype, expected in ((np.float32, 0), (np.float64, 1e-41)):
        x = np.ones((1, 5, WIDTH), dtype)
        weights = run_mixer("transformer", folder, {"x": x}, {}, *SIZES, "--seed", SEED)
        del weights["y"]
        weights["output.weight"] = np.full_like(weights["output.weight"], 1e-41)
        largest = np.abs(run_mixer("transformer", folder, {"x": x, **weights}, {}, *SIZES)["y"]).max()
        assert largest <= expected * 100 and (largest > 0) == (expected > 0), f"{dtype.__name__}: {largest}"
    print("ok: numbers below the smallest normal one are 0")


def main():
    names = sorted(row["name"] for row in lra_json("list", "models")["models"])
    for name in sorted(set(names) - {reference.__name__ for reference in REFERENCES}):
        print(f"no definition in this file: {name}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for reference in REFERENCES:
            cases = CASES[reference.__name__]
            for settings in cases:
                check_case(reference, settings, np.float64, folder, settings is cases[0] or not os.environ.get("LRA_QUICK"))
            check_case(reference, cases[0], np.float32, folder, False)
            check_bf16(reference, cases[0], folder)
        check_subnormal_numbers(folder)
        check_errors(folder)


main()
