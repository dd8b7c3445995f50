"""Softmax attention among blocks: neighbors, the first and the last, and random ones (Zaheer et al. 2020)."""
import numpy as np

from definitions import pairs
from definitions.attention import attend

ATTENTION = True
DRAWS_FROM_SEED = True
SETTINGS = [{"block": 3, "random_blocks": 2}, {"block": 2, "random_blocks": 0}, {"block": 4, "random_blocks": 40},
            {"block": 64}, {"block": 3, "random_range": "first_1024"},
            {"block": 3, "random_blocks": 2, "causal": True}]
SHORT = {"block": 4}


def layer(x, valid, w, settings, about):
    allowed = [pairs.bigbird(x.shape[1], count, about.heads, about.key("pattern"), settings)
               for count in valid.sum(1).tolist()]
    return attend(x, valid, w, about, np.array(allowed), settings["causal"])
