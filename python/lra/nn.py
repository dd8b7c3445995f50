"""The program's sequence layers as torch modules.

    layer = lra.nn.Linformer(256, heads=4, max_length=4096, rank=256)
    y = layer(x, mask)      # [B, L, D] -> [B, L, D], mask bool [B, L], True = token

There is one class for each row of `lra list models`; settings are those of `lra help MODEL`, and
weights have the names of docs/mixers.md. With the prefix `encoder.layers.N.mixer.`, these are the
names in a run's checkpoint.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from . import _program


def place_tensors(
    module: torch.nn.Module, parameters: Mapping[str, Any], buffers: Mapping[str, Any]
) -> None:
    """Registers tensors of the program below `module` by their dotted names, without a copy."""
    for name, tensor in parameters.items():
        tensor._is_param = True  # what makes it an instance of torch.nn.Parameter
        _place(module, name).register_parameter(name.rpartition(".")[2], tensor)
    for name, tensor in buffers.items():
        _place(module, name).register_buffer(name.rpartition(".")[2], tensor)


def _place(root: torch.nn.Module, name: str) -> torch.nn.Module:
    """The submodule that holds the tensor `name`, created if missing."""
    module = root
    for part in name.split(".")[:-1]:
        if part not in module._modules:
            module.add_module(part, torch.nn.Module())
        module = module.get_submodule(part)
    return module


REPLACED = (
    "weights of {} were replaced, pruned or parametrized, and it would compute without that; copy "
    "into them (load_state_dict)"
)


def identities(module: torch.nn.Module) -> dict[str, int]:
    """Of its tensors, by name: torch.nn.utils.prune and parametrize keep a tensor and rename it."""
    tensors = (*module.named_parameters(), *module.named_buffers())
    return {name: id(tensor) for name, tensor in tensors}


class Mixer(torch.nn.Module):
    """A sequence layer of the program.

    `dim` is D; `head_dim` is dim / heads by default; `max_length` is the longest L. Weights are
    drawn from (seed, path), as the program draws those of the layer at `path`. Parameters are
    float32, with bfloat16 x and under torch.autocast, too; use `.to(torch.float64)` for gradcheck.
    Parameters in a group have the attribute `_optim` = {"name", "lr", "weight_decay"}. Raises
    lra.Error for a bad setting.

    torch.compile leaves the layer out of its graphs (a graph break), and torch.export cannot.
    Transforms of torch.func do not work: the layer computes with its own parameters and gradients.
    """

    model = ""  # the name of the row

    def __init__(
        self, dim: int, *, heads: int = 1, head_dim: int | None = None, max_length: int = 1024,
        layer: int = 0, seed: int = 0, path: str = "", **settings: Any,
    ) -> None:
        super().__init__()
        _program.load_library()
        if head_dim is None:
            if dim % heads:
                raise ValueError(f"{heads} heads do not divide dim {dim}; give head_dim")
            head_dim = dim // heads
        self._call: dict[str, Any] = dict(
            dim=dim, heads=heads, head_dim=head_dim, max_length=max_length, layer=layer, seed=seed,
            path=path, **settings,
        )
        self._mixer = _program.raised(
            torch.classes.lra.Mixer, self.model, json.dumps(settings), dim, heads, head_dim, max_length, layer, path, seed
        )
        groups = self._mixer.groups()
        parameters = self._mixer.parameters()
        place_tensors(self, parameters, self._mixer.buffers())
        for name in groups:
            parameters[name]._optim = _optim(self.model, groups[name])
        self._made = identities(self)

    def _apply(self, fn: Any, recurse: bool = True) -> Mixer:
        """Casts and moves buffers in place, as torch does with parameters: the layer holds them."""
        buffers = dict(self.named_buffers())
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, tensor in buffers.items():
            place, last = _place(self, name), name.rpartition(".")[2]
            moved = place.get_buffer(last)
            if not torch._has_compatible_shallow_copy_type(tensor, moved):
                continue  # to the device `meta`: replaced, as torch replaces parameters
            tensor.data = moved
            place.register_buffer(last, tensor)
        return self

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None, *, attention_dropout: float = 0.0,
        dropout: float = 0.0, key: int | None = None, step: int = 0,
    ) -> torch.Tensor:
        """x [B, L, D] -> [B, L, D].

        Dropout rates apply only in training: `attention_dropout` to attention weights, `dropout` to
        layers with their own dropout. `mask` [B, L], True or 1 = token, padding on the right; padded
        positions of the result are undefined. Under torch.autocast to bfloat16, float32 x becomes
        bfloat16. Raises ValueError for another shape or mask, or parameters of another precision;
        the values of a mask on a GPU are not looked at.
        `key` determines dropout and any other randomness in training; by default it is drawn from
        torch's generator.
        """
        self._check(x)
        if mask is not None:
            _check_mask(mask, x)
        if x.dtype == torch.float32 and _autocast_type(x) == torch.bfloat16:
            x = x.bfloat16()
        if not x.numel():
            return x + torch.stack([p.sum() for p in self.parameters()]).sum().to(x.dtype)
        if key is None:
            key = int(torch.randint(2**62, ()).item()) if self.training else 0
        rates = (attention_dropout, dropout) if self.training else (0.0, 0.0)
        return self.forward_in_context(
            x, mask, None, self.training, *rates, False, key, key, step, 0
        )

    def forward_in_context(
        self, x: torch.Tensor, mask: torch.Tensor | None, lengths: torch.Tensor | None,
        training: bool, attention_dropout: float, dropout: float, tied_dropout: bool, key: int,
        step_key: int, step: int, part: int,
    ) -> torch.Tensor:
        """Called by the encoder: layers/context.h."""
        if identities(self) != self._made:
            raise RuntimeError(REPLACED.format("an lra.nn layer"))
        if mask is not None:
            mask = mask.to(torch.uint8)
        result: torch.Tensor = self._mixer.forward(
            x, mask, lengths, training, attention_dropout, dropout, tied_dropout, key, step_key,
            step, part,
        )
        return result

    def _check(self, x: torch.Tensor) -> None:
        dim, longest = self._call["dim"], self._call["max_length"]
        if x.dim() != 3 or x.shape[2] != dim or x.shape[1] > longest:
            raise ValueError(
                f"x has the shape {list(x.shape)}; expected [B, L, {dim}] with L up to max_length, "
                f"{longest}"
            )
        for name, parameter in self.named_parameters():
            if parameter.dtype not in (torch.float32, torch.float64):
                raise ValueError(
                    f"parameter {name} is {parameter.dtype}; expected torch.float32 (with bfloat16 x, "
                    "too) or torch.float64"
                )

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self._call.items())

    def __deepcopy__(self, memo: dict[int, Any]) -> Mixer:
        made = _remake(type(self), self._call, self.state_dict(), self.training)
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        return _remake, (type(self), self._call, self.state_dict(), self.training)


def _autocast_type(x: torch.Tensor) -> torch.dtype | None:
    kind = x.device.type
    enabled = kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if enabled else None


def _check_mask(mask: torch.Tensor, x: torch.Tensor) -> None:
    if mask.shape != x.shape[:2]:
        raise ValueError(
            f"mask has the shape {list(mask.shape)}; expected [B, L] = {list(x.shape[:2])}"
        )
    if mask.device.type != "cpu":
        return
    valid = mask.to(torch.bool)
    if mask.dtype != torch.bool and not torch.equal(valid.to(mask.dtype), mask):
        raise ValueError("mask has other values than 0 and 1; expected True or 1 for a token")
    if (valid[:, 1:] & ~valid[:, :-1]).any():
        raise ValueError("mask has tokens after padding; expected padding on the right")


def _remake(
    kind: type[Mixer], call: dict[str, Any], state: dict[str, torch.Tensor], training: bool
) -> Mixer:
    made = kind(**call).train(training)
    for tensor in state.values():
        made.to(device=tensor.device, dtype=tensor.dtype)
        break
    made.load_state_dict(state)
    return made


@functools.cache
def _table() -> list[dict[str, Any]]:
    _program.load_library()
    table: list[dict[str, Any]] = json.loads(torch.ops.lra.mixer_table())
    return table


def _optim(model: str, group: str) -> dict[str, Any]:
    """The group of a parameter in the form of S4's code; without "lr" it uses the optimizer's."""
    row = next(row for row in _table() if row["name"] == model)
    spec = next(spec for spec in row["groups"] if spec["name"] == group)
    optim = {"name": group, "weight_decay": spec["weight_decay"]}
    return {**optim, "lr": spec["learning_rate"]} if spec["learning_rate"] else optim


def _class_name(row: dict[str, Any]) -> str:
    """ "sparse_transformer" -> "SparseTransformer"; with the capitals of a title of the same letters, such as "RG-LRU"."""
    title = "".join(filter(str.isalnum, row["title"]))
    if title.lower() == row["name"].replace("_", ""):
        return title[0].upper() + title[1:]
    return "".join(part.capitalize() for part in row["name"].split("_"))


def _docstring(row: dict[str, Any]) -> str:
    lines = [f"{row['title']} ({row['paper']}); cost {row['cost']}.", "", "Settings:", ""]
    for setting in row["settings"]:
        lines.append(
            f"    {setting['name']} ({setting['type']}, default {setting['default']}): "
            f"{setting['help']}"
        )
    return "\n".join([*lines, "", Mixer.__doc__ or ""])


def _signature(row: dict[str, Any]) -> inspect.Signature:
    """That of Mixer, with the settings of the layer and their defaults."""
    known = list(inspect.signature(Mixer).parameters.values())[:-1]
    settings = []
    for setting in row["settings"]:
        default = json.loads(setting["default"])
        settings.append(inspect.Parameter(
            setting["name"], inspect.Parameter.KEYWORD_ONLY, default=default, annotation=type(default)))
    return inspect.Signature([*known, *settings])


_classes: dict[str, type[Mixer]] = {}


def _make_classes() -> dict[str, type[Mixer]]:
    if not _classes:
        for row in _table():
            name = _class_name(row)
            members = {"model": row["name"], "__doc__": _docstring(row), "__module__": __name__,
                       "__signature__": _signature(row)}
            _classes[name] = type(name, (Mixer,), members)
    return _classes


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in (classes := _make_classes()):
        raise AttributeError(f"module 'lra.nn' has no attribute {name!r}")
    return classes[name]


def __dir__() -> list[str]:
    return sorted(["Mixer", "mixers", "weights", *_make_classes()])


def mixers() -> dict[str, type[Mixer]]:
    """Returns every class of this module by its model name: {"linformer": Linformer, ...}."""
    return {kind.model: kind for kind in _make_classes().values()}


def weights(run: str, layer: int, checkpoint: str | None = None) -> dict[str, torch.Tensor]:
    """Returns the state_dict of one layer of a run, for load_state_dict. Needs safetensors.

    The weights are those that the run tested, or those of `checkpoint`: "latest", "best" or
    "step_N". Raises KeyError if there is no such layer, and Error if weights, record and log
    contradict each other, as `lra report --check` does.
    """
    from safetensors.torch import load_file

    _program.run(["report", run, "--check"])
    tested = json.loads(Path(run, "record.json").read_text())["checkpoint"]
    prefix = f"encoder.layers.{layer}.mixer."
    checkpoint = checkpoint or ("best" if tested == "best" else "latest")
    file = f"{run}/checkpoints/{checkpoint}/model.safetensors"
    found = {
        name.removeprefix(prefix): tensor
        for name, tensor in load_file(file).items() if name.startswith(prefix)
    }
    if not found:
        raise KeyError(f"{file} has no layer {layer}")
    return found
