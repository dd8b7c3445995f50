"""The whole model once more in plain PyTorch float64, against what lra eval says of a run.

Weights come from the run's model.safetensors, what mixers draw from its seed, examples from the
exported official files, everything between them from the papers. Loss (to 1e-5), accuracy and
confusion matrix of both must agree, for every mixer (with LRA_QUICK one of each family) and for both
kinds of positions, pooling and classifier.

A new mixer without a reference in Model.MIXERS is named, and passes.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib

import numpy as np
import torch
import torch.nn.functional as functional

try:
    from safetensors.torch import load_file
except ImportError:
    print("skipped: no safetensors package")
    sys.exit(77)

from definitions import draws, pairs

PROGRAM = os.environ["LRA_PROGRAM"]
torch.set_num_threads(1)

# Ids of the published vocabulary; 0 is padding. Parentheses of the curried form are not tokens.
LISTOPS_IDS = {word: 1 + i for i, word in enumerate(
    ["[MIN", "[MAX", "[MED", "[SM", "]", *map(str, range(10))])}


def lra(*words):
    done = subprocess.run([PROGRAM, *map(str, words), "--threads", "1", "--quiet"], check=True,
                          stdout=subprocess.PIPE)
    return done.stdout


def listops_examples(folder, split):
    lines = (folder / "listops-1000" / f"basic_{split}.tsv").read_text().splitlines()[1:]
    for line in lines:
        source, target = line.split("\t")
        words = source.replace("(", " ").replace(")", " ").split()
        yield [LISTOPS_IDS[word] for word in words], int(target)


def text_examples(folder, split):
    for label, name in enumerate(("neg", "pos")):
        for path in sorted((folder / "aclImdb" / split / name).iterdir()):
            yield [byte + 1 for byte in path.read_bytes()], label


def sinusoids(length, width):
    channel = torch.arange(width, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** (
        -2 * torch.div(channel, 2, rounding_mode="floor") / width)
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos())


class Model:
    """One sequence at a time, without any padding. Images have no length among their settings."""

    def __init__(self, run, length=None):
        self.config = tomllib.loads((run / "config.toml").read_text())
        self.w = {name: t.double() for name, t in
                  load_file(run / "checkpoints" / "latest" / "model.safetensors").items()}
        self.mixer = self.config["mixer"]
        self.length = length or self.config["task"]["length"]
        self.max_length = self.length + int(self.config["model"]["pooling"] == "cls")

    def norm(self, x, name):
        weight = self.w[name + ".weight"]
        if self.config["model"]["norm"] == "rms":
            return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight
        bias = self.w[name + ".bias"]
        if self.config["model"]["norm"] == "batch":
            mean, variance = (self.w[name + key] for key in (".running_mean", ".running_var"))
            return (x - mean) / (variance + 1e-5).sqrt() * weight + bias
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight + bias

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def heads(self, x, name):
        """[L, parts * H * E] -> parts times [H, L, E]"""
        heads = self.config["model"]["heads"]
        width = self.config["model"]["qkv_dim"] // heads
        y = self.linear(x, name)
        return y.view(len(x), -1, heads, width).permute(1, 2, 0, 3).unbind(0)

    # One function for each mixer: heads of [L, D] before the output projection, [H, L, E].

    def transformer(self, x, prefix):
        return softmax_attention(*self.heads(x, prefix + "qkv"))

    def local(self, x, prefix):
        parts = [t.split(self.mixer["block"], 1) for t in self.heads(x, prefix + "qkv")]
        return torch.cat([softmax_attention(*block) for block in zip(*parts)], 1)

    @staticmethod
    def layer(prefix):
        """encoder.layers.I.mixer. -> I"""
        return int(prefix.split(".")[2])

    def drawn_key(self, prefix, name):
        return draws.weight_key(self.config["run"]["seed"], prefix + name)

    def seeing(self, x, prefix, allowed):
        """Softmax attention over the pairs of `allowed`, bool [L, L] or [H, L, L]."""
        return softmax_attention(*self.heads(x, prefix + "qkv"), torch.from_numpy(allowed))

    def sparse_transformer(self, x, prefix):
        allowed = pairs.sparse_transformer(len(x), self.max_length, self.mixer)
        return self.seeing(x, prefix, allowed)

    def longformer(self, x, prefix):
        others = self.seeing(x, prefix, pairs.longformer(len(x), self.mixer))
        count = self.mixer["global_tokens"]
        (q,), (k, v) = (self.heads(x, prefix + name) for name in ("global_query",
                                                                  "global_key_value"))
        return torch.cat([softmax_attention(q[:, :count], k, v), others[:, count:]], 1)

    def reformer(self, x, prefix):
        q, v = self.heads(x, prefix + "query_value")
        buckets = self.mixer["buckets"] or 2 * math.ceil(self.max_length / self.mixer["chunk"])
        rotations = draws.reformer_rotations(self.layer(prefix), len(q), self.mixer["rounds"],
                                             q.shape[-1], buckets // 2)
        valid = np.ones(len(x), bool)
        allowed = [pairs.reformer(head.detach().numpy(), valid, rotation, self.mixer)
                   for head, rotation in zip(q, rotations)]
        k = q / q.norm(dim=-1, keepdim=True)
        return softmax_attention(q, k, v, torch.from_numpy(np.array(allowed)))

    def sinkhorn(self, x, prefix):
        block = self.mixer["block"]
        q, *kv = self.heads(x, prefix + "qkv")
        blocks = -(-len(x) // block)
        k, v = (functional.pad(t, (0, 0, 0, blocks * block - len(x))).unflatten(1, (blocks, block))
                for t in kv)
        sort = self.w[prefix + "sort"][:, :blocks]
        s = (k.sum(2) @ sort.transpose(1, 2) / self.mixer["temperature"]).exp()
        for _ in range(self.mixer["iterations"]):
            s = s / s.sum(2, keepdim=True)
            s = s / s.sum(1, keepdim=True)
        parts = []
        for n, own in enumerate(q.split(block, 1)):
            # With more blocks than one, every row of the sorted block holds tokens.
            rows = len(x) if blocks == 1 else block
            both = [torch.cat([t[:, n, :own.shape[1]],
                               torch.einsum("hl,hlre->hre", s[:, n], t)[:, :rows]], 1)
                    for t in (k, v)]
            parts.append(softmax_attention(own, *both))
        return torch.cat(parts, 1)

    def bigbird(self, x, prefix):
        heads = self.config["model"]["heads"]
        key = self.drawn_key(prefix, "pattern")
        return self.seeing(x, prefix, pairs.bigbird(len(x), len(x), heads, key, self.mixer))

    def synthesizer(self, x, prefix):
        (v,) = self.heads(x, prefix + "value")
        factors = (self.w[prefix + name][:, :len(x)] for name in ("factor1", "factor2"))
        scores = torch.einsum("hir,hjr->hij", *factors)
        return scores.softmax(-1) @ v

    def performer(self, x, prefix):
        q, k, v = self.heads(x, prefix + "qkv")
        key = self.drawn_key(prefix, "features")
        w = torch.from_numpy(draws.performer_features(key, self.mixer["num_features"], q.shape[-1]))
        q, k = ((t @ w.T - t.square().sum(-1, keepdim=True) / 2).exp()
                for t in (t * t.shape[-1] ** -0.25 for t in (q, k)))
        weights = q @ k.transpose(1, 2)
        return weights @ v / weights.sum(-1, keepdim=True)

    def linformer(self, x, prefix):
        (q,), (k, v) = self.heads(x, prefix + "query"), self.heads(x, prefix + "key_value")
        p = self.w[prefix + "projection"][:len(x)]
        return softmax_attention(q, p.T @ k, p.T @ v)

    def linear_transformer(self, x, prefix):
        q, k, v = self.heads(x, prefix + "qkv")
        weights = (functional.elu(q) + 1) @ (functional.elu(k) + 1).transpose(1, 2)
        return (weights @ v) / (weights.sum(-1, keepdim=True) + self.mixer["eps"])

    def s4d(self, x, prefix):
        """S4D as published: one bidirectional convolution by FFT of length 2 L, with shared poles."""
        log_rate, frequency, log_dt, c = (self.w[prefix + name] for name in (
            "log_rate", "frequency", "dt", "c"))
        pole = torch.complex(-log_rate.exp(), frequency)
        z = pole * log_dt.exp()[:, None]  # [D, N / 2]
        reads = torch.view_as_complex(c.contiguous()) * (z.exp() - 1) / pole
        powers = (z[..., None] * torch.arange(len(x))).exp()
        forward, behind = 2 * (reads[..., None] * powers).sum(2).real
        kernel = torch.fft.rfft(torch.cat([forward, behind.flip(1)], 1))
        y = torch.fft.irfft(torch.fft.rfft(x.T, 2 * len(x)) * kernel, 2 * len(x))[:, :len(x)].T
        g = functional.gelu(y + self.w[prefix + "skip"] * x, approximate="tanh")
        return functional.glu(self.linear(g, prefix + "output.linear"), -1)

    def state_space(self, x, prefix, pole, b, c):
        """By matrices of powers; c [D, 2, P] reads both directions."""
        w = self.w
        v = x.to(b.dtype) @ b.T
        lag = torch.arange(len(x))[:, None] - torch.arange(len(x))
        power = pole[:, None] ** torch.arange(len(x))
        y = w[prefix + "skip"] * x
        for direction, steps in enumerate((lag, -lag)):
            powers = torch.where(steps >= 0, power[:, steps.clamp_min(0)], 0)
            y = y + (torch.einsum("pij,jp->ip", powers, v) @ c[:, direction].T).real
        return y

    def complex_of(self, name, axis):
        return torch.complex(*self.w[name].unbind(axis))

    def s5(self, x, prefix):
        pole_rate = torch.complex(self.w[prefix + "lambda_re"], self.w[prefix + "lambda_im"])
        pole = (pole_rate * self.w[prefix + "dt"].exp()).exp()
        b = ((pole - 1) / pole_rate)[:, None] * self.complex_of(prefix + "b", 0)
        y = self.state_space(x, prefix, pole, b, 2 * self.complex_of(prefix + "c", 2))
        g = functional.gelu(y, approximate="tanh")
        value = g if self.mixer["output"] == "half_glu1" else y
        return value * self.linear(g, prefix + "output.linear").sigmoid()

    def lru(self, x, prefix):
        nu, theta, gamma = (self.w[prefix + name].exp() for name in (
            "nu_log", "theta_log", "gamma_log"))
        b = gamma[:, None] * self.complex_of(prefix + "b", 0)
        pole = torch.complex(-nu, theta).exp()
        y = self.state_space(x, prefix, pole, b, self.complex_of(prefix + "c", 2))
        g = functional.gelu(y, approximate="tanh")
        return functional.glu(self.linear(g, prefix + "output.linear"), -1)

    def linoss(self, x, prefix):
        dt = self.w[prefix + "step"].sigmoid()
        a = torch.maximum(self.w[prefix + "a"], 1e-6 / dt**2)
        b, c, implicit = self.complex_of(prefix + "b", 0), self.complex_of(prefix + "c", 2), self.mixer["discretization"] == "im"
        y = self.w[prefix + "skip"] * x
        s = 1 / (1 + dt * dt * a) if implicit else torch.ones_like(a)
        for direction in range(c.shape[1]):
            z, position, rows = torch.zeros(len(a), dtype=b.dtype), torch.zeros(len(a), dtype=b.dtype), []
            for u in x.flip(0) if direction else x:
                force = b @ u.to(b.dtype)
                before, z = z, s * (z + dt * (force - a * position))
                position = s * (position + dt * before + dt * dt * force) if implicit else position + dt * z
                rows.append(position)
            states = torch.stack(rows)
            y = y + ((states.flip(0) if direction else states) @ c[:, direction].T).real
        g = functional.gelu(y, approximate="tanh")
        return functional.glu(self.linear(g, prefix + "output.linear"), -1)

    def mamba(self, x, prefix):
        w = {name.removeprefix(prefix): t for name, t in self.w.items() if name.startswith(prefix)}
        assert "b_bias" in w or self.mixer["blocks"] == 1
        u, z = functional.linear(x, w["in_weight"]).chunk(2, 1)
        y = sum(tokens.flip(0) if k else tokens
                for k in range(len(w["skip"]))
                for tokens in [self.mamba_scan(u.flip(0) if k else u,
                                               {name: t[k] for name, t in w.items()
                                                if name not in ("in_weight", "out_weight")})])
        return functional.linear(y * functional.silu(z), w["out_weight"])

    def mamba_scan(self, x, w):
        kernel, states, rank = w["conv_weight"], self.mixer["states"], w["step_weight"].shape[1]
        local = functional.conv1d(x.T[None], kernel.flip(1)[:, None], w["conv_bias"],
                                  padding=kernel.shape[1] - 1, groups=len(kernel))[0, :, :len(x)]
        u = functional.silu(local.T)
        blocks = u.unflatten(1, (len(w["select_weight"]), -1))
        r, b, c = torch.einsum("ljp,jrp->ljr", blocks, w["select_weight"]).split(
            [rank, states, states], 2)
        r, b, c = (t.repeat_interleave(blocks.shape[2], 1) for t in (r, b, c))  # [L, E, ...]
        step = functional.softplus((r * w["step_weight"]).sum(2) + w["step_bias"])
        b = b + w["b_bias"] if "b_bias" in w else b
        h, y = 0, []
        for t in range(len(x)):
            h = (-step[t, :, None] * w["a_log"].exp()).exp() * h + (step[t] * u[t])[:, None] * b[t]
            y.append((c[t] * h).sum(1))
        return torch.stack(y) + w["skip"] * u

    def turned(self, run, *arrays):
        """run(direction, share of each array in the order of time) of both directions, joined."""
        directions = 1 + self.mixer["bidirectional"]
        rows = []
        for d in range(directions):
            turn = lambda t: t.flip(0) if d else t  # noqa: E731, B023
            rows.append(turn(run(d, *(turn(t.chunk(directions, 1)[d]) for t in arrays))))
        return torch.cat(rows, 1)

    def convolved(self, x, kernel, bias=0.0):
        """A convolution of x [L, E] with the tokens before, in each direction."""
        directions, width, rows = 1 + self.mixer["bidirectional"], kernel.shape[1], []
        for d, (part, weight) in enumerate(zip(x.chunk(directions, 1), kernel.chunk(directions))):
            padded = functional.pad((part.flip(0) if d else part).T, (width - 1, 0))
            y = (padded.unfold(1, width, 1).flip(2) * weight[:, None]).sum(2).T
            rows.append(y.flip(0) if d else y)
        return torch.cat(rows, 1) + bias

    @staticmethod
    def memory(q, k, v, a, beta=None):
        """S[t]^T q; q, k [L, H, K], v [L, H, V], a [L, H, 1 or K]"""
        state, rows = torch.zeros(*k.shape[1:], v.shape[2]), []
        for t in range(len(q)):
            state = a[t][..., None] * state
            u = v[t] if beta is None else beta[t][:, None] * (v[t] - torch.einsum("hkv,hk->hv", state, k[t]))
            state = state + k[t][..., None] * u[:, None]
            rows.append(torch.einsum("hkv,hk->hv", state, q[t]))
        return torch.stack(rows)

    @staticmethod
    def rms(x, weight):
        return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight

    def gated_heads(self, x, prefix, q, k, v, a, beta=None):
        arrays = (q / q.shape[2]**0.5, k, v, a) + (() if beta is None else (beta,))
        o = self.turned(lambda d, *t: self.memory(*t), *arrays)
        o = self.rms(o, self.w[prefix + "norm_weight"]).flatten(1)
        if prefix + "gate_weight" in self.w:
            o = o * functional.silu(x @ self.w[prefix + "gate_weight"].T)
        return o @ self.w[prefix + "out_weight"].T

    def gated_deltanet(self, x, prefix):
        heads, values = self.mixer["num_heads"], len(self.w[prefix + "norm_weight"])
        keys = (len(self.w[prefix + "qkv_weight"]) // heads - values) // 2
        cuts = [heads * keys, heads * keys, heads * values]
        q, k, v = (functional.silu(self.convolved(part, kernel)).unflatten(1, (heads, -1)) for part, kernel in zip(
            (x @ self.w[prefix + "qkv_weight"].T).split(cuts, 1), self.w[prefix + "conv_weight"].split(cuts)))
        q, k = (t / (t.square().sum(-1, keepdim=True) + 1e-6).sqrt() for t in (q, k))
        beta = (x @ self.w[prefix + "beta_weight"].T).sigmoid() * (1 + self.mixer["negative_eigenvalues"])
        a = torch.ones_like(beta)
        if self.mixer["decay"]:
            step = functional.softplus(x @ self.w[prefix + "decay_weight"].T + self.w[prefix + "dt_bias"])
            a = (-self.w[prefix + "a_log"].exp() * step).exp()
        return self.gated_heads(x, prefix, q, k, v, a[..., None], beta)

    def mamba2(self, x, prefix):
        w = {name.removeprefix(prefix): t for name, t in self.w.items() if name.startswith(prefix)}
        directions, states, inner, heads = 1 + self.mixer["bidirectional"], self.mixer["states"], len(
            w["norm_weight"]), len(w["skip"])
        shared = directions * states
        z, *mixed, step = (x @ w["in_weight"].T).split([inner, inner, shared, shared, heads], 1)
        rows = [functional.silu(self.convolved(*one)) for one in zip(mixed, *(
            w[name].split([inner, shared, shared]) for name in ("conv_weight", "conv_bias")))]
        value = rows[0].unflatten(1, (heads, -1))
        b, c = (t.unflatten(1, (directions, states)).repeat_interleave(heads // directions, 1) for t in rows[1:])
        step = functional.softplus(step + w["dt_bias"])
        decay = (-step * w["a_log"].exp()).exp()
        y = self.turned(lambda d, *t: self.memory(*t), c, b, step[..., None] * value, decay[..., None])
        y = (y + w["skip"][:, None] * value).flatten(1) * functional.silu(z)
        groups = y.unflatten(1, (directions, -1))
        return self.rms(groups, w["norm_weight"].view(directions, -1)).flatten(1) @ w["out_weight"].T

    def retnet(self, x, prefix):
        heads, values = self.mixer["num_heads"], len(self.w[prefix + "norm_weight"])
        keys = (len(self.w[prefix + "qkv_weight"]) // heads - values) // 2
        q, k, v = (t.unflatten(1, (heads, -1)) for t in (x @ self.w[prefix + "qkv_weight"].T).split(
            [heads * keys, heads * keys, heads * values], 1))
        angle = torch.arange(len(x))[:, None, None] * 10000.0**(-torch.arange(0, keys, 2) / keys)
        rotary = lambda t: torch.view_as_real(  # noqa: E731
            torch.view_as_complex(t.unflatten(2, (-1, 2)).contiguous()) * torch.polar(
                torch.ones_like(angle), angle)).flatten(2)
        head = torch.arange(heads) % (heads // (1 + self.mixer["bidirectional"]))
        decay = (1 - 2.0**(-5 - head.double())).expand(len(x), heads)[..., None]
        return self.gated_heads(x, prefix, rotary(q), rotary(k), v, decay)

    def gla(self, x, prefix):
        heads, keys = self.mixer["num_heads"], len(self.w[prefix + "decay_bias"])
        q, k, v = (t.unflatten(1, (heads, -1)) for t in (x @ self.w[prefix + "qkv_weight"].T).tensor_split(
            [keys, 2 * keys], 1))
        logits = x @ self.w[prefix + "decay_in_weight"].T @ self.w[prefix + "decay_out_weight"].T
        a = (logits + self.w[prefix + "decay_bias"]).sigmoid()**(1 / self.mixer["temperature"])
        return self.gated_heads(x, prefix, q, k, v, a.unflatten(1, (heads, -1)))

    def hgrn2(self, x, prefix):
        width = self.mixer["head_channels"] or min(128, x.shape[1] // 4)
        q, g, v = (x @ self.w[prefix + "in_weight"].T).chunk(3, 1)
        bound = self.w[prefix + "bound"].sigmoid() if prefix + "bound" in self.w else 0
        f = bound + (1 - bound) * g.sigmoid()
        heads = [t.unflatten(1, (-1, width)) for t in (functional.silu(q), 1 - f, v, f)]
        o = self.turned(lambda d, *t: self.memory(*t), *heads).flatten(1)
        return self.rms(o, self.w[prefix + "norm_weight"]) @ self.w[prefix + "out_weight"].T

    def mlstm(self, x, prefix):
        w = {name.removeprefix(prefix): t for name, t in self.w.items() if name.startswith(prefix)}
        heads = self.mixer["num_heads"]
        u, z = (x @ w["up_weight"].T).chunk(2, 1)
        c = functional.silu(self.convolved(u, w["conv_weight"], w["conv_bias"]))
        q, k, v = (torch.einsum("lgp,grp->lgr", t.unflatten(1, (len(m), -1)), m).flatten(1)
                   for t, m in zip((c, c, u), w["qkv_weight"]))
        i, g = (torch.cat([q, k, v], 1) @ w["gate_weight"].T + w["gate_bias"]).chunk(2, 1)
        q, k, v = (t.unflatten(1, (heads, -1)) for t in (q, k, v))
        arrays = (q, k * i.exp()[..., None] / k.shape[2]**0.5, v, g.sigmoid()[..., None])

        def run(d, q, k, v, a):
            return self.memory(q, k, v, a) / self.memory(q, k, torch.ones_like(v[..., :1]), a).abs().clamp_min(1)

        h = self.turned(run, *arrays)
        h = self.rms(h - h.mean(-1, keepdim=True), w["norm_weight"].view(heads, -1)).flatten(1)
        return ((h + w["skip"] * c) * functional.silu(z)) @ w["down_weight"].T

    @staticmethod
    def gated_states(a, v):
        h, rows = 0, []
        for t in range(len(a)):
            h = a[t] * h + v[t]
            rows.append(h)
        return torch.stack(rows)

    def min_gru(self, x, prefix):
        z, c = self.linear(x, prefix + "gate").sigmoid(), self.linear(x, prefix + "candidate")
        if self.mixer.get("forget_gate"):
            z = z / (z + self.linear(x, prefix + "forget").sigmoid())
        if self.mixer["candidate"] == "positive":
            c = torch.where(c >= 0, c + 0.5, c.sigmoid())
        h = self.turned(lambda d, z, c: self.gated_states(1 - z, z * c), z, c)
        return self.linear(h, prefix + "output")

    def rg_lru(self, x, prefix):
        mixed = self.convolved(self.linear(x, prefix + "input"), self.w[prefix + "conv_weight"],
                               self.w[prefix + "conv_bias"])
        gates = {}
        for name in "ai":
            weight = torch.block_diag(*self.w[prefix + name + "_weight"])
            gates[name] = (mixed @ weight.T + self.w[prefix + name + "_bias"]).sigmoid()
        a = (-8 * gates["a"] * functional.softplus(self.w[prefix + "lambda"])).exp()

        def run(_, a, v):
            scale = (1 - a.square()).clamp_min(2.5e-7).sqrt()
            return self.gated_states(a, torch.cat([torch.ones_like(scale[:1]), scale[1:]]) * v)

        y = functional.gelu(self.linear(x, prefix + "gate"), approximate="tanh")
        return self.linear(self.turned(run, a, gates["i"] * mixed) * y, prefix + "output")

    def mega(self, x, prefix):
        w = {name.removeprefix(prefix): t for name, t in self.w.items() if name.startswith(prefix)}
        silu, settings, length = functional.silu, self.mixer, len(x)
        z, v = settings["z_dim"], settings["v_dim"]
        p = w["ema_delta"].sigmoid()
        q = 1 - p * w["ema_alpha"].sigmoid()
        c = w["ema_eta"] * p * w["ema_beta"] / math.sqrt(settings["ema_dim"])
        lag = torch.arange(length)[:, None] - torch.arange(length)
        m = w["ema_omega"] * x
        for direction, steps in enumerate((lag, -lag)):
            kernel = torch.einsum("nd,ndl->dl", c[direction],
                                  q[direction][..., None] ** torch.arange(length))
            matrix = torch.where(steps >= 0, kernel[:, steps.clamp_min(0)], 0.0)
            m = m + torch.einsum("dij,jd->id", matrix, x)
        base = functional.linear(silu(m), w["base_weight"], w["base_bias"])
        gate, shared, r, e = base.split([x.shape[1], z, v, x.shape[1]], 1)
        queries, keys = (silu(shared) * w["scale"][i] + w["shift"][i] for i in (0, 1))
        window = settings["chunk"] or self.max_length
        place = torch.arange(length) // window
        bias = w["position_bias"][-lag.clamp(1 - window, window - 1) + window - 1]
        assert settings["attention"] == "softmax"
        scores = queries @ keys.T / math.sqrt(z) + bias
        weights = scores.masked_fill(place[:, None] != place, -math.inf).softmax(-1)
        values = silu(functional.linear(x, w["value_weight"], w["value_bias"]))
        h = functional.linear(weights @ values * silu(r), w["hidden_weight"], w["hidden_bias"])
        return gate.sigmoid() * (silu(e + h) - self.stream)

    def long_conv(self, x, prefix):
        settings, kernel = self.mixer, self.w[prefix + "kernel"]
        assert settings["kind"] == "free" and settings["output"] == "glu"
        kernel = kernel.sign() * (kernel.abs() - settings["squash"]).clamp_min(0)
        future = kernel.shape[1] // 2 if settings["bidirectional"] else 0
        position = torch.arange(len(x))
        lag = position[:, None] - position + future
        seen = (lag >= 0) & (lag < kernel.shape[1])
        weights = torch.where(seen, kernel[:, lag.clamp(0, kernel.shape[1] - 1)], 0.0)
        y = torch.einsum("dts,sd->td", weights, x) + self.w[prefix + "skip"] * x
        g = functional.gelu(y, approximate="tanh")
        return functional.glu(self.linear(g, prefix + "output.linear"), -1)

    def chordmixer(self, x, prefix):
        y = functional.gelu(self.linear(x, prefix + "mlp.fc1"), approximate="tanh")
        tracks = self.linear(y, prefix + "mlp.fc2").tensor_split(
            1 + (self.max_length - 1).bit_length(), 1)
        offsets = [0] + [2**m for m in range(len(tracks) - 1)]
        return torch.cat([t.roll(-offset, 0) for t, offset in zip(tracks, offsets)], 1)

    MIXERS = {f.__name__: f for f in (
        transformer, local, sparse_transformer, longformer, linformer, reformer, sinkhorn,
        synthesizer, bigbird, linear_transformer, performer, s4d, long_conv,
        chordmixer, s5, lru, linoss, mega, mamba, mamba2, gated_deltanet, min_gru, retnet, gla, hgrn2, mlstm, rg_lru)}

    def mix(self, x, prefix):
        y = self.MIXERS[self.config["run"]["model"]](self, x, prefix)
        if y.dim() == 2:  # a layer without heads: [L, D]
            return y
        return self.linear(y.transpose(0, 1).flatten(1), prefix + "output")

    def positions(self, count):
        """Encodings that are added to the first tokens, CLS counted."""
        if self.config["model"]["positions"] == "none":
            return 0
        learned = self.w.get("embedding.position")
        width = self.config["model"]["embed_dim"]
        return sinusoids(count, width) if learned is None else learned[:count]

    def embed(self, ids):
        x = self.w["embedding.token"][torch.tensor(ids[:self.length])]
        if self.config["model"]["pooling"] == "cls":
            x = torch.cat([self.w["embedding.cls"][None], x])
        return x + self.positions(len(x))

    def read(self, x):
        """Maps embedded tokens to the vector that is classified."""
        for layer in range(self.config["model"]["layers"]):
            block = f"encoder.layers.{layer}."
            self.stream = x
            x = x + self.mix(self.norm(x, block + "norm1"), block + "mixer.")
            if self.config["model"]["feed_forward"] == "none":
                continue
            hidden = self.linear(self.norm(x, block + "norm2"), block + "mlp.fc1")
            hidden = functional.gelu(hidden, approximate="tanh")
            x = x + self.linear(hidden, block + "mlp.fc2")
        x = self.norm(x, "encoder.norm")
        return x[0] if self.config["model"]["pooling"] == "cls" else x.mean(0)

    def logits(self, ids):
        x = self.read(self.embed(ids))
        if self.config["model"]["classifier"] == "mlp":
            x = functional.relu(self.linear(x, "head.hidden"))
        return self.linear(x, "head.output")


def softmax_attention(q, k, v, allowed=torch.tensor(True)):
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    return scores.masked_fill(~allowed, -math.inf).softmax(-1) @ v


def figures(model, examples, num_classes):
    loss, confusion = 0.0, [[0] * num_classes for _ in range(num_classes)]
    for ids, label in examples:
        logits = model.logits(ids)
        loss -= logits.log_softmax(-1)[label].item()
        confusion[label][logits.argmax().item()] += 1
    return loss / len(examples), confusion


def words_of(settings):
    return [word for setting in settings for word in ("--set", setting)]


def compare(scratch, task, model, examples, settings):
    run = scratch / f"{task}-{model}-{len(list(scratch.iterdir()))}"
    common = ["train.steps=4", "train.warmup_steps=1", "train.batch_size=4",
              "train.learning_rate=0.01", "train.precision=fp32"]
    lra("train", task, model, "--data", scratch / "data", "--out", run,
        *words_of(common + settings))
    said = json.loads(lra("eval", run, "--json", "--data", scratch / "data"))
    assert said["examples"] == len(examples), said["examples"]
    loss, confusion = figures(Model(run), examples, len(said["confusion"]))
    name = f"{task} {model} {' '.join(settings)}"
    assert abs(loss - said["loss"]) <= 1e-5 * max(1, loss), f"{name}: loss {loss:.6f}, lra says {said['loss']:.6f}"
    assert confusion == said["confusion"], f"{name}: {confusion}, lra says {said['confusion']}"
    right = sum(row[i] for i, row in enumerate(confusion))
    assert abs(said["accuracy"] - right / len(examples)) < 1e-9, f"{name}: {said['accuracy']}"
    print(f"ok: {name}: loss {loss:.6f}, {abs(loss - said['loss']):.1e} apart")


# Settings of the examples; a run must name them, too.
LISTOPS_DATA = ["task.min_length=20", "task.max_length=200"]
# Settings under which short sequences meet every part of the mechanism.
SETTINGS = {"sparse_transformer": ["mixer.summary=3"], "longformer": ["mixer.window=20"],
            "reformer": ["mixer.chunk=16"], "sinkhorn": ["mixer.block=16"],
            "bigbird": ["mixer.block=4"], "mega": ["mixer.chunk=16"], "performer": ["mixer.num_features=50"]}


# One of each family; what each mixer computes, mixers_from_python.py compares.
FAMILIES = {"transformer", "bigbird", "reformer", "synthesizer", "performer", "s4d", "mega", "mamba", "gated_deltanet",
            "long_conv"}


def models():
    """Every mixer that has a reference, with LRA_QUICK of FAMILIES; names those without."""
    names = [model["name"] for model in json.loads(lra("list", "models", "--json"))["models"]]
    for name in names:
        if name not in Model.MIXERS:
            print(f"no reference for {name}")
    wanted = FAMILIES if os.environ.get("LRA_QUICK") else Model.MIXERS.keys()
    return [name for name in names if name in Model.MIXERS.keys() & wanted]


def write_reviews(folder):
    """40 made-up reviews of very different lengths, some cut by task.length."""
    for split in ("train", "test"):
        for label, ratings in (("neg", 1), ("pos", 7)):
            place = folder / "aclImdb" / split / label
            place.mkdir(parents=True)
            for i in range(10):
                text = f"{label} \u6620\u753b {split} " * (1 + 3 * (i * 7 % 10))
                (place / f"{i}_{ratings + i % 4}.txt").write_text(text[:1 + 40 * i])


def make_examples(scratch, num_listops):
    """Prepares Text and ListOps in scratch/data; the test examples of both."""
    data, official = scratch / "data", scratch / "official"
    lra("data", "make", "listops", "--train", 60, "--val", 4, "--test", num_listops, "--seed", 5,
        *words_of(LISTOPS_DATA), "--out", data / "listops")
    lra("data", "export", "listops", data / "listops", *words_of(LISTOPS_DATA), "--out", official)
    write_reviews(official)
    lra("data", "import", "text", official, "--out", data / "text")
    return list(text_examples(official, "test")), list(listops_examples(official, "test"))


def image_examples(folder, num_pixels):
    """Test examples as the prepared folder holds them: its layout is that of data/dataset.h."""
    (shard,) = json.loads((folder / "manifest.json").read_text())["splits"]["test"]
    data, count = (folder / shard["file"]).read_bytes(), shard["num_examples"]
    labels = np.frombuffer(data, "<i4", count, 64)
    pixels = np.frombuffer(data[-count * num_pixels:], np.uint8).reshape(count, num_pixels)
    return [(list(map(int, image)), int(label)) for image, label in zip(pixels, labels)]


def main():
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        text, listops = make_examples(scratch, 40)
        cls = ["model.pooling=cls", "model.positions=sinusoid"]
        mean = ["model.pooling=mean", "model.positions=learned"]
        for model in models():
            own = SETTINGS.get(model, [])
            compare(scratch, "text", model, text, ["task.length=150", *cls, *own])
            compare(scratch, "listops", model, listops,
                    ["task.length=180", *LISTOPS_DATA, *mean, *own])
        compare(scratch, "text", "s4d", text, ["task.length=150"])
        compare(scratch, "text", "local", text, ["mixer.block=7", "model.classifier=linear", *mean])
        compare(scratch, "text", "linformer", text, ["mixer.rank=9", "model.heads=4"])


if __name__ == "__main__":
    main()
