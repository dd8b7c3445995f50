"""Gated linear attention: matrices of states with a decay for each key channel and token (Yang et al. 2023)."""
from definitions.recurrences import normalized_memories, of_heads

SETTINGS = [{}, {"num_heads": 3, "rank": 4, "temperature": 1.0, "decay_bias": 2.0, "bidirectional": False}]


def sizes(settings, about):
    heads = settings["num_heads"]
    keys = settings["key_dim"] or about.width // (2 * heads)
    values = settings["value_dim"] or about.width // heads
    return {"K": keys, "V": values, "mixed": heads * (2 * keys + values)}


def layer(x, valid, w, settings, about):
    heads, size = settings["num_heads"], sizes(settings, about)
    q, k, v = (of_heads(t, heads) for t in (x @ w["qkv_weight"].T).split([heads * size[name] for name in "KKV"], 2))
    gates = (x @ w["decay_in_weight"].T @ w["decay_out_weight"].T + w["decay_bias"]).sigmoid()
    decay = of_heads(gates, heads)**(1 / settings["temperature"])
    return normalized_memories(x, valid, w, settings, q, k, v, decay)
