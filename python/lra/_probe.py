"""Five checks of a user's class, in four passes over one layer that is not trained.

A result of another shape; NaN; parameters that are not used; random results in evaluation; results
at tokens that depend on padding. With bfloat16, also how far the layer is from itself in float32.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator

import torch

from ._adapter import Adapted, Context, WrongShape, generators_aside, seed_generators

_EXAMPLES, _LONGEST = 3, 256
_LONG = 4096  # positions of the one example in bfloat16
_SAME = 1e-3  # of the largest output
_SHARE = 0.05  # of the norm of the outputs


def faults(layer: Adapted, *, has_padding: bool = True, bf16: bool = False) -> list[str]:
    """Predicates of "forward of CLASS", up to where it fails on random examples.

    The layer's weights are moved. Without `has_padding`, of the task, forward gets no mask.
    """
    found: list[str] = []
    if layer.takes_context:  # as layers of lra.nn do
        return found
    layer.bf16 = False  # which rounds more than the checks allow
    with _aside(), contextlib.suppress(Exception):  # the trainer meets it on real data, and says so
        examples = _Examples(layer, has_padding)
        x = examples.x.clone().requires_grad_(examples.x.is_floating_point())
        try:
            y = examples.output(x)
        except WrongShape as error:
            longest = [len(x), examples.max_length, *x.shape[2:]]  # the trainer may call it at that
            return [] if error.returned == longest else [str(error).removeprefix("forward ")]
        if not y.isfinite().all():
            return ["returns numbers that are not finite (a row that attends to nothing?)"]
        found += _faults_of_parameters(layer, x, y)
        with contextlib.suppress(Exception), torch.no_grad():  # as of a layer of one length
            found += _faults_in_bf16(layer, has_padding) if bf16 and layer.task is None else []
        with torch.no_grad():
            found += _faults_of_results(examples)
    return found


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    """Without warnings, and with states of generators that end here."""
    with generators_aside(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seed_generators(0)
        yield


class _Examples:
    """Random ones, and a layer.

    x is [B, L, D], for a whole model tokens [B, L], 0 = padding as in the data, or values
    [B, L, C]; mask is uint8 [B, L], 1 = token. One example alone has no padding, several have all.
    """

    def __init__(
        self, layer: Adapted, has_padding: bool, count: int = _EXAMPLES, longest: int = _LONGEST
    ) -> None:
        self.layer, self.has_padding, task = layer, has_padding, layer.task
        self.max_length = int(task["length"] if task else layer.shape.max_length)
        length = min(self.max_length, longest)
        rows = count * (task["towers"] if task else 1)
        self.lengths = (3 * length // 4 - torch.arange(rows) * (length // 16)).clamp_min(1)
        if not has_padding or count == 1:
            self.lengths[:] = length
        self.mask = (torch.arange(length) < self.lengths[:, None]).to(torch.uint8)
        if task is None:
            self.x = torch.randn(rows, length, layer.shape.dim)
        elif task["values"]:
            self.x = torch.randn(rows, length, task.get("channels", 1)) * self.mask[..., None]
        else:
            self.x = torch.randint(1, task["vocabulary"], (rows, length)) * self.mask

    def output(self, x: torch.Tensor, key: int = 1) -> torch.Tensor:
        context: Context = (False, 0.0, 0.0, False, key, key, 0, 0)
        if not self.has_padding:  # as the trainer calls it
            return self.layer(x, None, None, context)
        return self.layer(x, self.mask[:, : x.shape[1]], self.lengths, context)


def _faults_of_parameters(layer: Adapted, x: torch.Tensor, y: torch.Tensor) -> Iterator[str]:
    known = {id(tensor) for tensor in (*layer.module.parameters(), x)}
    if unknown := _shapes(leaf for leaf in _leaves(y) if id(leaf) not in known):
        yield (
            f"uses parameters that the module does not register, {unknown}: not trained, counted or "
            "saved (a list where torch.nn.ModuleList is meant?)"
        )
    if y.requires_grad:
        torch.autograd.backward(y, torch.randn_like(y))
    held = layer.parameters().values()
    if idle := _shapes(leaf for leaf in held if leaf.grad is None and leaf.numel()):
        yield f"does not use parameters of the module, {idle}: counted, not trained (detached?)"


def _faults_in_bf16(layer: Adapted, has_padding: bool) -> Iterator[str]:
    example = _Examples(layer, has_padding, 1, _LONG)
    y = example.output(example.x)
    share = float((example.output(example.x.bfloat16()).float() - y).norm() / y.norm())
    if share > _SHARE:
        yield (
            f"is {100 * share:.0f} % off in bfloat16 at {y.shape[1]} positions (powers or long sums "
            "under autocast? compute them under torch.autocast(..., enabled=False))"
        )


def _faults_of_results(examples: _Examples) -> Iterator[str]:
    """Of weights far from initial ones: an output scale near 0 would hide what is read."""
    layer = examples.layer
    for weight in layer.parameters().values():
        weight += 0.1 * torch.randn_like(weight)
    y = examples.output(examples.x)
    if not y.isfinite().all():
        return
    if _differ(examples.output(examples.x, key=2), y):
        yield (
            "gives the same examples other results in evaluation (dropout that does not ask "
            "self.training, or state that forward changes?)"
        )
    elif examples.has_padding and _padding_takes_part(examples, y):
        yield (
            "gives tokens other results with other padding (a mask ignored, or inverted?)"
            if layer.takes_mask else "takes no mask: padding takes part"
        )


def _padding_takes_part(examples: _Examples, y: torch.Tensor) -> bool:
    """Whether results at tokens change with the amount of padding, or with the numbers in it."""
    x, there = examples.x, examples.mask.bool()
    is_layer = examples.layer.task is None
    if is_layer:  # a whole model finds zeros in its data's padding
        x = torch.where(there[..., None], x, torch.randn_like(x))
    try:
        z = examples.output(x[:, : int(examples.lengths.max())])
    except Exception:  # a layer of one length
        z = examples.output(x)
    if is_layer:
        there = there[:, : z.shape[1]]
        y, z = y[:, : z.shape[1]][there], z[there]
    return _differ(z, y)


def _differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True for NaN, too."""
    return not bool((one - other).abs().max() <= _SAME * other.abs().max().clamp_min(1e-30))


def _leaves(y: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensors that y has a gradient with respect to."""
    seen, ahead = set(), [y.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            yield leaf
        ahead.extend(following for following, _ in node.next_functions)


def _shapes(tensors: Iterable[torch.Tensor]) -> str:
    shapes = sorted(str(list(tensor.shape)) for tensor in tensors)
    more = f" and {len(shapes) - 3} more" if len(shapes) > 3 else ""
    return "of shape " + ", ".join(shapes[:3]) + more if shapes else ""
