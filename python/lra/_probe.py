"""Doubts about a user's class: mistakes that no figure of its run would show."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ._adapter import Adapted, Context

_EXAMPLES, _LONGEST = 3, 256
_FAR = 4096  # positions of the one example that a cut behind _LONGEST shows in
_TOKENS = 32
_TRIM = 32  # the trainer pads the rows of a call to a multiple of it
_SAME = 1e-3  # of the largest output
_FADED = 1e-35  # of a gradient: the next ones are below float32
_REMEMBERS = "remembers earlier batches in evaluation (state that forward changes?)"
_UNSAVED = (
    "computes in evaluation with what it kept of a batch in training outside its parameters and "
    "buffers: no checkpoint holds it"
)
Make = Callable[[int], Adapted]


def doubts(make: Make, *, has_padding: bool = True) -> list[str]:
    """Predicates of "forward of CLASS", up to where it fails on random examples.

    make(0) makes the layer with its own seed at each call, other numbers with other seeds.
    """
    found: list[str] = []
    with _aside(), contextlib.suppress(Exception):  # the trainer meets it on real data, and says so
        probe = _Probe(make, has_padding=has_padding)
        if not probe.layer.takes_context:  # as layers of lra.nn do
            found.extend(probe.layer.misspelt)
            for doubt in probe.found():
                found.append(doubt)
    return found


@functools.lru_cache(1)
def padding_takes_part(make: Make) -> bool:
    """False if no result depends on padding, as in a causal layer. True if the layer fails."""
    found: list[bool] = []
    with _aside(), contextlib.suppress(Exception), torch.no_grad():
        probe = _Probe(make)
        # An output scale that begins at or near zero hides what the layer reads.
        for layer in (probe.layer, probe.moved_layer()):
            probe.layer = layer
            probe.compare_with(probe.output(probe.x))
            if probe.y.isfinite().all():
                found.append(probe.padding_takes_part())
    return any(found) or not found


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    """Without warnings, and with a state of torch's generator that ends here."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        yield


class _Probe:
    """A layer and random examples.

    x is [B, L, D], for a whole model tokens [B, L], 0 = padding as in the data, or values
    [B, L, C]; the first row has no padding, and the lengths are not sorted. `other` is another x
    without padding. mask is uint8 [B, L], 1 = token.
    """

    def __init__(
        self, make: Make, *, has_padding: bool = True, longest: int = _LONGEST,
        examples: int = _EXAMPLES,
    ) -> None:
        self.make, self.layer = make, make(0)
        shape, task = self.layer.shape, self.layer.task
        self.max_length = int(shape.max_length if task is None else task["length"])
        longest = min(self.max_length, longest)
        self.towers = task["towers"] if task else 1
        half = longest // 2 // _TRIM * _TRIM or longest // 2
        lengths = torch.tensor([longest, half, 3 * longest // 4 - 1])[:examples]
        shorter = torch.arange(self.towers).repeat(examples) * (longest // 16)
        self.lengths = (lengths.repeat_interleave(self.towers) - shorter).clamp_min(1)
        self.has_padding = has_padding
        if not has_padding or examples == 1:
            self.lengths[:] = longest
        self.mask = (torch.arange(longest) < self.lengths[:, None]).to(torch.uint8)
        rows = len(self.lengths)
        if task is None or task["values"]:
            width = task.get("channels", 1) if task else shape.dim
            self.x, self.other = torch.randn(2, rows, longest, width)
        else:
            self.x, self.other = torch.randint(1, task["vocabulary"], (2, rows, longest))
            self.x = self.x * self.mask

    def output(
        self, x: torch.Tensor, *, layer: Adapted | None = None, rows: slice = slice(None),
        length: int | None = None, key: int = 1, mask: torch.Tensor | None = None,
        training: bool = False,
    ) -> torch.Tensor:
        context: Context = (training, 0.0, 0.0, False, key, key, 0, 0)
        mask, lengths = (self.mask if mask is None else mask)[rows, :length], self.lengths[rows]
        layer, x = layer or self.layer, x[rows, :length]
        if not self.has_padding:  # as the trainer calls it
            return layer(x, None, None, context)
        return layer(x, mask, lengths, context)

    def compare_with(self, y: torch.Tensor) -> None:
        self.y, self.largest = y, y.abs().max().clamp_min(1e-30)

    def moved_layer(self) -> Adapted:
        """One whose weights are far from small initial ones."""
        layer = self.make(0)
        with torch.no_grad():
            for weight in layer.parameters().values():
                weight += 0.1 * torch.randn_like(weight)
        return layer

    def found(self) -> Iterator[str]:
        x = self.x.clone().requires_grad_(self.x.is_floating_point())
        y = self.output(x)
        yield from self._doubts_of_gradients(x, y)
        with torch.no_grad():
            self.compare_with(y)
            if not y.any():  # an output layer that begins at zero
                return
            if not y.isfinite().all():
                yield "returns numbers that are not finite (a row that attends to nothing?)"
                return
            if self._differ(self.output(self.x), y):
                yield _REMEMBERS
                return
            if self._differ(self.output(self.x, key=2), y):
                yield "is random in evaluation (a dropout that does not ask self.training?)"
                return
            doubts_of_seeds = list(self._doubts_of_seeds())
            yield from doubts_of_seeds or self._doubts_of_memory()
            if any(self._differs_alone(example) for example in range(_EXAMPLES)):
                yield (
                    "gives an example another output beside others (batch and length confused, or "
                    "examples sorted and not put back?)"
                )
                return
            if self.layer.task:
                yield from self._doubts_of_logits()
                yield from self._doubts_of_tokens()
            doubts_of_padding = list(self._doubts_of_padding()) if self.has_padding else []
            yield from doubts_of_padding or list(self._doubts_of_reach()) or self._far_doubts()
            self.output(self.x, training=True)
            parts = self.layer.module.modules()
            if any(isinstance(part, torch.nn.Dropout) and not part.training for part in parts):
                yield "switches dropout off in training (a call of eval()?)"

    def _differ(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        return bool((one - other).abs().max() > _SAME * self.largest)

    def _doubts_of_memory(self) -> Iterator[str]:
        """Of a batch before this one. Batch norm keeps its statistics in buffers."""
        other = self.other if self.x.is_floating_point() else self.other * self.mask
        for training, doubt in ((False, _REMEMBERS), (True, _UNSAVED)):
            layer = self.make(0)
            before = [tensor.clone() for tensor in _saved(layer)]
            self.output(other, layer=layer, training=training)
            now = _saved(layer)
            same = len(now) == len(before) and all(map(torch.equal, before, now))
            if training and not same:
                return
            if self._differ(self.output(self.x, layer=layer), self.y):
                yield doubt
                return

    def _differs_alone(self, example: int, length: int | None = None) -> bool:
        """Whether the example alone, padded to this length, has another result at its tokens."""
        rows = slice(example * self.towers, (example + 1) * self.towers)
        alone, beside = self.output(self.x, rows=rows, length=length), self.y[example : example + 1]
        if self.layer.task is None:
            alone, beside = (y[:, : int(self.lengths[example])] for y in (alone, beside))
        return self._differ(alone, beside)

    def _doubts_of_seeds(self) -> Iterator[str]:
        if self._differ(self.output(self.x, layer=self.make(0)), self.y):
            yield "differs between two layers of one seed (numbers of another generator than torch's?)"
        mine, other = (list(layer.parameters().values()) for layer in (self.layer, self.make(1)))
        same = all(torch.equal(weight, again) for weight, again in zip(mine, other, strict=True))
        if same and any(weight.dim() > 1 for weight in mine):
            yield "begins with the same weights for every seed (loaded, or a seed of its own?)"

    def _doubts_of_logits(self) -> Iterator[str]:
        if self.y.min() < 0 or self.y.max() > 1:
            return
        if (self.y.sum(1) - 1).abs().max() < _SAME:
            yield "returns probabilities; expected logits, without softmax"
            return
        layer = self.make(0)
        for weight in layer.parameters().values():
            weight *= 10
        y = self.output(self.x, layer=layer)
        if y.min() >= 0 and y.max() <= 1 and y.min() < y.max():
            yield "stays between 0 and 1 with large weights; expected logits, without sigmoid"

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

    def padding_takes_part(self) -> bool:
        there = self.mask.bool()
        where = there if self.x.dim() == 2 else there[..., None]
        y = self.output(torch.where(where, self.x, self.other))
        tokens = slice(None) if self.layer.task else there
        changed = self._differ(y[tokens], self.y[tokens])
        if self.x.is_floating_point():
            return changed
        # A model may know padding by its token, so that only the amount of it must not count.
        return changed and self._amount_of_padding_counts() is not False

    def _amount_of_padding_counts(self) -> bool | None:
        """None if the layer takes no other length than the longest."""
        longest = int(self.lengths[self.towers])  # of the second example
        length = -(-longest // _TRIM) * _TRIM
        try:
            return self._differs_alone(1, length if length < self.x.shape[1] else longest)
        except Exception:
            return None

    def _doubts_of_padding(self) -> Iterator[str]:
        if self.padding_takes_part():
            if self.layer.takes_mask:  # otherwise the record says so
                yield "reads padding in spite of its mask (ignored, or inverted?)"
        elif self.layer.takes_mask and self._reads_nothing_but_padding():
            yield "reads nothing but padding (an inverted mask?)"
        elif self._amount_of_padding_counts():
            yield (
                "gives a sequence another result with more padding after it (computed over the "
                "padded length?)"
            )

    def _reads_nothing_but_padding(self) -> bool:
        there, opposite = self.mask.bool(), 1 - self.mask
        return (
            self.layer.task is None
            and not self._differ(self.output(self.other)[there], self.y[there])
            and self._differ(
                self.output(self.other, mask=opposite), self.output(self.x, mask=opposite)
            )
        )

    def _doubts_of_reach(self) -> Iterator[str]:
        """Of changes in half of the positions of the first example, which has no padding.

        The cut is in no block's end. An effect below float32, as of a state that decays, has a
        gradient.
        """
        layer, length, changed = self.moved_layer(), self.x.shape[1], []
        before = self.output(self.x, layer=layer)[0]
        self.largest = before.abs().max().clamp_min(1e-30)
        if not before.isfinite().all():
            return
        half = (length // 2 - 1) | 1
        for begin, end in ((0, half), (half, length)):
            y = self._output_with_others(layer, begin, end)
            if not self._differ(y, before):
                if not self._has_gradient(layer, begin, end):
                    which = "first" if begin == 0 else "second"
                    yield f"does not read the {which} half of {length} positions"
                    return
            elif self.layer.task is None:
                outside = torch.cat([torch.arange(begin), torch.arange(end, length)])
                changed.append(self._differ(y[outside], before[outside]))
        if changed == [False, False]:
            yield "computes each position apart from all others: it mixes no sequence"
        elif self.layer.task is None and self._reads_far_from_beginning_alone(layer, before):
            yield "reads from afar only what is at the beginning (keys or values that are cut?)"
        elif self.max_length == length:  # otherwise a longer example shows it
            yield from self._doubts_of_end(layer, before)

    def _reads_far_from_beginning_alone(self, layer: Adapted, before: torch.Tensor) -> bool:
        """Whether the first quarter reaches the last, and the third nothing beyond its neighbors."""
        quarter, near = len(before) // 4, len(before) // 8

        def reached(begin: int, end: int) -> torch.Tensor:
            changes = (self._output_with_others(layer, begin, end) - before).abs().amax(1)
            return changes > _SAME * self.largest

        third = reached(2 * quarter + near, 3 * quarter)  # keys may be cut at the half
        far = torch.cat([third[: 2 * quarter], third[3 * quarter + near :]])
        return bool(reached(0, quarter)[3 * quarter + near :].any() and not far.any())

    def _far_doubts(self) -> list[str]:
        """Of one example that is as long as those of the task, if they are longer than this one's."""
        if self.max_length == self.x.shape[1]:
            return []
        with contextlib.suppress(Exception):  # as of a layer of one length
            far = _Probe(self.make, has_padding=self.has_padding, longest=_FAR, examples=1)
            layer = far.moved_layer()
            return list(far._doubts_of_end(layer, far.output(far.x, layer=layer)[0]))
        return []

    def _doubts_of_end(self, layer: Adapted, before: torch.Tensor) -> Iterator[str]:
        """Of any change of the first example's outputs by its last tenth: a mean hardly changes."""
        length = self.x.shape[1]
        count = -(-length // 10)
        begin = length - count
        if (
            before.isfinite().all()
            and torch.equal(self._output_with_others(layer, begin, length), before)
            and not self._has_gradient(layer, begin, length)
        ):
            yield f"does not read the last {count} of {length} positions (cut?)"

    def _output_with_others(self, layer: Adapted, begin: int, end: int) -> torch.Tensor:
        """The first example's with other tokens at these positions."""
        x = self.x.clone()
        x[: self.towers, begin:end] = self.other[: self.towers, begin:end]
        return self.output(x, layer=layer)[0]

    def _has_gradient(self, layer: Adapted, begin: int, end: int) -> bool:
        """Of the first result, with respect to these positions of x or of embedded tokens."""
        x, rows, length = self.x.clone(), len(self.x), self.x.shape[1]
        read: list[tuple[torch.Tensor, int]] = []  # with the dimension of the positions

        def replace(_: torch.nn.Module, inputs: tuple[Any, ...], y: torch.Tensor) -> Any:
            shape: tuple[int, ...] = inputs[0].shape if inputs else ()
            if len(shape) < 2 or shape[0] not in (rows, rows // self.towers) or shape[-1] != length:
                return None
            leaf = y.detach().requires_grad_()
            read.append((leaf, len(shape) - 1))
            return leaf * 1

        if x.is_floating_point():
            read.append((x.requires_grad_(), 1))
        parts = () if x.is_floating_point() else layer.module.modules()
        embeddings = [part for part in parts if isinstance(part, torch.nn.Embedding)]
        hooks = [part.register_forward_hook(replace) for part in embeddings]
        with torch.enable_grad():
            y = self.output(x, layer=layer)[0]
            if y.requires_grad:
                torch.autograd.backward(y, torch.randn_like(y))
        for hook in hooks:
            hook.remove()
        return any(
            leaf.grad is not None and _reaches(leaf.grad.movedim(dim, 0), begin, end)
            for leaf, dim in read
        )

    def _doubts_of_gradients(self, x: torch.Tensor, y: torch.Tensor) -> Iterator[str]:
        """Parameters that y is computed from and the module does not hold, and the other way round."""
        held = [*self.layer.parameters().values()]
        if not held and any(True for _ in self.layer.module.parameters()):
            yield "trains none of its parameters (requires_grad is False)"
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
        elif still := _shapes(self._still_parameters(x)):
            yield (
                f"passes only zeros as the gradient of parameters, {still}: they are not trained "
                "(a sign, round or argmax after them, or a factor that stays 0?)"
            )

    def _still_parameters(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Those whose gradient is 0, not because another parameter begins at 0."""
        layer = self.moved_layer()
        y = self.output(x, layer=layer)
        if not y.requires_grad or not y.isfinite().all():
            return []
        torch.autograd.backward(y, torch.randn_like(y))
        weights = layer.parameters().values()
        return [leaf for leaf in weights if leaf.grad is not None and not leaf.grad.any()]


def _saved(layer: Adapted) -> list[torch.Tensor]:
    return [*layer.module.parameters(), *layer.module.buffers()]


def _reaches(gradient: torch.Tensor, begin: int, end: int) -> bool:
    """Whether [L, ...] reaches the first or the last positions, or fades on its way to them."""
    sizes = gradient.abs().flatten(1).amax(1)
    if sizes[begin:end].any():
        return True
    there = sizes[sizes > 0]
    return bool(len(there) and there[0 if begin == 0 else -1] < _FADED)


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
