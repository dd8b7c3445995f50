"""Softmax attention among tokens with equal hashes in neighboring chunks, with keys that are the normalized queries
(Kitaev et al. 2020, section 2)."""
import numpy as np

from definitions import draws, pairs
from definitions.attention import merged, project, scores, seen, softmax

ATTENTION = True
HARD_CHOICES = "rounded queries fall into other buckets"
SETTINGS = [{"chunk": 8}, {"rounds": 1, "chunk": 100, "buckets": 6},
            {"rounds": 3, "chunk": 5, "buckets": 4, "causal": True}]
SHORT = {"chunk": 16}


def layer(x, valid, w, settings, about):
    q, v = project(x, w["query_value.weight"], 2, about)
    buckets = settings["buckets"] or 2 * -(-about.max_length // settings["chunk"])
    rotations = draws.reformer_rotations(about.layer, about.heads, settings["rounds"], about.head_dim, buckets // 2)
    allowed = [[pairs.reformer(head.numpy(), tokens, rotation, settings) for head, rotation in zip(heads, rotations)]
               for heads, tokens in zip(q.detach(), valid.numpy())]
    k = q / q.norm(dim=-1, keepdim=True)
    return merged(softmax(scores(q, k), seen(valid, np.array(allowed))) @ v, w)
