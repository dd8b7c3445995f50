"""Rows of the comparison.

A row names the model of lra, its settings beside the release preset of the workload (Text, where it
names none; lengths: the only ones that it has), the rate of attention dropout on both sides, and
its peers: (kind, name, further settings of lra against this peer). Kinds: jax and torch are the
modules of this folder, compiled is torch through torch.compile (some rows: it was slower than without
in all that were tried on CPUs; on a GPU every module of kind torch stands compiled as well), flex is
FlexAttention (torch_flex.py), flex-compiled the whole encoder around it through torch.compile (both
on GPUs alone), package and transformers are other people's.
"""
from workload import WORKLOADS

# Both sides of the Reformer rows: one round, chunks and average buckets of 64.
REFORMER = {length: ("mixer.chunk=64", f"mixer.buckets={buckets}")
            for length, buckets in ((1024, 16), (2000, 32), (4000, 64), (4096, 64))}
FAVOR = ("mixer.features=softmax", "mixer.num_features=266", "mixer.redraw=0")
RELU = ("mixer.features=relu",)

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
                  ("torch", "local", ("mixer.groups=contiguous",)),
                  ("compiled", "local", ("mixer.groups=contiguous",))]},
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
        "peers": [("jax", "relu_performer", RELU), ("torch", "relu_performer", RELU)]},
    "performer-favor": {
        "model": "performer", "drop": 0.1, "settings": "266 softmax features, not drawn again",
        "peers": [("package", "performer-pytorch", FAVOR)]},
    "linear": {
        "model": "linear_transformer", "drop": 0.1, "settings": "elu + 1",
        "peers": [("torch", "linear", ()), ("compiled", "linear", ()), ("jax", "linear", ())]},
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
    "s4d": {
        "model": "s4d", "drop": 0.0, "settings": "64 states, both directions, separate poles per channel",
        "peers": [("torch", "s4d", ("mixer.init=lin", "mixer.shared_poles=false"))]},
    "mega": {
        "model": "mega", "drop": 0.0, "settings": "chunks of 128, 16 states, both directions",
        "peers": [("torch", "mega", ("mixer.chunk=128",))]},
}
# Layers in plain PyTorch (torch_recurrences.py), both sides with the layer's own defaults.
ROWS |= {model: {"model": model, "drop": 0.0, "settings": settings, "peers": [("torch", model, ())]}
         for model, settings in (
             ("s5", "64 states, both directions"), ("lru", "64 states, both directions"),
             ("long_conv", "kernels of all lags, both directions"), ("chordmixer", "hidden layers of 256"),
             ("mamba2", "4 heads of 128 x 128, both directions"), ("gla", "4 heads of 32 x 64, both directions"),
             ("gated_deltanet", "4 heads of 48 x 96, both directions"), ("min_gru", "256 channels, both directions"))}
# The package's scan keeps several arrays [B, L, 512, 16] for each of eight scans: 0.5 GB each at 4,096 tokens.
ROWS["mamba"] = {"model": "mamba", "drop": 0.0, "settings": "16 states, scan of mambapy, both directions",
                 "lengths": (1024,), "peers": [("torch", "mamba", ())]}


def narrow(task, core, model, drop, settings, *peers):
    """A row of a narrow release preset, where element-wise passes are most of a step."""
    kinds = ("torch", "compiled", "jax") if core == "linear" else ("torch", "jax")
    return {f"{task}-{model}": {"model": model, "workload": task, "lengths": (1024,), "drop": drop,
                                 "settings": settings,
                                 "peers": [(kind, core, peers) for kind in kinds]}}


LOCAL50 = ("mixer.block=50", "mixer.groups=contiguous")
for TASK, DROP in (("image", 0.2), ("pathfinder", 0.1)):
    ROWS |= narrow(TASK, "exact", "transformer", DROP, f"attention dropout {DROP}")
    ROWS |= narrow(TASK, "local", "local", DROP, "blocks of 50", *LOCAL50)
    ROWS |= narrow(TASK, "linformer", "linformer", DROP, "rank 16", "mixer.rank=16")
    ROWS |= narrow(TASK, "relu_performer", "performer", DROP, "ReLU features", *RELU)
    ROWS |= narrow(TASK, "linear", "linear_transformer", DROP, "elu + 1")


# FlexAttention has no dropout of attention weights, so lra has none against it.
FLEX = {"local": ("mixer.groups=contiguous", "model.attention_dropout=0"), "longformer": (),
        "bigbird": ("mixer.random_range=all",), "sparse": ()}


def peers_of(name, device):
    """Peers of a row. On a GPU they include those in JAX, though not every JAX build supports it."""
    peers = list(ROWS[name]["peers"])
    if device == "cpu":
        return peers
    compiled = [("compiled", *peer[1:]) for peer in peers if peer[0] == "torch"]
    flex = [(kind, name, FLEX[name]) for kind in ("flex", "flex-compiled") if name in FLEX]
    return peers + [peer for peer in compiled + flex if peer not in peers]


def workload_of(row):
    return WORKLOADS[row.get("workload", "text")]


def lra_settings(row, peer, length):
    """The --set values of lra for a peer of a row."""
    extra = peer[2].get(length, ()) if isinstance(peer[2], dict) else peer[2]
    work = workload_of(row)
    sizes = {"layers": work.layers, "heads": work.heads, "embed_dim": work.width, "qkv_dim": work.qkv,
             "mlp_dim": work.mlp, "dropout": work.dropout, "attention_dropout": row["drop"],
             "positions": "sinusoid", "pooling": "mean", "classifier": "mlp"}
    return (*(f"model.{key}={value}" for key, value in sizes.items()), *extra)
