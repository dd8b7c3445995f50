"""A feed-forward layer, then tracks of channels that are rotated by 0, 1, 2, 4, ... (Khalitov et al. 2023)."""
import torch
from torch.nn import functional

from definitions.state_spaces import gelu

LENGTH_BOUND = "the number of its tracks depends on the length"
SETTINGS = [{}, {"hidden": 17}]


def sizes(settings, about):
    return {"hidden": settings["hidden"] or about.width}


def layer(x, valid, w, settings, about):
    y = gelu(x @ w["mlp.fc1.weight"].T + w["mlp.fc1.bias"]) @ w["mlp.fc2.weight"].T + w["mlp.fc2.bias"]
    rows = []
    for tokens, count in zip(y, valid.sum(1).tolist()):
        still, *tracks = tokens[:count].tensor_split(1 + (about.max_length - 1).bit_length(), 1)
        moved = torch.cat([still, *(track.roll(-(2**m), 0) for m, track in enumerate(tracks))], 1)
        rows.append(functional.pad(moved, (0, 0, 0, len(tokens) - count)))
    return torch.stack(rows)
