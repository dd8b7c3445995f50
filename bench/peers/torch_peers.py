"""An encoder, its training step and its forward pass in PyTorch: around our own cores, around FlexAttention,
around the attention layers of packages, and as transformers' BERT."""
import functools
import itertools

import torch
import torch.nn.functional as functional
from torch import nn

import torch_mixers
import torch_recurrences
from workload import sinusoids


class Heads(nn.Module):
    """Projections around a core: [B, L, D] to the same."""

    def __init__(self, core, work):
        super().__init__()
        self.qkv = nn.Linear(work.width, 3 * work.qkv, bias=False)
        self.out = nn.Linear(work.qkv, work.width, bias=False)
        self.core, self.heads = core, work.heads

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self.out(self.core(q, k, v).transpose(1, 2).reshape(batch, length, -1))


class Layer(nn.Module):
    def __init__(self, attention, work):
        super().__init__()
        self.attention, self.drop = attention, nn.Dropout(work.dropout)
        self.norm1, self.norm2 = nn.LayerNorm(work.width), nn.LayerNorm(work.width)
        self.mlp = nn.Sequential(nn.Linear(work.width, work.mlp), nn.GELU(), nn.Dropout(work.dropout),
                                 nn.Linear(work.mlp, work.width), nn.Dropout(work.dropout))

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, make_attention, length, work):
        super().__init__()
        self.embed, self.drop = nn.Embedding(work.vocabulary, work.width), nn.Dropout(work.dropout)
        self.register_buffer("positions", torch.from_numpy(sinusoids(length, work.width)))
        self.layers = nn.Sequential(*(Layer(make_attention(), work) for _ in range(work.layers)))
        self.norm = nn.LayerNorm(work.width)
        self.head = nn.Sequential(nn.Linear(work.width, work.mlp), nn.ReLU(),
                                  nn.Linear(work.mlp, work.classes))

    def forward(self, tokens):
        x = self.layers(self.drop(self.embed(tokens) + self.positions))
        return self.head(self.norm(x).mean(1))


def encoder(cores, core, length, drop, work):
    make = cores[core]
    return Encoder(lambda: Heads(make(length, work.heads, work.qkv // work.heads, drop), work), length,
                   work)


def bert(length, drop, attention, work):
    from transformers import BertConfig, BertForSequenceClassification
    config = BertConfig(vocab_size=work.vocabulary, hidden_size=work.width, num_labels=work.classes,
                        num_hidden_layers=work.layers, num_attention_heads=work.heads,
                        intermediate_size=work.mlp, hidden_dropout_prob=work.dropout,
                        attention_probs_dropout_prob=drop,
                        max_position_embeddings=length, attn_implementation=attention)
    model = BertForSequenceClassification(config)
    return lambda tokens: model(input_ids=tokens).logits, model


def package(name, length, drop, work):
    """The encoder around the attention layer of a package."""
    if name == "reformer-pytorch":
        from reformer_pytorch import LSHSelfAttention
        make = functools.partial(LSHSelfAttention, work.width, heads=work.heads, bucket_size=64, n_hashes=1,
                                 dropout=drop)
    elif name == "performer-pytorch":
        from performer_pytorch import SelfAttention
        make = functools.partial(SelfAttention, work.width, heads=work.heads, nb_features=266,
                                 feature_redraw_interval=None)
    elif name == "linformer":
        from linformer import LinformerSelfAttention
        make = functools.partial(LinformerSelfAttention, work.width, length, k=16, heads=work.heads,
                                 share_kv=True, dropout=drop)
    elif name == "sinkhorn-transformer":
        from sinkhorn_transformer.sinkhorn_transformer import SinkhornSelfAttention
        make = functools.partial(SinkhornSelfAttention, work.width, 64, length, heads=work.heads,
                                 attn_dropout=drop)
    else:
        raise ValueError(f"no package {name}")
    return Encoder(make, length, work)


def make_model(kind, name, length, drop, work):
    """A function from tokens to logits, and the module that has its parameters."""
    if kind == "transformers":
        return bert(length, drop, name, work)
    if kind == "package":
        model = package(name, length, drop, work)
        return model, model
    if kind.startswith("flex"):
        import torch_flex
        model = encoder(torch_flex.CORES, name, length, drop, work)
        return (torch.compile(model, options=torch_flex.TUNED) if kind == "flex-compiled" else model), model
    layer = (torch_mixers.LAYERS | torch_recurrences.LAYERS).get(name)
    if layer:
        model = Encoder(lambda: layer(length, work.width, work.dropout), length, work)
    else:
        model = encoder(torch_mixers.CORES, name, length, drop, work)
    return (torch.compile(model) if kind == "compiled" else model), model


def build(kind, name, length, drop, train, dtype, device, threads, work, batch):
    """A function that makes one training step, or one forward pass; it returns a number of it, as a tensor.
    `batch` has tokens and labels. Where it is larger than work.batch, calls take its micro-batches in turn,
    and the last one updates. bf16 is autocast, parameters stay float32."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    drop = drop if train else 0.0  # the cores know nothing of eval()
    with torch.device(device):  # whose masks FlexAttention makes there
        forward, model = make_model(kind, name, length, drop, work)
    model.to(device).train(train)
    tokens, labels = (torch.from_numpy(array).to(device) for array in batch)
    precision = functools.partial(torch.autocast, device, torch.bfloat16, enabled=dtype == "bf16")

    def infer():
        with torch.inference_mode(), precision():
            return forward(tokens).float().sum()
    if not train:
        return infer
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    micro_batches = list(zip(tokens.split(work.batch), labels.split(work.batch)))
    in_turn = itertools.cycle(enumerate(micro_batches, 1))

    def step():
        number, (tokens, labels) = next(in_turn)
        with precision():
            loss = functional.cross_entropy(forward(tokens).float(), labels) / len(micro_batches)
        loss.backward()
        if number == len(micro_batches):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss.detach()
    return step


def wait(result):
    """Until the GPU has computed all, the update behind the result too."""
    del result
    torch.cuda.synchronize()


def forget_peak():
    """Tuning and the first step need memory that no later step does."""
    torch.cuda.reset_peak_memory_stats()


def peak_tensor_bytes():
    return torch.cuda.max_memory_allocated()
