"""The Text encoder, its training step and its forward pass in PyTorch: around our own cores, around the attention
layers of packages, and as transformers' BERT."""
import functools

import torch
import torch.nn.functional as functional
from torch import nn

import torch_mixers
from workload import BATCH, CLASSES, HEADS, LAYERS, MLP, RATE, VOCABULARY, WIDTH, sinusoids


class Heads(nn.Module):
    """Projections around a core: [B, L, D] to the same."""

    def __init__(self, core):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.core = core

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        return self.out(self.core(q, k, v).transpose(1, 2).reshape(batch, length, WIDTH))


class Layer(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention, self.drop = attention, nn.Dropout(RATE)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, MLP), nn.GELU(), nn.Dropout(RATE),
                                 nn.Linear(MLP, WIDTH), nn.Dropout(RATE))

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, make_attention, length):
        super().__init__()
        self.embed, self.drop = nn.Embedding(VOCABULARY, WIDTH), nn.Dropout(RATE)
        self.register_buffer("positions", torch.from_numpy(sinusoids(length)))
        self.layers = nn.Sequential(*(Layer(make_attention()) for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Sequential(nn.Linear(WIDTH, MLP), nn.ReLU(), nn.Linear(MLP, CLASSES))

    def forward(self, tokens):
        x = self.layers(self.drop(self.embed(tokens) + self.positions))
        return self.head(self.norm(x).mean(1))


def own(core, length, drop):
    make = torch_mixers.CORES[core]
    return Encoder(lambda: Heads(make(length, HEADS, WIDTH // HEADS, drop)), length)


def bert(length, drop, attention):
    from transformers import BertConfig, BertForSequenceClassification
    config = BertConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS,
                        num_attention_heads=HEADS, intermediate_size=MLP, num_labels=CLASSES,
                        hidden_dropout_prob=RATE, attention_probs_dropout_prob=drop,
                        max_position_embeddings=length, attn_implementation=attention)
    model = BertForSequenceClassification(config)
    return lambda tokens: model(input_ids=tokens).logits, model


def package(name, length, drop):
    """The encoder around the attention layer of a package."""
    if name == "reformer-pytorch":
        from reformer_pytorch import LSHSelfAttention
        make = functools.partial(LSHSelfAttention, WIDTH, heads=HEADS, bucket_size=64, n_hashes=1,
                                 dropout=drop)
    elif name == "performer-pytorch":
        from performer_pytorch import SelfAttention
        make = functools.partial(SelfAttention, WIDTH, heads=HEADS, nb_features=266,
                                 feature_redraw_interval=None)
    elif name == "linformer":
        from linformer import LinformerSelfAttention
        make = functools.partial(LinformerSelfAttention, WIDTH, length, k=16, heads=HEADS,
                                 share_kv=True, dropout=drop)
    elif name == "sinkhorn-transformer":
        from sinkhorn_transformer.sinkhorn_transformer import SinkhornSelfAttention
        make = functools.partial(SinkhornSelfAttention, WIDTH, 64, length, heads=HEADS,
                                 attn_dropout=drop)
    else:
        raise ValueError(f"no package {name}")
    return Encoder(make, length)


def build(kind, name, length, drop, train, dtype, threads):
    """A function that makes one training step, or one forward pass; it returns a number of it.
    bf16 is autocast, parameters stay float32."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    if kind == "transformers":
        forward, model = bert(length, drop, name)
    else:
        model = package(name, length, drop) if kind == "package" else own(name, length, drop)
        forward = torch.compile(model) if kind == "torch-compiled" else model
    model.train(train)
    tokens = torch.randint(1, VOCABULARY, (BATCH, length))
    precision = functools.partial(torch.autocast, "cpu", torch.bfloat16, enabled=dtype == "bf16")

    def infer():
        with torch.inference_mode(), precision():
            return forward(tokens).float().sum().item()
    if not train:
        return infer
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    labels = torch.randint(CLASSES, (BATCH,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with precision():
            loss = functional.cross_entropy(forward(tokens).float(), labels)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step
