"""Calls layers of outside packages as the encoder calls its own.

It knows the conventions of s4 (lengths in, a tuple out, `_optim` on parameters), zoology (d_model,
layer_idx), flash-linear-attention (hidden_size, attention_mask, a tuple out) and lucidrains'
packages (dim, mask).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import random
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode


@dataclasses.dataclass(frozen=True)
class Shape:
    """Arguments with which the encoder makes its sequence layers: mixers/sequence_layer.h."""

    dim: int
    heads: int
    head_dim: int
    max_length: int
    layer: int
    path: str = ""  # "encoder.layers.0.mixer"
    seed: int = 0  # of the run
    task: Mapping[str, Any] | None = None  # of a whole model: the facts of its task


# Names of constructor arguments, first match wins.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "dim": ("dim", "d_model", "hidden_size", "embed_dim", "model_dim", "d_input", "input_dim",
            "n_embd", "hidden_dim", "channels", "width", "features", "size"),
    "heads": ("heads", "num_heads", "n_heads", "nhead", "n_head", "num_attention_heads"),
    "head_dim": ("dim_head", "head_dim", "dim_heads"),
    "max_length": ("max_length", "max_seq_len", "seq_len", "l_max", "max_len", "block_len",
                   "max_position_embeddings", "sequence_length"),
    "layer": ("layer", "layer_idx", "layer_id", "layer_number"),
    "path": ("path",),
    "seed": ("seed",),
}
# Names that may mean something else: an argument that has a default keeps it, but for the seed of a constructor that
# also takes a path, as those of lra.nn do.
_AMBIGUOUS = ("block_len", "channels", "features", "seed", "size", "width")
_TASK_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "vocabulary": ("vocabulary", "vocab_size", "num_tokens", "n_tokens", "vocabulary_size"),
    "classes": ("classes", "num_classes", "n_classes", "num_labels", "d_output"),
    "length": ("length", *_ARGUMENTS["max_length"]),
    "towers": ("towers",),
    "values": ("values",),
}
_MASKS = ("mask", "input_mask", "attention_mask", "padding_mask")
# torch's own: True = padding.
_INVERTED_MASKS = ("key_padding_mask", "src_key_padding_mask")
_LENGTHS = ("lengths", "seq_lengths", "input_lengths")
# Dtypes of buffers that checkpoints hold, complex numbers as pairs of real ones.
_SAVED = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128,
)
# training, attention_dropout, dropout, tied_dropout, key, step_key, step, part
Context = tuple[bool, float, float, bool, int, int, int, int]


def seed_generators(seed: int) -> None:
    """Those of torch, NumPy and Python, from which code of users may draw."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)


@contextlib.contextmanager
def generators_aside(device: torch.device | None = None) -> Iterator[None]:
    """What is seeded and drawn inside changes nothing outside."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[device] if device and device.type == "cuda" else []):
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)


def _named_parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return {
        name: parameter for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and name != "self"
    }


def _mask_argument(module: torch.nn.Module) -> inspect.Parameter | None:
    """The argument of `forward` that says which positions are padding.

    A forward that passes on any keyword has the arguments of the one that it overrides.
    """
    for kind in type(module).__mro__:
        if kind is torch.nn.Module:
            break
        if "forward" not in vars(kind):
            continue
        known = _named_parameters(vars(kind)["forward"])
        for name in (*_INVERTED_MASKS, *_MASKS, *_LENGTHS):
            if name in known:
                return known[name]
        if not _takes_any_keyword(vars(kind)["forward"]):
            break
    return None


def _takes_any_keyword(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def constructor_arguments(
    made_by: Callable[..., Any], settings: Mapping[str, Any], shape: Shape
) -> dict[str, Any]:
    """Arguments by name: those of [mixer], then values of the shape for the names known here."""
    known = _named_parameters(made_by)
    for name in settings:
        if name not in known and not _takes_any_keyword(made_by):
            raise TypeError(f"takes no argument {name!r}; known: {', '.join(known)}")
    arguments = dict(settings)
    for field, names in (_ARGUMENTS if shape.task is None else _TASK_ARGUMENTS).items():
        found = next((name for name in names if name in known), None)
        if found in _AMBIGUOUS and known[found].default is not inspect.Parameter.empty and "path" not in known:
            continue
        if found and found not in arguments:
            arguments[found] = getattr(shape, field) if shape.task is None else shape.task[field]
    missing = [
        name for name, parameter in known.items()
        if parameter.default is parameter.empty and name not in arguments
    ]
    if missing:
        raise TypeError(f"needs {', '.join(missing)}; give it with --set mixer.{missing[0]}=VALUE")
    return arguments


class _Complex(torch.nn.Module):
    """A complex parameter as real and imaginary part, which are trained as two parameters."""

    def forward(self, real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
        return torch.complex(real, imaginary)

    def right_inverse(self, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return value.real.clone(), value.imag.clone()


def _make_real(module: torch.nn.Module) -> None:
    """Complex parameters become `parametrizations.NAME.original0` and `1`, with their `_optim`."""
    seen = set()
    for part in list(module.modules()):
        for name, parameter in list(part.named_parameters(recurse=False)):
            if not parameter.is_complex():
                continue
            if id(parameter) in seen:
                raise TypeError(f"complex parameter {name} is in two places; expected one, or two real parameters")
            seen.add(id(parameter))
            torch.nn.utils.parametrize.register_parametrization(part, name, _Complex(), unsafe=True)
            if optim := getattr(parameter, "_optim", None):
                for number in (0, 1):
                    half: Any = part.get_parameter(f"parametrizations.{name}.original{number}")
                    half._optim = optim


def _resolve_buffers(module: torch.nn.Module) -> None:
    """Computes conjugates that torch only notes on a buffer, since checkpoints read numbers as they lie in memory."""
    resolved: dict[int, torch.Tensor] = {}
    for part in module.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and (buffer.is_conj() or buffer.is_neg()):
                part._buffers[name] = resolved.setdefault(id(buffer), buffer.resolve_conj().resolve_neg())


_held: weakref.WeakValueDictionary[int, torch.nn.Module | torch.nn.Parameter] = (
    weakref.WeakValueDictionary()
)


def _hold(module: torch.nn.Module) -> None:
    """Raises TypeError if an earlier layer holds weights of this one: layers share none."""
    held: list[torch.nn.Module | torch.nn.Parameter] = [
        part for part in module.modules()
        if [*part.parameters(recurse=False), *part.buffers(recurse=False)]
    ]
    held += [parameter for parameter in module.parameters() if parameter.requires_grad]
    for part in held:
        if _held.get(id(part)) is part:
            kind = type(part).__name__
            raise TypeError(
                f"reuses a {kind} of an earlier layer; expected new modules at each call (layers "
                "cannot share weights)"
            )
    _held.update((id(part), part) for part in held)


class _NoFastPath(TorchFunctionMode):
    """torch's encoder leaves its fast path for autocast on a GPU only, and fails on a mask on the CPU (torch
    2.13 to 2.15). Under a mode it leaves it."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


@functools.cache
def _widen_norms() -> Any:
    """Under autocast on the CPU, layer norms compute in float32, as on a GPU.

    torch leaves them in bfloat16 there, and the gradient of their bias stops at 256 equal terms for each thread
    (torch 2.13 to 2.15).
    """
    torch_library: Any = torch.library
    library = torch_library.Library("aten", "IMPL")
    without = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)

    def layer_norm(x: torch.Tensor, *arguments: Any, **more: Any) -> torch.Tensor:
        with torch._C._ExcludeDispatchKeyGuard(without):
            wide = x.float() if x.dtype == torch.bfloat16 else x
            y: torch.Tensor = torch.ops.aten.layer_norm(wide, *arguments, **more)
            return y.to(x.dtype)

    library.impl("layer_norm", layer_norm, "AutocastCPU")
    return library


def _autocast(x: torch.Tensor, narrow: bool) -> contextlib.ExitStack:
    """To bfloat16, or none, whatever the caller has."""
    stack = contextlib.ExitStack()
    stack.enter_context(torch.autocast(x.device.type, torch.bfloat16, enabled=narrow))
    if narrow and x.device.type == "cpu":
        _widen_norms()
        stack.enter_context(_NoFastPath())
    return stack


class WrongShape(ValueError):
    """forward returned a tensor of another shape."""

    def __init__(self, y: torch.Tensor, expected: torch.Tensor) -> None:
        self.returned = list(y.shape)
        super().__init__(f"forward returned {self.returned}; expected {list(expected.shape)}")


class Adapted:
    """A module with the calling convention detected for it."""

    def __init__(self, module: torch.nn.Module, shape: Shape) -> None:
        self.module, self.shape, self.task = module, shape, shape.task
        # A whole model's numbers, which are no activations, do not say it.
        self.bf16 = bool(shape.task and shape.task.get("bf16"))
        _hold(module)
        _make_real(module)
        _resolve_buffers(module)
        self.takes_context = hasattr(module, "forward_in_context")
        mask = None if self.takes_context else _mask_argument(getattr(module, "_orig_mod", module))  # of torch.compile
        self._mask = None if mask is None else mask.name
        self._insists = mask is not None and mask.default is inspect.Parameter.empty
        for name, parameter in module.named_parameters():
            if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
                raise TypeError(f"parameter {name} is lazy; give the width to its layer")
            if parameter.dtype != torch.float32:
                raise TypeError(f"parameter {name} is {parameter.dtype}; expected torch.float32")
        for name, tensor in self.buffers().items():
            if tensor.dtype not in _SAVED:
                raise TypeError(
                    f"buffer {name} is {tensor.dtype}, which checkpoints do not hold; expected one of "
                    f"{', '.join(str(dtype).removeprefix('torch.') for dtype in _SAVED)} (or "
                    "register_buffer with persistent=False)"
                )
        self._made = self._state()

    @property
    def takes_mask(self) -> bool:
        return self.takes_context or self._mask is not None

    def to(self, device: str) -> None:
        self.module.to(device)
        self._made = self._state()

    def _state(self) -> dict[str, int]:
        """Names and identities of what is trained and saved."""
        return {name: id(tensor) for name, tensor in {**self.parameters(), **self.buffers()}.items()}

    def _refuse_new_state(self) -> None:
        made = self._state()
        if new := [name for name in {**self._made, **made} if self._made.get(name) != made.get(name)]:
            raise TypeError(
                f"forward makes or replaces {', '.join(new[:3])}, which is not trained or saved; expected "
                "the constructor to make it, and a change in place (copy_)"
            )

    def parameters(self) -> dict[str, torch.Tensor]:
        """The trained parameters."""
        return {n: p for n, p in self.module.named_parameters() if p.requires_grad}

    def buffers(self) -> dict[str, torch.Tensor]:
        """The state that a checkpoint holds: frozen parameters and persistent buffers."""
        # Not those of state_dict(), whose hooks may rename them.
        passing = {
            id(part._buffers[name]) for part in self.module.modules() for name in part._non_persistent_buffers_set
        }
        frozen = {n: p for n, p in self.module.named_parameters() if not p.requires_grad}
        return {**frozen, **{n: b for n, b in self.module.named_buffers() if id(b) not in passing}}

    def _optim(self) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """The group of each trained parameter that has an attribute `_optim`, and the groups.

        A group has its "name", or optim1, optim2 and so on.
        """
        group_of: dict[str, str] = {}
        groups: dict[str, dict[str, Any]] = {}
        for name, parameter in self.parameters().items():
            if not (optim := getattr(parameter, "_optim", None)):
                continue
            if unknown := sorted({*optim} - {"name", "lr", "weight_decay"}):
                raise TypeError(f"_optim of {name} has {', '.join(unknown)}; expected lr, weight_decay and name")
            if optim.get("lr") is not None and not optim["lr"] > 0:
                raise TypeError(f"_optim of {name} has the rate {optim['lr']}; expected one above 0, or requires_grad_(False)")
            same = next((group for group, other in groups.items() if other == optim), None)
            group = same or str(optim.get("name") or f"optim{len(groups) + 1}")
            if groups.setdefault(group, dict(optim)) != optim:
                raise TypeError(f"two different groups of parameters are called {group!r}")
            group_of[name] = group
        return group_of, groups

    def groups(self) -> list[dict[str, Any]]:
        """[{name, learning_rate, weight_decay}], 0 and None if the run's own apply."""
        return [
            {
                "name": name,
                "learning_rate": float(optim.get("lr") or 0),
                "weight_decay": optim.get("weight_decay"),
            }
            for name, optim in self._optim()[1].items()
        ]

    def group_names(self) -> list[str]:
        """The group of each of parameters(), "" for the main one."""
        group_of, _ = self._optim()
        return [group_of.get(name, "") for name in self.parameters()]

    def __call__(
        self, x: torch.Tensor, mask: torch.Tensor | None, lengths: torch.Tensor | None,
        context: Context,
    ) -> torch.Tensor:
        """x [B, L, D] -> [B, L, D]; mask uint8 [B, L], 1 = token."""
        training, key = context[0], context[4]
        if self.module.training != training:
            self.module.train(training)
        if self.takes_context:
            in_context: Any = self.module.forward_in_context
            y = in_context(x, mask, lengths, *context)
            return self._checked(y, x)
        changes = _changes(x)
        # Dropout and the like draw the same numbers for the same step, also after a resume.
        seed_generators(key & 0x7FFFFFFFFFFFFFFF)
        inputs = expected = x
        if self.task is not None:
            inputs, mask = self._whole_input(x, mask)
            expected = x.new_empty((inputs.shape[0], self.task["classes"]), dtype=torch.float32)
        with _autocast(x, self.bf16 or x.dtype == torch.bfloat16):
            y = self.module(inputs, **self._padding(inputs, mask))
        if _changes(x) != changes:
            raise ValueError("forward changes its input in place (relu_ for relu?)")
        if training:
            self._refuse_new_state()
        y = y[0] if isinstance(y, (tuple, list)) and y else y
        if self.bf16 and isinstance(y, torch.Tensor) and y.dtype == torch.bfloat16:
            y = y.float()
        y = self._checked(y, expected)
        if training and self.task is not None and torch.is_grad_enabled() and not y.requires_grad:
            raise ValueError("forward returned a tensor without gradient; expected logits")
        return y

    def _whole_input(
        self, x: torch.Tensor, mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Tokens as int64; the two documents of a pair side by side, [B, 2, L]."""
        assert self.task is not None
        x = x if self.task["values"] else x.long()
        if self.task["towers"] == 1:
            return x, mask
        pairs = (x.shape[0] // 2, 2, -1)
        return x.reshape(pairs), None if mask is None else mask.reshape(pairs)

    def _padding(self, x: torch.Tensor, mask: torch.Tensor | None) -> dict[str, Any]:
        """Empty if nothing is padded, unless forward requires the argument.

        An example without tokens has one here: attention to nothing is NaN in many classes, recurrences
        refuse a length of 0, and nothing reads the result.
        """
        if self._mask is None or (mask is None and not self._insists):
            return {}
        there = x.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask.bool()
        there = torch.cat([there[..., :1] | ~there.any(-1, keepdim=True), there[..., 1:]], -1)
        if self._mask in _LENGTHS:
            return {self._mask: there.sum(-1)}
        return {self._mask: ~there if self._mask in _INVERTED_MASKS else there}

    @staticmethod
    def _checked(y: Any, x: torch.Tensor) -> torch.Tensor:
        if not isinstance(y, torch.Tensor):
            raise TypeError(f"forward returned {type(y).__name__}; expected a tensor")
        if y.shape != x.shape:
            raise WrongShape(y, x)
        if y.device != x.device:
            raise ValueError(f"forward returned a tensor on {y.device}; expected {x.device}")
        if y.dtype not in (x.dtype, torch.float32):
            raise TypeError(f"forward returned {y.dtype}; expected {x.dtype}")
        return y.to(x.dtype)


def _changes(x: torch.Tensor) -> int:
    """How often x was changed in place."""
    return 0 if x.is_inference() else x._version


def adapt(
    made_by: Callable[..., torch.nn.Module], settings: Mapping[str, Any], shape: Shape
) -> Adapted:
    """Makes the layer. Raises whatever the class raises."""
    module = made_by(**constructor_arguments(made_by, settings, shape))
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"made {type(module).__name__}; expected a torch.nn.Module")
    return Adapted(module, shape)
