"""Doubts about a user's class: mistakes that no figure of its run would show."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator

import torch

from ._adapter import Adapted, Context

_EXAMPLES, _LONGEST = 3, 256
_TOKENS = 32
_SAME = 1e-3  # of the largest output
Make = Callable[[int], Adapted]


def doubts(make: Make) -> list[str]:
    """Predicates of "forward of CLASS", up to where it fails on random examples of three lengths.

    make(0) makes the layer with its own seed at each call, other numbers with other seeds.
    """
    found: list[str] = []
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        try:
            probe = _Probe(make)
            if not probe.layer.takes_context:  # as layers of lra.nn do
                for doubt in probe.found():
                    found.append(doubt)
        except Exception:  # the trainer meets it on real data, and says so
            pass
    return found


class _Probe:
    """A layer and random examples.

    x is [B, L, D], for a whole model tokens [B, L] or values [B, L, 1]; the first row has no
    padding. mask is uint8 [B, L], 1 = token.
    """

    def __init__(self, make: Make) -> None:
        self.make, self.layer = make, make(0)
        shape, task = self.layer.shape, self.layer.task
        longest = min(shape.max_length if task is None else task["length"], _LONGEST)
        self.towers = task["towers"] if task else 1
        rows = _EXAMPLES * self.towers
        if task is None or task["values"]:
            self.x = torch.randn(rows, longest, 1 if task else shape.dim)
        else:
            self.x = torch.randint(1, task["vocabulary"], (rows, longest))
        self.lengths = torch.tensor([longest - row * longest // (2 * rows) for row in range(rows)])
        self.mask = (torch.arange(longest) < self.lengths[:, None]).to(torch.uint8)

    def output(
        self, x: torch.Tensor, *, layer: Adapted | None = None, rows: int | None = None,
        key: int = 1, mask: torch.Tensor | None = None, training: bool = False,
    ) -> torch.Tensor:
        context: Context = (training, 0.0, 0.0, False, key, key, 0, 0)
        mask = self.mask if mask is None else mask
        return (layer or self.layer)(x[:rows], mask[:rows], self.lengths[:rows], context)

    def found(self) -> Iterator[str]:
        x = self.x.clone().requires_grad_(self.x.is_floating_point())
        y = self.output(x)
        yield from self._doubts_of_gradients(x, y)
        with torch.no_grad():
            self.y, self.largest = y, y.abs().max().clamp_min(1e-30)
            if not y.any():  # an output layer that begins at zero
                return
            if not y.isfinite().all():
                yield "returns numbers that are not finite (a row that attends to nothing?)"
                return
            if self._differ(self.output(self.x), y):
                yield "remembers earlier batches in evaluation (state that forward changes?)"
                return
            if self._differ(self.output(self.x, key=2), y):
                yield "is random in evaluation (a dropout that does not ask self.training?)"
                return
            yield from self._doubts_of_seeds()
            if self._differ(self.output(self.x, rows=self.towers), y[:1]):
                yield "gives an example another output beside others (batch and length confused?)"
                return
            if self.layer.task:
                if (y.sum(1) - 1).abs().max() < _SAME and y.min() >= 0:
                    yield "returns probabilities; expected logits, without softmax"
                yield from self._doubts_of_tokens()
            yield from list(self._doubts_of_mask()) or self._doubts_of_reach()
            self.output(self.x, training=True)
            parts = self.layer.module.modules()
            if any(isinstance(part, torch.nn.Dropout) and not part.training for part in parts):
                yield "switches dropout off in training (a call of eval()?)"

    def _differ(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        return bool((one - other).abs().max() > _SAME * self.largest)

    def _doubts_of_seeds(self) -> Iterator[str]:
        if self._differ(self.output(self.x, layer=self.make(0)), self.y):
            yield "differs between two layers of one seed (numbers of another generator than torch's?)"
        mine, other = (list(layer.parameters().values()) for layer in (self.layer, self.make(1)))
        same = all(torch.equal(weight, again) for weight, again in zip(mine, other, strict=True))
        if same and any(weight.dim() > 1 for weight in mine):
            yield "begins with the same weights for every seed (loaded, or a seed of its own?)"

    def _doubts_of_tokens(self) -> Iterator[str]:
        """Of the tokens with the lowest and the highest ids, each at half of the positions."""
        if self.x.is_floating_point():
            return
        assert self.layer.task
        ids = range(1, self.layer.task["vocabulary"])
        tried = sorted({*ids[:_TOKENS], *ids[-_TOKENS:]})
        x = self.x[:1].repeat(len(tried), 1)
        x[:, ::2] = torch.tensor(tried)[:, None]
        x = x.repeat_interleave(self.towers, 0)
        mask, lengths = torch.ones_like(x, dtype=torch.uint8), self.lengths[:1].repeat(len(x))
        y = self.layer(x, mask, lengths, (False, 0.0, 0.0, False, 1, 1, 0, 0))
        near = torch.cdist(y.double(), y.double()) <= 1e-6 * y.abs().max()
        if same := int((near.sum(0) > 1).sum()):
            yield (
                f"gives {same} of {len(tried)} tokens the output of another token (ids clamped, or "
                "taken modulo a smaller vocabulary?)"
            )

    def _doubts_of_mask(self) -> Iterator[str]:
        if self.layer.task or not self.layer.takes_mask:
            return
        there, flipped = self.mask.bool(), self.x.flip(0, 1)
        other_padding = torch.where(there[..., None], self.x, flipped)
        if self._differ(self.output(other_padding)[there], self.y[there]):
            yield "reads padding in spite of its mask (ignored, or inverted?)"
        elif not self._differ(self.output(flipped)[there], self.y[there]) and self._differ(
            self.output(flipped, mask=1 - self.mask), self.output(self.x, mask=1 - self.mask)
        ):
            yield "reads nothing but padding (an inverted mask?)"

    def _doubts_of_reach(self) -> Iterator[str]:
        """Of changes in half of the positions of the first example, which has no padding.

        The layer is one whose weights are far from small initial ones. The cut is in no block's end.
        """
        layer, length, changed = self.make(0), self.x.shape[1], []
        for weight in layer.parameters().values():
            weight += 0.1 * torch.randn_like(weight)
        before = self.output(self.x, layer=layer)[0]
        self.largest = before.abs().max().clamp_min(1e-30)
        if not before.isfinite().all():
            return
        half = (length // 2 - 1) | 1
        for begin, end in ((0, half), (half, length)):
            x = self.x.clone()
            x[: self.towers, begin:end] = self.x.flip(0)[: self.towers, begin:end]
            y = self.output(x, layer=layer)[0]
            if not self._differ(y, before):
                which = "first" if begin == 0 else "second"
                yield f"does not read the {which} half of {length} positions"
            elif self.layer.task is None:
                outside = torch.cat([torch.arange(begin), torch.arange(end, length)])
                changed.append(self._differ(y[outside], before[outside]))
        if changed == [False, False]:
            yield "computes each position apart from all others: it mixes no sequence"

    def _doubts_of_gradients(self, x: torch.Tensor, y: torch.Tensor) -> Iterator[str]:
        """Parameters that y is computed from and the module does not hold, and the other way round."""
        held = [*self.layer.parameters().values()]
        known = {id(tensor) for tensor in (*self.layer.module.parameters(), x)}
        if unknown := _shapes(leaf for leaf in _leaves(y) if id(leaf) not in known):
            yield (
                f"uses parameters that the module does not register, {unknown}: not trained, counted "
                "or saved (a list where torch.nn.ModuleList is meant?)"
            )
        if y.requires_grad:
            torch.autograd.backward(y, torch.randn_like(y))
        if idle := _shapes(leaf for leaf in held if leaf.grad is None):
            yield f"does not use parameters of the module, {idle}: counted, not trained (detached?)"
        if x.requires_grad and x.grad is None:
            yield "passes no gradient to its input (detached?)"
        if not y.any() and not any(leaf.grad is not None and leaf.grad.any() for leaf in held):
            yield "returns zeros whatever its parameters are"


def _leaves(y: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that y has a gradient with respect to."""
    found, seen, ahead = [], set(), [y.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            found.append(leaf)
        ahead.extend(following for following, _ in node.next_functions)
    return found


def _shapes(tensors: Iterable[torch.Tensor]) -> str:
    shapes = sorted(str(list(tensor.shape)) for tensor in tensors)
    more = f" and {len(shapes) - 3} more" if len(shapes) > 3 else ""
    return "of shape " + ", ".join(shapes[:3]) + more if shapes else ""
