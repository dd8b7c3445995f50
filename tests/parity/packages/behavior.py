"""What the layers of packages do beyond their definition: a row of docs/mixers.md for each.

Every layer is built with its package's defaults for width 64, 4 heads and, where it asks, a longest
sequence of 256, and evaluated with weights of one seed on random numbers.
"""
import dataclasses
import importlib.metadata
from collections.abc import Callable

import h_transformer_1d
import linear_attention_transformer.linear_attention_transformer as linear
import linformer
import local_attention
import minimamba
import minimamba.s6
import nystrom_attention
import performer_pytorch
import reformer_pytorch
import routing_transformer.routing_transformer as routing
import sinkhorn_transformer.sinkhorn_transformer as sinkhorn
import torch
from LRU_pytorch import LRU
from mambapy.mamba import MambaBlock, MambaConfig
from s5 import S5

from packages.carry import HEAD_DIM, HEADS, WIDTH

LENGTH, TOKENS, LENGTHS = 256, 200, (1, 100, 256, 300)
ALIKE = 1e-5  # of the norm: below it, results are the same but for rounding


@dataclasses.dataclass(frozen=True)
class Layer:
    mixer: str  # ours of that name, or a mechanism that is none of ours
    package: str
    make: Callable[[], torch.nn.Module]
    mask: str = ""  # the argument that hides padding, True = token
    pick: Callable = lambda y: y  # the output among what forward returns


class Heads(torch.nn.Module):
    """local_attention's layer, which takes queries, keys and values."""

    def __init__(self):
        super().__init__()
        self.inner = local_attention.LocalAttention(64, autopad=True)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x, mask=None):
        parts = self.qkv(x).unflatten(2, (3, HEADS, HEAD_DIM)).permute(2, 0, 3, 1, 4)
        return self.inner(*parts, mask=mask).transpose(1, 2).flatten(2)


LAYERS = (
    Layer("local", "local-attention", Heads, "mask"),
    Layer("linformer", "linformer", lambda: linformer.LinformerSelfAttention(WIDTH, LENGTH, k=64, heads=HEADS)),
    Layer("performer", "performer-pytorch",
          lambda: performer_pytorch.SelfAttention(WIDTH, heads=HEADS, dim_head=HEAD_DIM), "mask"),
    Layer("reformer", "reformer-pytorch", lambda: reformer_pytorch.LSHSelfAttention(WIDTH, HEADS, bucket_size=16),
          "input_mask"),
    Layer("sinkhorn", "sinkhorn-transformer",
          lambda: sinkhorn.SinkhornSelfAttention(WIDTH, 32, LENGTH, heads=HEADS), "input_mask"),
    Layer("mamba", "mambapy", lambda: MambaBlock(MambaConfig(WIDTH, 1))),
    Layer("mamba", "minimamba", lambda: minimamba.s6.S6(minimamba.MambaConfig(WIDTH, 1))),
    Layer("s5", "s5-pytorch", lambda: S5(WIDTH, 64)),
    Layer("lru", "lru-pytorch", lambda: LRU(WIDTH, WIDTH, 64)),
    Layer("linear attention by softmaxes", "linear-attention-transformer",
          lambda: linear.SelfAttention(WIDTH, HEADS), "input_mask"),
    Layer("Nyström attention", "nystrom-attention",
          lambda: nystrom_attention.NystromAttention(WIDTH, HEAD_DIM, HEADS, num_landmarks=64), "mask"),
    Layer("hierarchical attention", "h-transformer-1d",
          lambda: h_transformer_1d.h_transformer_1d.HAttention1D(WIDTH, heads=HEADS, dim_head=HEAD_DIM), "mask"),
    Layer("routing attention", "routing-transformer",
          lambda: routing.SelfAttention(WIDTH, 1, LENGTH, HEADS, 0, 64), "input_mask",
          lambda y: y[0]),
)


class Probe:
    """A layer in evaluation, and the difference of two of its results, as a share of the norm."""

    def __init__(self, layer):
        torch.manual_seed(0)
        self.layer, self.module = layer, layer.make().eval()
        self.x = torch.randn(2, LENGTH, WIDTH)
        self.valid = torch.arange(LENGTH) < torch.tensor([[LENGTH], [TOKENS]])

    def __call__(self, x, valid=None):
        hidden = {self.layer.mask: valid} if valid is not None and self.layer.mask else {}
        torch.manual_seed(1)
        with torch.no_grad():
            return self.layer.pick(self.module(x.clone(), **hidden))

    def beside_others(self):
        """Beside an example that repeats a token, and one ten times as large: the larger difference."""
        alone = self(self.x[:1])
        mates = self.x[1:, :1].expand(1, LENGTH, WIDTH), 10 * self.x[1:]
        return max(difference(self(torch.cat([self.x[:1], mate]))[:1], alone) for mate in mates)

    def with_other_padding(self):
        """Of the tokens, if the numbers behind them change."""
        changed = torch.where(self.valid[..., None], self.x, 3 * self.x + 1)
        return difference(self(changed, self.valid)[1, :TOKENS], self(self.x, self.valid)[1, :TOKENS])

    def again(self):
        """With another state of torch's generator, as two evaluations in a program have."""
        y = self(self.x)
        with torch.no_grad():
            torch.manual_seed(2)
            return difference(self.layer.pick(self.module(self.x.clone())), y)

    def after_another_batch(self):
        """Of a module of the same weights whose first batch was another one."""
        other = Probe(self.layer)
        other(3 * self.x.flip(1))
        return difference(other(self.x), self(self.x))

    def seen(self):
        """The number of tokens on which the output of the first token depends."""
        x = self.x[:1].clone().requires_grad_()
        torch.manual_seed(1)
        self.layer.pick(self.module(x))[0, 0].sum().backward()
        return int(x.grad[0].abs().sum(1).gt(0).sum())

    def refused_lengths(self):
        return [length for length in LENGTHS if not self.takes(length)]

    def takes(self, length):
        try:
            return self(torch.randn(1, length, WIDTH)).shape[1] == length
        except Exception:  # of any kind: packages have no error of their own for it
            return False


def difference(actual, expected):
    return ((actual - expected).norm() / expected.norm()).item()


def percent(share):
    return "" if share < ALIKE else f"{float(f'{100 * share:.2g}'):g} %"


def minimamba_against_mambapy():
    """The difference of two packages of one layer with the same weights."""
    torch.manual_seed(0)
    right, other = MambaBlock(MambaConfig(WIDTH, 1)), minimamba.s6.S6(minimamba.MambaConfig(WIDTH, 1))
    other.load_state_dict(right.state_dict())
    x = torch.randn(2, LENGTH, WIDTH)
    with torch.no_grad():
        return difference(other(x), right(x))


def row(layer):
    """The layer's line of the table in docs/mixers.md."""
    version = importlib.metadata.version(layer.package)
    refused = ", ".join(str(length) for length in Probe(layer).refused_lengths())
    shares = [Probe(layer).beside_others(), Probe(layer).with_other_padding(), Probe(layer).again(),
              Probe(layer).after_another_batch()]
    cells = [layer.mixer, f"{layer.package} {version}", str(Probe(layer).seen()), *map(percent, shares), refused]
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"
