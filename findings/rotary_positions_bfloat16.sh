#!/usr/bin/env bash
# rotary-embedding-torch 0.9.1, x-transformers 2.31.10, local-attention 1.11.2, reformer-pytorch 1.4.4, positional-encodings 6.0.3,
# performer-pytorch 1.1.4, transformers 5.24.0 (torch 2.13.0, CPU): positions of 8,192 tokens in bfloat16. Guess: each token has a
# rotation or code of its own, rounded to bfloat16, since position modules compute in float32 whatever the model's dtype is.
# Seen: in a model cast by `.bfloat16()`, five packages count positions in bfloat16 and have 897 different ones; the last 256 tokens
# share 9. rotary-embedding-torch does so under autocast too, where only the queries are bfloat16. Tables (performer-pytorch) keep all
# 8,192; transformers' Llama does too, but its rounded frequencies turn by other angles, 45 % off. Nothing warns.
# So a model in bfloat16 may tell neighbors apart at 256 tokens and no longer at 8,192: cast all but the positions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy rotary-embedding-torch==0.9.1 x-transformers==2.31.10 local-attention==1.11.2 \
  reformer-pytorch==1.4.4 positional-encodings==6.0.3 performer-pytorch==1.1.4 transformers==5.24.0
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import local_attention.rotary
import performer_pytorch.performer_pytorch as performer
import reformer_pytorch.reformer_pytorch as reformer
import rotary_embedding_torch
import torch
import transformers.models.llama.modeling_llama as llama
import x_transformers.x_transformers as x_transformers
from positional_encodings.torch_encodings import PositionalEncoding1D

LENGTH, WIDTH = 8192, 64
queries = torch.randn(WIDTH, generator=torch.Generator().manual_seed(0)).expand(1, 1, LENGTH, WIDTH)  # the same for each token
config = llama.LlamaConfig(hidden_size=WIDTH, num_attention_heads=1, max_position_embeddings=LENGTH)

def of_x_transformers(module, q):
    frequencies, scale = module.forward_from_seq_len(LENGTH)
    return x_transformers.apply_rotary_pos_emb(q, frequencies, scale)

def of_llama(module, q):
    return llama.apply_rotary_pos_emb(q, q, *module(q, torch.arange(LENGTH)[None]))[0]

packages = {  # module, result, rows in a model cast to bfloat16, under autocast
    "rotary-embedding-torch": (lambda: rotary_embedding_torch.RotaryEmbedding(WIDTH),
                               lambda module, q: module.rotate_queries_or_keys(q), 897, 897),
    "x-transformers": (lambda: x_transformers.RotaryEmbedding(WIDTH), of_x_transformers, 897, LENGTH),
    "local-attention": (lambda: local_attention.rotary.SinusoidalEmbeddings(WIDTH),
                        lambda module, q: local_attention.rotary.apply_rotary_pos_emb(q, q, *module(q))[0], 897, LENGTH),
    "reformer-pytorch": (lambda: reformer.FixedPositionalEmbedding(WIDTH), lambda module, q: module(q[:, 0]), 897, LENGTH),
    "positional-encodings": (lambda: PositionalEncoding1D(WIDTH), lambda module, q: module(q[:, 0]), 897, LENGTH),
    "performer-pytorch": (lambda: performer.FixedPositionalEmbedding(WIDTH, LENGTH), lambda module, q: module(q[:, 0]),
                          LENGTH, LENGTH),
    "transformers, Llama": (lambda: llama.LlamaRotaryEmbedding(config), of_llama, LENGTH, LENGTH)}
for name, (make, apply, cast_rows, autocast_rows) in packages.items():
    exact = apply(make(), queries).reshape(LENGTH, -1)
    cast = apply(make().bfloat16(), queries.bfloat16()).reshape(LENGTH, -1)
    with torch.autocast("cpu", torch.bfloat16):
        autocast = apply(make(), queries.bfloat16()).reshape(LENGTH, -1)
    rows = [len(y.unique(dim=0)) for y in (exact, cast, autocast)]
    last = len(cast[-256:].unique(dim=0))
    error = ((cast.float() - exact).norm() / exact.norm()).item()
    print(f"{name:22} different rows: {rows[0]} in float32, {rows[1]} in bfloat16 (the last 256: {last}), {rows[2]} under autocast; "
          f"bfloat16 is {100 * error:.1f} % off")
    assert rows == [LENGTH, cast_rows, autocast_rows], name
    assert (last == 9 and error > 0.5) if cast_rows == 897 else last == 256, name
    assert name != "performer-pytorch" or error < 0.01
    assert name != "transformers, Llama" or 0.3 < error < 0.6
PYTHON
