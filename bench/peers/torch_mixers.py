"""The mechanisms in plain PyTorch, from their definitions.

A core maps queries, keys and values [B, H, L, E] to [B, H, L, E]; `length` is L, `drop` the rate of
attention dropout. Attention goes through scaled_dot_product_attention wherever that is at least as
fast as writing it out: its fused CPU kernel serves drop = 0 and constant masks. A layer, which has no
heads, maps [B, L, D] to the same.
"""
import math

import torch
import torch.nn.functional as functional
from torch import nn

attend = functional.scaled_dot_product_attention


def written_out(q, k, v, drop, bias=None):
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    weights = torch.softmax(scores if bias is None else scores + bias, -1)
    return functional.dropout(weights, drop) @ v


class Exact(nn.Module):
    def __init__(self, length, heads, width, drop):
        super().__init__()
        self.drop = drop

    def forward(self, q, k, v):
        return attend(q, k, v, dropout_p=self.drop)


class Local(nn.Module):
    """Softmax attention inside blocks; the last one is padded and masked."""

    def __init__(self, length, heads, width, drop, block=50):
        super().__init__()
        self.block, self.drop, self.pad = block, drop, -length % block
        valid = torch.arange(length + self.pad).view(-1, 1, 1, block) < length
        self.register_buffer("bias", torch.where(valid, 0.0, -1e9))

    def forward(self, q, k, v):
        batch, heads, length, width = q.shape
        shape = (batch, heads, -1, self.block, width)
        q, k, v = (functional.pad(t, (0, 0, 0, self.pad)).view(shape).transpose(1, 2)
                   for t in (q, k, v))
        out = written_out(q, k, v, self.drop, self.bias)
        return out.transpose(1, 2).reshape(batch, heads, -1, width)[:, :, :length]


class Longformer(nn.Module):
    """A window of 512: chunks of 256 queries against three chunks of keys."""

    def __init__(self, length, heads, width, drop, window=512):
        super().__init__()
        self.half, self.drop = window // 2, drop
        n = length // self.half
        row, column = torch.arange(self.half)[:, None], torch.arange(3 * self.half)
        seen = ((column - self.half - row).abs() <= self.half).expand(n, -1, -1)
        place = column + (torch.arange(n)[:, None, None] - 1) * self.half
        self.register_buffer("seen", seen & (place >= 0) & (place < length))

    def forward(self, q, k, v):
        batch, heads, length, width = q.shape
        half = self.half
        chunks = q.reshape(batch * heads, -1, half, width)
        near = [functional.pad(t.reshape(batch * heads, length, width), (0, 0, half, half))
                .unfold(1, 3 * half, half).transpose(-1, -2) for t in (k, v)]
        out = attend(chunks, *near, attn_mask=self.seen, dropout_p=self.drop)
        return out.reshape(batch, heads, length, width)


class Linformer(nn.Module):
    """Keys and values projected along the length, one projection for both."""

    def __init__(self, length, heads, width, drop, rank=16):
        super().__init__()
        self.drop = drop
        self.project = nn.Parameter(torch.randn(heads, rank, length) * length ** -0.5)

    def forward(self, q, k, v):
        return written_out(q, self.project @ k, self.project @ v, self.drop)


class Features(nn.Module):
    """phi(q) (phi(k)^T v), divided by phi(q) sum phi(k)."""

    def __init__(self, length, heads, width, drop, feature):
        super().__init__()
        self.feature = feature

    def forward(self, q, k, v):
        q, k = self.feature(q), self.feature(k)
        total = q @ k.sum(-2, keepdim=True).transpose(-1, -2)
        return q @ (k.transpose(-1, -2) @ v) / (total + 1e-6)


def linear(*args):
    return Features(*args, feature=lambda x: functional.elu(x) + 1)


def relu_performer(*args):
    return Features(*args, feature=lambda x: functional.relu(x) + 1e-3)


class Synthesizer(nn.Module):
    """A learned score matrix of each head, added to the dot product."""

    def __init__(self, length, heads, width, drop):
        super().__init__()
        self.drop = drop
        self.scores = nn.Parameter(torch.randn(heads, length, length) * 0.02)

    def forward(self, q, k, v):
        return written_out(q, k, v, self.drop, self.scores)


class Sparse(nn.Module):
    """The fixed pattern of stride 50 and summary 10, causal, first token global: a dense mask."""

    def __init__(self, length, heads, width, drop, stride=50, summary=10):
        super().__init__()
        self.drop = drop
        i, j = torch.arange(length)[:, None], torch.arange(length)
        seen = (i // stride == j // stride) | (j % stride >= stride - summary)
        self.register_buffer("seen", (seen & (j <= i)) | (i == 0) | (j == 0))

    def forward(self, q, k, v):
        return attend(q, k, v, attn_mask=self.seen, dropout_p=self.drop)


class S4D(nn.Module):
    """S4D-Lin as its authors compute it: the kernel of both directions from one array of powers
    [D, N / 2, L], spectra of 2 L, GELU, dropout, a gated linear unit. [B, L, D] to the same."""

    def __init__(self, length, width, drop, states=64):
        super().__init__()
        self.drop = drop
        self.log_dt = nn.Parameter(math.log(1e-3) + math.log(100) * torch.rand(width))
        self.log_rate = nn.Parameter(torch.full((width, states // 2), math.log(0.5)))
        self.frequency = nn.Parameter(math.pi * torch.arange(states // 2).repeat(width, 1))
        self.c = nn.Parameter(torch.randn(2, width, states // 2, 2))
        self.skip, self.gate = nn.Parameter(torch.randn(width)), nn.Linear(width, 2 * width)

    def kernel(self, length):
        poles = torch.complex(-self.log_rate.exp(), self.frequency)
        log_a = poles * self.log_dt.exp().unsqueeze(-1)
        powers = torch.exp(log_a.unsqueeze(-1) * torch.arange(length, device=log_a.device))
        c = torch.view_as_complex(self.c) * (log_a.exp() - 1) / poles
        ahead, behind = 2 * torch.einsum("kdn,dnl->kdl", c, powers).real
        return torch.cat([ahead, behind.flip(-1)], -1)

    def forward(self, x):
        length, u = x.shape[1], x.transpose(1, 2)
        spectrum = torch.fft.rfft(u, 2 * length) * torch.fft.rfft(self.kernel(length))
        y = torch.fft.irfft(spectrum, 2 * length)[..., :length].transpose(1, 2) + self.skip * x
        y = functional.dropout(functional.gelu(y), self.drop, self.training)
        return functional.glu(self.gate(y))


class Mega(nn.Module):
    """Mega in chunks, as its authors compute it: a moving average of both directions by spectra of 2 L,
    then one gated head whose scores have a learned bias for each distance. [B, L, D] to the same."""

    def __init__(self, length, width, drop, chunk=128, states=16, z=64, values=128):
        super().__init__()
        self.drop, self.chunk, self.sizes = drop, chunk, (width, z, values, width)
        draw = lambda *size: nn.Parameter(torch.randn(*size) * 0.2)
        self.delta, self.alpha, self.beta, self.eta = (draw(2, width, states) for _ in range(4))
        self.omega, self.scale, self.shift = draw(width), draw(2, z), nn.Parameter(torch.zeros(2, z))
        self.value, self.base = nn.Linear(width, values), nn.Linear(width, sum(self.sizes))
        self.hidden, self.bias = nn.Linear(values, width), draw(2 * chunk - 1)
        places = torch.arange(chunk)
        self.register_buffer("distance", places[:, None] - places + chunk - 1)

    def kernel(self, length):
        p = self.delta.sigmoid()
        log_q = torch.log1p(-p * self.alpha.sigmoid())
        powers = torch.exp(log_q.unsqueeze(-1) * torch.arange(length, device=p.device))
        weights = self.eta * p * self.beta / math.sqrt(p.shape[-1])
        ahead, behind = torch.einsum("kdn,kdnl->kdl", weights, powers)
        # Both directions see a position itself: lag 0 behind is place 0 of the circle.
        return torch.cat([ahead, behind.new_zeros(len(behind), length)], -1) + torch.cat(
            [behind[:, :1], behind.new_zeros(len(behind), length), behind[:, 1:].flip(-1)], -1)

    def forward(self, x):
        length, u = x.shape[1], x.transpose(1, 2).float()
        spectrum = torch.fft.rfft(u, 2 * length) * torch.fft.rfft(self.kernel(length))
        average = torch.fft.irfft(spectrum, 2 * length)[..., :length].transpose(1, 2)
        m = functional.dropout(functional.silu(average + self.omega * x), self.drop, self.training)
        gate, shared, reset, update = self.base(m).split(self.sizes, -1)
        queries, keys = (functional.silu(shared) * self.scale[i] + self.shift[i] for i in (0, 1))
        cut = lambda t: t.unflatten(1, (-1, self.chunk))
        scores = cut(queries) @ cut(keys).mT / math.sqrt(queries.shape[-1]) + self.bias[self.distance]
        seen = (scores.softmax(-1) @ cut(functional.silu(self.value(x)))).flatten(1, 2)
        h = functional.silu(update + self.hidden(seen * functional.silu(reset)))
        return gate.sigmoid() * (h - x)


LAYERS = {"s4d": S4D, "mega": Mega}
CORES = {"exact": Exact, "local": Local, "longformer": Longformer, "linformer": Linformer,
         "linear": linear, "relu_performer": relu_performer, "synthesizer": Synthesizer,
         "sparse": Sparse}
