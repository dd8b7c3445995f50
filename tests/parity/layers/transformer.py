"""Softmax attention over all pairs (Vaswani et al. 2017)."""
from definitions.attention import attend

ATTENTION = True
SETTINGS = [{}, {"causal": True}]


def layer(x, valid, w, settings, about):
    return attend(x, valid, w, about, causal=settings["causal"])
