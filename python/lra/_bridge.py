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
from ._adapter import Adapted, Shape, adapt
from ._code import code_hash, origins

_layers: dict[int, Adapted] = {}
# The last layer of each class, which a record describes, and the function that makes it again.
_last_made: dict[str, tuple[Adapted, _probe.Make]] = {}
_numbers = itertools.count()
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
    layer, again = _last_made.get(name, (None, None))
    takes_mask = layer is None or layer.takes_mask
    facts = {
        "source_sha256": code_hash(made_by),
        "packages": _versions(sys.modules[made_by.__module__], layer),
        # A mask is missing only if padding has an effect.
        "takes_mask": takes_mask or (again is not None and not _probe.padding_takes_part(again)),
    }
    return (json.dumps(facts),)


@_guarded(("",))
def _doubts(name: str, has_padding: bool = True) -> tuple[str]:
    _, again = _last_made.get(name, (None, None))
    return (json.dumps(_probe.doubts(again, has_padding=has_padding) if again else []),)


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
    fields = {field: shape[field] for field in ("dim", "heads", "head_dim", "max_length", "layer")}
    arguments = json.loads(settings)
    task = arguments.pop("whole", None)
    where = Shape(**fields, path=shape.get("path", ""), seed=shape.get("seed", 0), task=task)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return adapt(find_class(name), arguments, where)


@functools.cache
def _group_list(name: str, settings: str, shape: str) -> str:
    return json.dumps(_adapted(name, settings, json.loads(shape), 0).groups())


@_guarded(("",))
def _groups(name: str, settings: str, shape: str) -> tuple[str]:
    return (_group_list(name, settings, shape),)


@_guarded((-1, [], [], ""))
def _make(
    name: str, settings: str, shape: str, seed: int
) -> tuple[int, list[torch.Tensor], list[torch.Tensor], str]:
    place = json.loads(shape)
    adapted = _adapted(name, settings, place, seed)

    def again(other: int) -> Adapted:
        elsewhere = {**place, "seed": place.get("seed", 0) + other}
        return _adapted(name, settings, elsewhere, seed + other)

    _last_made[name] = adapted, again
    adapted.to(place["device"])
    number = next(_numbers)
    _layers[number] = adapted
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
        ("source", _source), ("doubts", _doubts), ("make", _make), ("groups", _groups),
        ("forward", _forward), ("drop", _drop),
    ):
        _library.impl(name, function, "CompositeImplicitAutograd")
