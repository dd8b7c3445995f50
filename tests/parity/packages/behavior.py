"""What the layers of packages do beyond their definition: a row of docs/mixers.md for each.

Every layer is built with its package's defaults for width 64, 4 heads and, where it asks, a longest
sequence of 256, and evaluated with weights of one seed on random numbers.
"""
import copy
import dataclasses
import importlib
import importlib.metadata
from collections.abc import Callable

import h_transformer_1d.h_transformer_1d as hierarchical
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
import transformers
from kornia.feature.loftr.loftr_module.linear_attention import LinearAttention
from LRU_pytorch import LRU
from mambapy.mamba import MambaBlock, MambaConfig
from mega_pytorch.mega_pytorch import MegaLayer
from minGRU_pytorch import minGRU
from s5 import S5
from transformers.models.big_bird import modeling_big_bird as big_bird
from transformers.models.fnet.modeling_fnet import FNetBasicFourierTransform
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention
from transformers.models.mamba.modeling_mamba import MambaMixer
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer
from transformers.models.nystromformer.modeling_nystromformer import NystromformerSelfAttention
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet
from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRecurrentBlock
from transformers.models.reformer.modeling_reformer import LSHSelfAttention
from xlstm.blocks.mlstm.layer import mLSTMLayer, mLSTMLayerConfig
from yet_another_retnet.retention import MultiScaleRetention

from packages import published
from packages.carry import HEAD_DIM, HEADS, WIDTH

transformers.logging.set_verbosity_error()  # which kernels it does not find
LENGTH, TOKENS, LENGTHS = 256, 200, (1, 100, 256, 300)
ALIKE = 1e-5  # of the norm: below it, results are the same but for rounding
HUGGING_FACE = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": 1}


@dataclasses.dataclass(frozen=True)
class Layer:
    mixer: str  # ours of that name, or a mechanism that is none of ours
    package: str
    make: Callable[[], torch.nn.Module]
    published: Callable | None  # its definition; None: not compared
    differs: str = ""  # how it differs from that
    mask: str = ""  # the argument that hides padding, True = token
    pick: Callable = lambda y: y  # the output among what forward returns


class Local(torch.nn.Module):
    """local_attention's layer, which takes queries, keys and values."""

    def __init__(self):
        super().__init__()
        self.inner = local_attention.LocalAttention(64, autopad=True)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x, mask=None):
        return published.merged(self.inner(*map(published.heads, self.qkv(x).chunk(3, -1)), mask=mask))


class Kornia(torch.nn.Module):
    """kornia's layer, which takes queries, keys and values."""

    def __init__(self):
        super().__init__()
        self.inner = LinearAttention()
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x, mask=None):
        q, k, v = (t.unflatten(2, (HEADS, HEAD_DIM)) for t in self.qkv(x).chunk(3, -1))
        return self.inner(q, k, v, mask, mask).flatten(2)


class SelfAttention(torch.nn.MultiheadAttention):
    def forward(self, x, mask=None):
        padding = None if mask is None else ~mask
        return super().forward(x, x, x, key_padding_mask=padding, need_weights=False)[0]


class SelfRetention(MultiScaleRetention):
    def forward(self, x):
        return super().forward(x, x, x)[0]


class Longformer(LongformerSelfAttention):
    def forward(self, x, mask=None):
        hidden = torch.zeros(x.shape[:2], dtype=bool) if mask is None else ~mask
        return super().forward(x, -1.0 * hidden, is_index_masked=hidden, is_index_global_attn=torch.zeros_like(hidden),
                               is_global_attn=False)[0]


class BigBird(big_bird.BigBirdBlockSparseAttention):
    def forward(self, x, mask=None):
        valid = torch.ones(x.shape[:2]) if mask is None else mask.to(x)
        blocked, band, rows, columns = big_bird.BigBirdModel.create_masks_for_block_sparse_attn(valid, self.block_size)
        return super().forward(x, band, rows, columns, blocked, blocked)[0]


class Nystromformer(NystromformerSelfAttention):
    def forward(self, x, mask=None):
        hidden = None if mask is None else torch.where(mask, 0, torch.finfo(x.dtype).min)[:, None, None]
        return super().forward(x, hidden)[0]


class RecurrentBlock(RecurrentGemmaRecurrentBlock):
    def __init__(self, config):
        super().__init__(config, 0)
        for parameter in self.rg_lru.parameters():  # which are not initialized
            torch.nn.init.normal_(parameter, std=0.3)

    def forward(self, x):
        return super().forward(x, torch.arange(x.shape[1])[None].expand(len(x), -1), None, use_cache=False)[0]


def with_random_blocks(module, x):
    """The package draws BigBird's random blocks in training only."""
    return copy.deepcopy(module).train()(x)


LAYERS = (
    Layer("transformer", "torch", lambda: SelfAttention(WIDTH, HEADS, batch_first=True), published.transformer,
          mask="mask"),
    Layer("local", "local-attention", Local, published.local, "also sees the blocks beside its own", "mask"),
    Layer("longformer", "transformers",
          lambda: Longformer(transformers.LongformerConfig(attention_window=[64], **HUGGING_FACE), 0),
          published.longformer, mask="mask"),
    Layer("bigbird", "transformers",
          lambda: BigBird(transformers.BigBirdConfig(block_size=16, **HUGGING_FACE), seed=0),
          with_random_blocks, "in evaluation, random blocks are copies of block 0", "mask"),
    Layer("linear_transformer", "kornia", Kornia, published.linear_transformer, mask="mask"),
    Layer("linformer", "linformer", lambda: linformer.LinformerSelfAttention(WIDTH, LENGTH, k=64, heads=HEADS),
          published.linformer),
    Layer("performer", "performer-pytorch",
          lambda: performer_pytorch.SelfAttention(WIDTH, heads=HEADS, dim_head=HEAD_DIM), published.performer,
          "adds 1e-4 to each feature", "mask"),
    Layer("reformer", "reformer-pytorch", lambda: reformer_pytorch.LSHSelfAttention(WIDTH, HEADS, bucket_size=16),
          published.reformer, "sees other buckets; counts a pair once per round", "input_mask"),
    Layer("reformer", "transformers",
          lambda: LSHSelfAttention(transformers.ReformerConfig(attention_head_size=HEAD_DIM, **HUGGING_FACE)),
          published.reformer_of_transformers, "sees other buckets; scores not divided by sqrt(E)", "attention_mask",
          lambda y: y.hidden_states),
    Layer("sinkhorn", "sinkhorn-transformer", lambda: sinkhorn.SinkhornSelfAttention(WIDTH, 32, LENGTH, heads=HEADS),
          published.sinkhorn, "one block, not the sorted mix; keys for sorted values", "input_mask"),
    Layer("mamba", "mambapy", lambda: MambaBlock(MambaConfig(WIDTH, 1)), published.mamba),
    Layer("mamba", "minimamba", lambda: minimamba.s6.S6(minimamba.MambaConfig(WIDTH, 1)), published.mamba,
          "step bias added twice; gate without SiLU"),
    Layer("mamba", "transformers",
          lambda: MambaMixer(transformers.MambaConfig(hidden_size=WIDTH, num_hidden_layers=1), 0), published.mamba,
          mask="attention_mask"),
    Layer("mamba2", "transformers",
          lambda: Mamba2Mixer(transformers.Mamba2Config(
              hidden_size=WIDTH, num_heads=HEADS, head_dim=2 * HEAD_DIM, n_groups=1, num_hidden_layers=1), 0),
          published.mamba2, mask="attention_mask"),
    Layer("gated_deltanet", "transformers",
          lambda: Qwen3NextGatedDeltaNet(transformers.Qwen3NextConfig(
              linear_num_value_heads=HEADS, linear_num_key_heads=HEADS, linear_key_head_dim=HEAD_DIM,
              linear_value_head_dim=HEAD_DIM, **HUGGING_FACE), 0),
          published.gated_deltanet, mask="attention_mask"),
    Layer("rg_lru", "transformers",
          lambda: RecurrentBlock(transformers.RecurrentGemmaConfig(lru_width=WIDTH, **HUGGING_FACE)),
          published.rg_lru),
    Layer("retnet", "yet-another-retnet", lambda: SelfRetention(WIDTH, HEADS), published.retnet,
          "decays 1 - 1/32 to 1 - 1/512 for any number of heads"),
    Layer("mlstm", "xlstm", lambda: mLSTMLayer(mLSTMLayerConfig(
        num_heads=HEADS, embedding_dim=WIDTH, context_length=LENGTH)), published.mlstm),
    Layer("mega", "mega-pytorch", lambda: MegaLayer(dim=WIDTH), published.mega,
          "decay (1 - a) d instead of 1 - a d"),
    Layer("min_gru", "minGRU-pytorch", lambda: minGRU(WIDTH), published.min_gru),
    Layer("s5", "s5-pytorch", lambda: S5(WIDTH, 64), published.s5),
    Layer("lru", "lru-pytorch", lambda: LRU(WIDTH, WIDTH, 64), published.lru),
    Layer("linear attention by softmaxes", "linear-attention-transformer", lambda: linear.SelfAttention(WIDTH, HEADS),
          published.softmax_features, "divides queries by sqrt(E)", "input_mask"),
    Layer("Nyström attention", "nystrom-attention",
          lambda: nystrom_attention.NystromAttention(WIDTH, HEAD_DIM, HEADS, num_landmarks=64), published.nystrom,
          "scaled by the largest sums of the batch", "mask"),
    Layer("Nyström attention", "transformers", lambda: Nystromformer(transformers.NystromformerConfig(**HUGGING_FACE)),
          published.nystrom_of_transformers, "attends to all tokens", "mask"),
    Layer("hierarchical attention", "h-transformer-1d",
          lambda: hierarchical.HAttention1D(WIDTH, heads=HEADS, dim_head=HEAD_DIM), published.hierarchical,
          "a scale for each level; halves never meet", "mask"),
    Layer("hierarchical attention, causal", "h-transformer-1d",
          lambda: hierarchical.CausalHAttention1D(WIDTH, max_seq_len=LENGTH, heads=HEADS, dim_head=HEAD_DIM),
          None, "hides most earlier tokens"),
    Layer("routing attention", "routing-transformer",
          lambda: routing.SelfAttention(WIDTH, 1, LENGTH, HEADS, 0, 64), None, mask="input_mask",
          pick=lambda y: y[0]),
    Layer("Fourier mixing", "transformers",
          lambda: FNetBasicFourierTransform(transformers.FNetConfig(hidden_size=WIDTH)), published.fourier,
          pick=lambda y: y[0]),
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

    def off_definition(self, x):
        torch.manual_seed(1)
        with torch.no_grad():
            expected = self.layer.published(self.module, x)
        return difference(self(x), expected)

    def beside_others(self):
        """Beside an example that ends with copies of a token, and one ten times as large: the larger difference."""
        alone = self(self.x[:1])
        copies = torch.cat([self.x[1:, :-TOKENS], self.x[1:, :1].expand(1, TOKENS, WIDTH)], 1)
        return max(difference(self(torch.cat([self.x[:1], mate]))[:1], alone) for mate in (copies, 10 * self.x[1:]))

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
        """Of modules of the same weights whose first batch was another one, as long or half as long."""
        others = [Probe(self.layer) for _ in range(2)]
        for other, length in zip(others, (LENGTH, LENGTH // 2)):
            other(3 * self.x.flip(1)[:, :length])
        return max(difference(other(self.x), self(self.x)) for other in others)

    def seen(self, position=0):
        """The number of tokens on which the output of a token depends, beyond what an FFT rounds."""
        x = self.x[:1].clone().requires_grad_()
        torch.manual_seed(1)
        self.layer.pick(self.module(x))[0, position].sum().backward()
        sizes = x.grad[0].abs().sum(1)
        return int(sizes.gt(1e-6 * sizes.max()).sum())

    def refused_lengths(self):
        return [length for length in LENGTHS if not self.takes(length)]

    def takes(self, length):
        try:
            return self(torch.randn(1, length, WIDTH)).shape[1] == length
        except Exception:  # of any kind: packages have no error of their own for it
            return False


def difference(actual, expected):
    return ((actual - expected).norm() / expected.norm()).item()


def number(share):
    return f"{float(f'{100 * share:.2g}'):g}"


def percent(share):
    return "" if share < ALIKE else f"{number(share)} %"


def definition(layer):
    """With inputs of standard deviation 1 and 4: larger ones make attention sharper."""
    if not layer.published:
        return "not compared"
    shares = [Probe(layer).off_definition(scale * Probe(layer).x) for scale in (1, 4)]
    return "yes" if max(shares) < ALIKE else f"{' / '.join(map(number, shares))} %"


def row(layer):
    """The layer's line of the table in docs/mixers.md."""
    version = importlib.metadata.version(layer.package)
    return line([layer.mixer, f"{layer.package} {version.split('+')[0]}", definition(layer), layer.differs,
                 str(Probe(layer).seen()), *cells(layer)])


def cells(layer):
    """Those that are empty for a layer without surprises."""
    padding = [percent(Probe(layer).with_other_padding()), "" if layer.mask else "no mask"]
    return [percent(Probe(layer).beside_others()), ", ".join(filter(None, padding)), percent(Probe(layer).again()),
            percent(Probe(layer).after_another_batch()), ", ".join(map(str, Probe(layer).refused_lengths()))]


def line(cells):
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"


def row_of_fla():
    """fla-core can be imported anywhere, but its operators need Triton and a GPU."""
    importlib.import_module("fla")
    x = torch.rand(1, 64, HEADS, HEAD_DIM)
    for module, operator, arguments in (("gla", "chunk_gla", [x, x, x, -x]), ("retention", "chunk_retention", 3 * [x])):
        try:
            getattr(importlib.import_module(f"fla.ops.{module}"), operator)(*arguments)
        except (ImportError, RuntimeError):
            continue
        raise AssertionError(f"{operator} of fla-core works on the CPU")
    version = importlib.metadata.version("fla-core")
    return line(["gla, retnet", f"fla-core {version}", "not compared", "needs a GPU and Triton", *6 * [""]])


def rows():
    yield from map(row, LAYERS)
    yield row_of_fla()


def layer_of(package, mixer=""):
    return next(layer for layer in LAYERS if layer.package == package and layer.mixer.startswith(mixer))


def facts():
    """What the text below the table says."""
    probe = Probe(layer_of("h-transformer-1d", "hierarchical attention, causal"))
    yield f"token 200 sees {probe.seen(200)} of 201 tokens, and token 255 sees {probe.seen(255)} of 256"
    shares = []
    for scale in (1, 2, 4):
        probe = Probe(layer_of("nystrom-attention"))
        with torch.no_grad():
            probe.module.to_qkv.weight.mul_(scale)
        shares.append(number(probe.beside_others()))
    yield f"{shares[0]}, {shares[1]} and {shares[2]} % with the weights of queries, keys and values times 1, 2 and 4"
    probe = Probe(layer_of("nystrom-attention"))
    probe.module.double()
    exact = torch.linalg.pinv
    with torch.no_grad():
        share = difference(probe.module(probe.x.double()), published.nystrom(probe.module, probe.x.double(), exact))
    yield f"by {percent(share)} from that with the exact pseudoinverse"
