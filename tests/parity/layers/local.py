"""Softmax attention within groups of tokens: blocks of neighbors, or every n-th token (Tay et al. 2021, B.1)."""
import torch

from definitions.attention import attend

ATTENTION = True
SETTINGS = [{"block": 8}, {"block": 50}, {"block": 8, "groups": "strided"}, {"block": 50, "groups": "strided"},
            {"block": 8, "causal": True}, {"block": 8, "groups": "strided", "causal": True}]


def layer(x, valid, w, settings, about):
    t, block = torch.arange(x.shape[1]), settings["block"]
    group = t // block if settings["groups"] == "contiguous" else t % (about.max_length // block + 1)
    return attend(x, valid, w, about, group[:, None] == group, settings["causal"])
