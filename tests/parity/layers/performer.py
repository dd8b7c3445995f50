"""Attention with random features whose products estimate those of softmax, or with relu (Choromanski et al. 2021)."""
from definitions.attention import by_features, merged, project

ATTENTION = True
BUFFERS = ["features"]
SETTINGS = [{"num_features": 16}, {"num_features": 2, "norms": "fixed"}, {"features": "relu"},
            {"features": "relu", "causal": True}, {"num_features": 16, "causal": True}]
SHORT = {"num_features": 50}


def layer(x, valid, w, settings, about):
    q, k, v = project(x, w["qkv.weight"], 3, about)
    if settings["features"] == "relu":
        q, k = (t.clamp_min(0) + 1e-3 for t in (q, k))
    else:
        scaled = (t * about.head_dim**-0.25 for t in (q, k))
        q, k = ((t @ w["features"].T - t.square().sum(-1, keepdim=True) / 2).exp() for t in scaled)
    return merged(by_features(q, k, v, valid, 0, settings["causal"]), w)
