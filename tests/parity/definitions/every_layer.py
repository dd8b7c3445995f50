"""The definitions of the sequence layers, one file for each in tests/parity/layers, and what they are told.

A file NAME.py, with the name of `lra list models`, holds

- SETTINGS: a list of the settings besides the defaults with which the layer is compared;
- layer(x, valid, w, settings, about): the result [B, L, D] of x [B, L, D] after the output projection, in float64 and
  differentiable, with dense arrays or loops over positions. `valid`, bool [B, L], has the tokens first; w is
  {tensor: value} by the names of docs/mixers.md. Padded rows of the result may hold anything;

and where the layer needs it

- SHORT: settings with which sequences of 150 tokens meet every part of the mechanism;
- sizes(settings, about): the sizes that only its table in docs/mixers.md names;
- BUFFERS: a list of the tensors that nothing learns;
- ATTENTION = True: `lra analyze span` knows its attention weights. Its values then come from the last rows of a weight;
- LENGTH_BOUND: why it computes nothing at another length than it was trained with;
- HARD_CHOICES: why a rounded input may give another result, so that bfloat16 is not compared;
- DRAWS_FROM_SEED = True: it draws what no file holds, so that weights from a file do not give the same result again.
"""
import dataclasses
import importlib
import pathlib

import torch

from definitions import draws


@dataclasses.dataclass(frozen=True)
class About:
    """A layer by itself, or one of a model in a run."""

    width: int  # D
    heads: int
    head_dim: int
    max_length: int
    layer: int = 0  # its index
    seed: int = 0
    path: str = ""  # in front of the names under which it draws: in a run "encoder.layers.0.mixer."
    # [B, L, D], to which a model with a norm before the layer adds its result.
    stream: torch.Tensor | None = None

    def key(self, name):
        return draws.weight_key(self.seed, self.path + name)


def every_layer():
    """{name: module} of the files in tests/parity/layers."""
    folder = pathlib.Path(__file__).parents[1] / "layers"
    return {file.stem: importlib.import_module(f"layers.{file.stem}") for file in sorted(folder.glob("*.py"))}
