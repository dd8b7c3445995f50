"""The operators lra_python::* (src/mixers/python_layer.cpp): the trainer's calls of a Python class.

The last result of each is a string, the reason of a failure in one line, so that no exception of
user code propagates through the program.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import itertools
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from . import _probe
from ._adapter import Adapted, Shape, adapt, generators_aside, seed_generators
from ._code import code_hash, origins

_layers: dict[int, Adapted] = {}
# One untrained layer for each class and its arguments, which has the groups and the sizes, and
# the checks call it.
_samples: dict[tuple[Any, ...], Adapted] = {}
_numbers = itertools.count()
_FIELDS = ("dim", "heads", "head_dim", "max_length", "layer")
_library: Any = None


def _failure(error: BaseException) -> str:
    """One line: type, message, and the last place in code that is not torch's or ours."""
    own = str(Path(__file__).parent), str(Path(torch.__file__).parent)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((*own, "<"))
    ]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    message = " ".join(str(error).split())
    if isinstance(error, SystemExit):
        message = f"sys.exit({error.code!r}) was called"
    return f"{type(error).__name__}: {message}{place}" if message else type(error).__name__ + place


def find_class(name: str) -> Callable[..., torch.nn.Module]:
    """The class (or function that makes a module) named "package.module:Class"."""
    module_name, _, class_name = name.partition(":")
    module = importlib.import_module(module_name)
    found = functools.reduce(getattr, class_name.split("."), module)
    if not callable(found):
        raise TypeError(f"is {type(found).__name__}; expected a class derived from torch.nn.Module")
    return found


def _guarded(results: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns the function's results and "", or `results` and the reason of the failure."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            process = os.getpid()
            try:
                answer: tuple[Any, ...] = (*function(*arguments), "")
            except BaseException as error:  # SystemExit as well: only the trainer ends the run
                answer = (*results, _failure(error))
            if os.getpid() != process:
                os._exit(70)  # a copy that user code forked must not continue as a trainer
            return answer[0] if len(answer) == 1 else answer

        return call

    return decorate


@_guarded(("",))
def _source(name: str) -> tuple[str]:
    made_by = find_class(name)
    facts = {
        "source_sha256": code_hash(made_by),
        "packages": _versions(sys.modules[made_by.__module__], _sample_of(name)),
    }
    return (json.dumps(facts),)


@_guarded(("",))
def _faults(name: str, has_padding: bool, bf16: bool) -> tuple[str]:
    """Takes the samples of the class, which are done with then."""
    sample = _sample_of(name)
    for key in [key for key in _samples if key[0] == name]:
        del _samples[key]
    found = _probe.faults(sample, has_padding=has_padding, bf16=bf16) if sample else []
    return (json.dumps(found),)


def _sample_of(name: str) -> Adapted | None:
    """The first of the class."""
    return next((sample for key, sample in _samples.items() if key[0] == name), None)


def _sample(name: str, settings: str, shape: dict[str, Any], seed: int = 0) -> Adapted:
    fields = ("max_length",) if "whole" in json.loads(settings) else _FIELDS
    key = name, settings, *(shape[field] for field in fields)
    if key not in _samples:
        _samples[key] = _adapted(name, settings, shape, seed)
        if shape["layer"] > 0:
            _samples[key].to("meta")  # the checks call the first
    return _samples[key]


def _versions(module: Any, layer: Adapted | None) -> dict[str, str]:
    """Python, torch, and the packages that the module's globals and the layer's parts come from."""
    names = [module.__name__, "torch", *origins(module)]
    names += [type(part).__module__ for part in (layer.module.modules() if layer else ())]
    tops = {name.split(".")[0] for name in names}
    owners = importlib.metadata.packages_distributions()
    versions = {"python": platform.python_version()}
    for top in sorted(tops - set(sys.stdlib_module_names)):
        for package in owners.get(top, [])[:1]:
            versions[package] = importlib.metadata.version(package)
    return versions


def _adapted(name: str, settings: str, shape: dict[str, Any], seed: int) -> Adapted:
    """A fresh layer whose weights depend only on `seed`."""
    fields = {field: shape[field] for field in _FIELDS}
    arguments = json.loads(settings)
    task = arguments.pop("whole", None)
    where = Shape(**fields, path=shape.get("path", ""), seed=shape.get("seed", 0), task=task)
    with generators_aside():
        seed_generators(seed)
        return adapt(find_class(name), arguments, where)


@functools.cache
def _group_list(name: str, settings: str, shape: str) -> str:
    return json.dumps(_sample(name, settings, json.loads(shape)).groups())


@_guarded(("",))
def _groups(name: str, settings: str, shape: str) -> tuple[str]:
    return (_group_list(name, settings, shape),)


@_guarded((-1, [], [], ""))
def _make(
    name: str, settings: str, shape: str, seed: int
) -> tuple[int, list[torch.Tensor], list[torch.Tensor], str]:
    place = json.loads(shape)
    number = next(_numbers)
    if place["device"] == "meta":  # to count parameters, not to call it
        adapted = _sample(name, settings, place, seed)
        parameters, buffers = (
            {name: torch.empty_like(tensor, device="meta") for name, tensor in tensors.items()}
            for tensors in (adapted.parameters(), adapted.buffers())
        )
    else:
        adapted = _layers[number] = _adapted(name, settings, place, seed)
        adapted.to(place["device"])
        parameters, buffers = adapted.parameters(), adapted.buffers()
    names = {
        "parameters": [*parameters], "groups": adapted.group_names(), "buffers": [*buffers],
    }
    return number, [*parameters.values()], [*buffers.values()], json.dumps(names)


def _forward(
    layer: int, x: torch.Tensor, mask: torch.Tensor | None, lengths: torch.Tensor | None,
    *context: Any,
) -> tuple[torch.Tensor, str]:
    """`context`: the rest of layers/context.h, in the order of the operator's arguments."""
    forward = _guarded((x,))(lambda: (_layers[layer](x, mask, lengths, context),))
    y, error = forward()
    return y, f"{error}; x was {list(x.shape)}" if error else ""


@_guarded(())
def _drop(layer: int) -> tuple[()]:
    _layers.pop(layer, None)
    return ()


def register() -> None:
    """Registers the operators' implementations, once per process, after the library is loaded."""
    global _library
    library: Any = torch.library
    _library = library.Library("lra_python", "IMPL")
    for name, function in (
        ("source", _source), ("faults", _faults), ("make", _make), ("groups", _groups),
        ("forward", _forward), ("drop", _drop),
    ):
        _library.impl(name, function, "CompositeImplicitAutograd")
