"""Softmax attention over a fixed or strided pattern of pairs (Child et al. 2019, section 4.3)."""
from definitions import pairs
from definitions.attention import attend

ATTENTION = True
SETTINGS = [{"summary": 2}, {"stride": 5, "summary": 5, "causal": True, "global_first": True},
            {"stride": 5, "summary": 3, "causal": True}, {"pattern": "strided", "global_first": True},
            {"pattern": "strided", "stride": 5, "causal": True}]
SHORT = {"summary": 3}


def layer(x, valid, w, settings, about):
    return attend(x, valid, w, about, pairs.sparse_transformer(x.shape[1], about.max_length, settings))
