"""What a user's class does that no figure of its run would show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch

from ._adapter import Adapted, Context

_EXAMPLES, _LONGEST = 3, 256
_SAME = 1e-3  # of the largest output


def doubts(make: Callable[[], Adapted]) -> list[str]:
    """Predicates of "forward of CLASS"; none if it fails on random examples of three lengths.

    `make` makes the layer with the same seed at each call.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            layer = make()
            return list(_found(layer, make, *_examples(layer)))
        except Exception:  # the trainer meets it on real data, and says so
            return []


def _examples(layer: Adapted) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x [B, L, D], mask uint8 [B, L], lengths [B]; x is tokens [B, L] or values [B, L, 1] for a whole model."""
    task = layer.task
    longest = min(layer.shape.max_length if task is None else task["length"], _LONGEST)
    rows = _EXAMPLES * (task["towers"] if task else 1)
    if task is None or task["values"]:
        x = torch.randn(rows, longest, 1 if task else layer.shape.dim)
    else:
        x = torch.randint(1, task["vocabulary"], (rows, longest))
    lengths = torch.tensor([longest - row * longest // (2 * rows) for row in range(rows)])
    return x, (torch.arange(longest) < lengths[:, None]).to(torch.uint8), lengths


def _found(
    layer: Adapted, make: Callable[[], Adapted], x: torch.Tensor, mask: torch.Tensor,
    lengths: torch.Tensor,
) -> Iterator[str]:
    def output(
        layer: Adapted, x: torch.Tensor, rows: int | None = None, key: int = 1,
        mask: torch.Tensor = mask,
    ) -> torch.Tensor:
        context: Context = (False, 0.0, 0.0, False, key, key, 0, 0)
        return layer(x[:rows], mask[:rows], lengths[:rows], context)

    y = output(layer, x)
    yield from _doubts_of_parameters(y, layer)
    with torch.no_grad():
        largest = y.abs().max().clamp_min(1e-30)

        def differ(one: torch.Tensor, other: torch.Tensor) -> bool:
            return bool((one - other).abs().max() > _SAME * largest)

        if differ(output(layer, x), y):
            yield "remembers earlier batches in evaluation (state that forward changes?)"
            return
        if differ(output(layer, x, key=2), y):
            yield "is random in evaluation (a dropout that does not ask self.training?)"
            return
        if differ(output(make(), x), y):
            yield "differs between two layers of one seed (numbers of another generator than torch's?)"
        if differ(output(layer, x, layer.task["towers"] if layer.task else 1), y[:1]):
            yield "gives an example another output beside others (batch and length confused?)"
        if layer.task:
            if (y.sum(1) - 1).abs().max() < _SAME and y.min() >= 0:
                yield "returns probabilities; expected logits, without softmax"
        elif layer.takes_mask:
            there, flipped = mask.bool(), x.flip(0, 1)
            other_padding = torch.where(there[..., None], x, flipped)
            if differ(output(layer, other_padding)[there], y[there]):
                yield "reads padding in spite of its mask (ignored, or inverted?)"
            elif not differ(output(layer, flipped)[there], y[there]) and differ(
                output(layer, flipped, mask=1 - mask), output(layer, x, mask=1 - mask)
            ):
                yield "reads nothing but padding (an inverted mask?)"


def _doubts_of_parameters(y: torch.Tensor, layer: Adapted) -> Iterator[str]:
    """Parameters that y is computed from and that the module does not hold, and the other way round."""
    used, seen, ahead = {}, set(), [y.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            used[id(leaf)] = leaf
        ahead.extend(following for following, _ in node.next_functions)
    held = {id(tensor): tensor for tensor in layer.parameters().values()}
    if unknown := _shapes(used[key] for key in used.keys() - held.keys()):
        yield (
            f"uses parameters that the module does not register, {unknown}: not trained, counted or "
            "saved (a list where torch.nn.ModuleList is meant?)"
        )
    if idle := _shapes(held[key] for key in held.keys() - used.keys()):
        yield f"does not use parameters of the module, {idle}: counted, not trained (detached?)"


def _shapes(tensors: Iterable[torch.Tensor]) -> str:
    shapes = sorted(str(list(tensor.shape)) for tensor in tensors)
    more = f" and {len(shapes) - 3} more" if len(shapes) > 3 else ""
    return "of shape " + ", ".join(shapes[:3]) + more if shapes else ""
