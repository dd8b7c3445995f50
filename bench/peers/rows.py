"""What is compared with what.

A row names the model of lra, its settings beside the release Text preset, the rate of attention
dropout on both sides, and its peers: (kind, name, further settings of lra against this peer). Kinds:
jax and torch are the modules of this folder, package and transformers are other people's.
"""

# Both sides of the Reformer rows: one round, chunks and average buckets of 64.
REFORMER = {1024: ("mixer.chunk=64", "mixer.buckets=16"),
            4096: ("mixer.chunk=64", "mixer.buckets=64")}
FAVOR = ("mixer.features=softmax", "mixer.num_features=266")

ROWS = {
    "transformer-drop": {
        "model": "transformer", "drop": 0.1, "settings": "attention dropout 0.1",
        "peers": [("transformers", "sdpa", ()), ("torch", "exact", ()), ("jax", "exact", ())]},
    "transformer": {
        "model": "transformer", "drop": 0.0, "settings": "no attention dropout",
        "peers": [("torch", "exact", ()), ("transformers", "sdpa", ())]},
    "local": {
        "model": "local", "drop": 0.1, "settings": "blocks of 50",
        "peers": [("jax", "local", ("mixer.groups=contiguous",)),
                  ("torch", "local", ("mixer.groups=contiguous",))]},
    "longformer": {
        "model": "longformer", "drop": 0.0, "settings": "window 512, no global token",
        "peers": [("torch", "longformer", ())]},
    "bigbird": {
        "model": "bigbird", "drop": 0.0, "settings": "blocks of 64, 3 random, window 3, 2 global",
        "peers": [("jax", "bigbird", ("mixer.random_range=all",))]},
    "reformer": {
        "model": "reformer", "drop": 0.0, "settings": "1 round, chunks and buckets of 64",
        "peers": [("jax", "reformer", REFORMER), ("package", "reformer-pytorch", REFORMER)]},
    "linformer": {
        "model": "linformer", "drop": 0.1, "settings": "rank 16",
        "peers": [("torch", "linformer", ()), ("jax", "linformer", ()),
                  ("package", "linformer", ())]},
    "performer-relu": {
        "model": "performer", "drop": 0.1, "settings": "ReLU features",
        "peers": [("jax", "relu_performer", ()), ("torch", "relu_performer", ())]},
    "performer-favor": {
        "model": "performer", "drop": 0.1, "settings": "266 softmax features, not drawn again",
        "peers": [("package", "performer-pytorch", FAVOR)]},
    "linear": {
        "model": "linear_transformer", "drop": 0.1, "settings": "elu + 1",
        "peers": [("torch", "linear", ()), ("jax", "linear", ())]},
    "sinkhorn": {
        "model": "sinkhorn", "drop": 0.1, "settings": "blocks of 50 (package: 64), 5 iterations",
        "peers": [("jax", "sinkhorn", ()),
                  ("package", "sinkhorn-transformer", ("mixer.block=64",))]},
    "synthesizer": {
        "model": "synthesizer", "drop": 0.0, "settings": "full random matrices and dot product",
        "peers": [("torch", "synthesizer", ())]},
    "sparse": {
        "model": "sparse_transformer", "drop": 0.0, "settings": "stride 50, summary 10, causal",
        "peers": [("torch", "sparse", ())]},
}


def lra_settings(row, peer, length):
    """The --set values of lra for a peer of a row."""
    extra = peer[2].get(length, ()) if isinstance(peer[2], dict) else peer[2]
    return ("model.pooling=mean", f"model.attention_dropout={row['drop']}", *extra)
