"""Softmax attention over a window and global tokens, which have their own projections (Beltagy et al. 2020)."""
import torch

from definitions import pairs
from definitions.attention import attend, merged, project, scores, seen, softmax

ATTENTION = True
SETTINGS = [{"window": 6, "global_tokens": 0}, {"window": 6}, {"window": 512},
            {"window": 4, "global_tokens": 3, "causal": True}, {"global_tokens": 50}]
SHORT = {"window": 20}


def layer(x, valid, w, settings, about):
    others = attend(x, valid, w, about, pairs.longformer(x.shape[1], settings))
    if settings["global_tokens"] == 0:
        return others
    (q,), (k, v) = project(x, w["global_query.weight"], 1, about), project(x, w["global_key_value.weight"], 2, about)
    global_rows = merged(softmax(scores(q, k), seen(valid, causal=settings["causal"])) @ v, w)
    return torch.where(torch.arange(x.shape[1])[:, None] < settings["global_tokens"], global_rows, others)
