"""State spaces and recurrences in plain PyTorch, from their definitions: layers from [B, L, D] to the same.

Each in the fastest form that plain PyTorch has: states by convolutions or in chunks of 64 whose products are
matrices, the recurrence of minGRU in logarithms as its authors do it, Mamba's scan by the package mambapy. Layers
see both directions as lra's do by default: a system run twice, or half of the channels or heads turned around.
"""
import math
import pathlib
import sys

import torch
import torch.nn.functional as functional
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from matrix_scan import chunked  # noqa: E402

CHUNK = 64


def drawn(*size, scale=1.0):
    return nn.Parameter(torch.randn(*size) * scale)


def both_ways(x, kernel):
    """Convolutions along axis 1 with lags from 0 on, from the start and from the end, by spectra of 2 L."""
    length = x.shape[1]
    spectrum = torch.fft.fft(x, 2 * length, 1)
    around = torch.cat([kernel[:1], kernel.new_zeros(length, *kernel.shape[1:]), kernel[1:].flip(0)])
    kernels = torch.fft.fft(kernel, 2 * length, 0), torch.fft.fft(around, dim=0)
    return [torch.fft.ifft(spectrum * k, dim=1)[:, :length] for k in kernels]


class Gate(nn.Module):
    """GELU, dropout, a gated linear unit; of half size the gate alone is a product (S5)."""

    def __init__(self, width, drop, half):
        super().__init__()
        self.drop, self.linear = drop, nn.Linear(width, width if half else 2 * width)

    def forward(self, y):
        g = functional.dropout(functional.gelu(y), self.drop, self.training)
        gate = self.linear(g)
        return g * gate.sigmoid() if gate.shape == g.shape else functional.glu(gate)


class StateSpace(nn.Module):
    """One diagonal system for all channels, with B and C of both directions: LRU and S5."""

    def __init__(self, width, drop, states, half_gate, pairs):
        super().__init__()
        self.rate, self.angle = drawn(states, scale=0.5), nn.Parameter(torch.rand(states) * math.pi)
        self.b, self.c = drawn(2 * states, width, scale=width ** -0.5), drawn(width, 4 * states, scale=states ** -0.5)
        self.skip, self.gate, self.scale = drawn(width), Gate(width, drop, half_gate), 2 if pairs else 1

    def forward(self, x):
        log_a = torch.complex(-self.rate.exp(), self.angle)
        powers = torch.exp(log_a * torch.arange(x.shape[1], device=x.device)[:, None])
        v = torch.complex(*functional.linear(x, self.b).float().chunk(2, -1))
        ahead, behind = both_ways(v, powers)
        states = torch.cat([ahead.real, ahead.imag, behind.real, behind.imag], -1)
        return self.gate(functional.linear(states, self.scale * self.c) + self.skip * x)


class LongConv(nn.Module):
    """Kernels of 2 L free numbers a channel, squashed."""

    def __init__(self, length, width, drop):
        super().__init__()
        self.kernel, self.skip, self.gate = drawn(width, 2 * length, scale=0.002), drawn(width), Gate(width, drop, False)

    def forward(self, x):
        length = x.shape[1]
        spectrum = torch.fft.rfft(x.transpose(1, 2).float(), 2 * length)
        kernel = torch.fft.rfft(functional.softshrink(self.kernel, 0.001))
        y = torch.fft.irfft(spectrum * kernel, 2 * length)[..., :length].transpose(1, 2)
        return self.gate(y + self.skip * x)


class ChordMixer(nn.Module):
    """A network at each position, then tracks rotated by powers of two."""

    def __init__(self, length, width, drop):
        super().__init__()
        self.tracks = 1 + math.ceil(math.log2(length))
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(drop), nn.Linear(width, width))

    def forward(self, x):
        tracks = self.mlp(x).tensor_split(self.tracks, -1)
        return torch.cat([tracks[0], *(track.roll(-(1 << m), 1) for m, track in enumerate(tracks[1:]))], -1)


def turned(x):
    """x [B, L, channels or heads, ..], the second half of them turned around along the sequence."""
    first, second = x.chunk(2, 2)
    return torch.cat([first, second.flip(1)], 2)


class ShortConv(nn.Module):
    """SiLU of a depthwise convolution of four tokens, over x [B, L, C]; parts[1::2] look at later tokens."""

    def __init__(self, parts, bias):
        super().__init__()
        self.parts, self.bias = parts, nn.Parameter(torch.zeros(sum(parts))) if bias else None
        self.weight = drawn(sum(parts), 1, 4, scale=0.5)

    def forward(self, x):
        pieces = x.split(self.parts, -1)
        x = torch.cat([p.flip(1) if n % 2 else p for n, p in enumerate(pieces)], -1).transpose(1, 2)
        y = functional.conv1d(functional.pad(x, (3, 0)), self.weight, self.bias, groups=len(self.weight))
        return functional.silu(y.transpose(1, 2))


def norm(x, weight, eps=1e-5):
    return functional.rms_norm(x, x.shape[-1:], None, eps) * weight


class Mamba2(nn.Module):
    """Four heads of decaying states, two from the end, in chunks. ShortConv turns what is from the end around."""

    def __init__(self, length, width, drop, states=128, heads=4):
        super().__init__()
        self.inner, self.heads, self.states, self.scan = 2 * width, heads, states, chunked(CHUNK)
        half = self.inner // 2
        self.conv = ShortConv([half, half, states, states, states, states], bias=True)
        self.enter = nn.Linear(width, 2 * self.inner + 4 * states + heads, bias=False)
        self.leave = nn.Linear(self.inner, width, bias=False)
        self.step, self.rate, self.skip = drawn(heads), drawn(heads), nn.Parameter(torch.ones(heads, 1))
        self.weight = nn.Parameter(torch.ones(2, self.inner // 2))

    def forward(self, u):
        z, mixed, step = self.enter(u).split([self.inner, self.inner + 4 * self.states, self.heads], -1)
        x, b, c = self.conv(mixed).float().split([self.inner, 2 * self.states, 2 * self.states], -1)
        dt = turned(functional.softplus(step.float() + self.step))
        of_heads = lambda t: t.unflatten(2, (2, -1)).repeat_interleave(self.heads // 2, 2)
        x = x.unflatten(2, (self.heads, -1))
        y = self.scan(of_heads(c), of_heads(b) * dt[..., None], x, (-self.rate.exp() * dt)[..., None])
        y = turned(y + self.skip * x).flatten(2) * functional.silu(z)
        return self.leave(norm(y.unflatten(2, (2, -1)), self.weight).flatten(2))


class Gla(nn.Module):
    """Linear attention whose four heads forget by a gate for each key channel, two from the end."""

    def __init__(self, length, width, drop, heads=4, rank=16):
        super().__init__()
        self.heads, self.keys, self.scan = heads, width // 2, chunked(CHUNK)
        self.enter = nn.Linear(width, 2 * self.keys + 2 * width + rank, bias=False)
        self.sizes, self.decay = (self.keys, self.keys, width, width, rank), nn.Linear(rank, self.keys)
        self.leave, self.weight = nn.Linear(width, width, bias=False), nn.Parameter(torch.ones(width // heads))

    def forward(self, u):
        q, k, v, gate, low = self.enter(u).split(self.sizes, -1)
        decay = functional.logsigmoid(self.decay(low).float()) / 16
        cut = lambda t: turned(t.float().unflatten(2, (self.heads, -1)))
        q, k, v, decay = map(cut, (q, k, v, decay))
        y = turned(self.scan(q * q.shape[-1] ** -0.5, k, v, decay))
        return self.leave(norm(y, self.weight).flatten(2) * functional.silu(gate))


class GatedDeltaNet(nn.Module):
    """The gated delta rule in chunks, four heads, two from the end."""

    def __init__(self, length, width, drop, heads=4):
        super().__init__()
        self.heads, self.scan, keys, values = heads, chunked(CHUNK), 3 * width // 4, 3 * width // 2
        self.sizes = (2 * keys + values, values, heads, heads)
        self.enter, self.parts = nn.Linear(width, sum(self.sizes), bias=False), (keys, keys, values)
        self.conv = ShortConv([part // 2 for part in self.parts for _ in "ab"], bias=False)
        self.step, self.rate = drawn(heads), drawn(heads)
        self.leave, self.weight = nn.Linear(values, width, bias=False), nn.Parameter(torch.ones(values // heads))

    def forward(self, u):
        mixed, gate, write, step = self.enter(u).split(self.sizes, -1)
        cut = lambda t: t.float().unflatten(2, (self.heads, -1))
        q, k, v = map(cut, self.conv(mixed).split(self.parts, -1))
        beta = turned(write.float().sigmoid())
        decay = turned(-self.rate.exp() * functional.softplus(step.float() + self.step))
        q, k = (functional.normalize(t, dim=-1) for t in (q, k))
        y = turned(self.scan(q * q.shape[-1] ** -0.5, k, v, decay[..., None], beta))
        return self.leave(norm(y, self.weight).flatten(2) * functional.silu(gate))


class MinGru(nn.Module):
    """Gates that do not see the state, half of the channels from the end; the sum of logarithms of the authors."""

    def __init__(self, length, width, drop):
        super().__init__()
        self.enter, self.leave = nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, u):
        gate, x = (turned(t) for t in self.enter(u).float().chunk(2, -1))
        log_kept = -functional.softplus(gate)
        log_new = -functional.softplus(-gate) + torch.where(x >= 0, (x.relu() + 0.5).log(), -functional.softplus(-x))
        kept = log_kept.cumsum(1)
        h = (kept + (log_new - kept).logcumsumexp(1)).exp()
        return self.leave(turned(h))


class Mamba(nn.Module):
    """Two scans of 16 states a channel, each with its convolution, by the package's parallel scan."""

    def __init__(self, length, width, drop, states=16):
        super().__init__()
        from mambapy.pscan import pscan
        self.scan, self.inner, self.states, self.rank = pscan, 2 * width, states, width // 16
        self.enter, self.leave = nn.Linear(width, 4 * width, bias=False), nn.Linear(2 * width, width, bias=False)
        self.conv = ShortConv([self.inner, self.inner], bias=True)
        way = lambda: nn.ModuleList([nn.Linear(self.inner, self.rank + 2 * states, bias=False),
                                     nn.Linear(self.rank, self.inner)])
        self.ways = nn.ModuleList([way(), way()])
        self.log_a = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(2, self.inner, 1))
        self.skip = nn.Parameter(torch.ones(2, self.inner))

    def forward(self, u):
        x, z = self.enter(u).chunk(2, -1)
        ways = []
        for n, x in enumerate(self.conv(torch.cat([x, x], -1)).float().chunk(2, -1)):
            select, step = self.ways[n]
            low, b, c = select(x).split([self.rank, self.states, self.states], -1)
            dt = functional.softplus(step(low)).float()
            decay = torch.exp(dt[..., None] * -self.log_a[n].exp())
            h = self.scan(decay, (dt * x)[..., None] * b[:, :, None])
            y = (h @ c[..., None].to(h.dtype)).squeeze(-1) + self.skip[n] * x
            ways.append(y.flip(1) if n else y)
        return self.leave(sum(ways) * functional.silu(z))


LAYERS = {"lru": lambda length, width, drop: StateSpace(width, drop, 64, half_gate=False, pairs=False),
          "s5": lambda length, width, drop: StateSpace(width, drop, 32, half_gate=True, pairs=True),
          "long_conv": LongConv, "chordmixer": ChordMixer, "mamba": Mamba, "mamba2": Mamba2, "gla": Gla,
          "gated_deltanet": GatedDeltaNet, "min_gru": MinGru}
