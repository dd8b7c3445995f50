"""The trained model of a run as a torch module: lra.arena.load."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from . import _bridge, _code, _program, data
from ._adapter import generators_aside
from ._program import Error
from .nn import REPLACED, identities, place_tensors


class Predictions(NamedTuple):
    """What a model says of some examples, in their order, on the CPU."""

    classes: torch.Tensor  # int64 [B]
    probabilities: torch.Tensor  # float64 [B, classes]: softmax of the logits


class Model(torch.nn.Module):
    """The model of a run with its trained weights. lra.arena.load() makes it, in evaluation mode.

    predict() takes examples of most kinds; forward() maps tensors to logits, with gradients.
    `folder`, `record`, `checkpoint` and `step` say whose weights these are. Parameters have the
    names of the run's checkpoint. The model stays on its `device` and in float32.
    """

    def __init__(self, folder: Path, checkpoint: str = "", device: str = "cpu") -> None:
        super().__init__()
        _program.load_library()
        _bridge.register()
        self.folder, self.device = folder, torch.device(device)
        with _code.importing(folder):
            self._model = _program.raised(
                torch.classes.lra.TrainedModel, str(folder), checkpoint, device)
        self.record: dict[str, Any] = json.loads((folder / "record.json").read_text())
        self._facts: dict[str, Any] = json.loads(self._model.facts())
        self.checkpoint, self.step = self._facts["checkpoint"], self._facts["step"]
        place_tensors(self, self._model.parameters(), self._model.buffers())
        self._made = identities(self)
        self.eval()

    @property
    def changed_code(self) -> str:
        """Says so if the source of the run's Python class changed since; "" otherwise."""
        return str(self._facts["changed_code"])

    def forward(
        self, tokens: torch.Tensor, lengths: torch.Tensor | None = None, *, key: int | None = None,
        step: int = 0,
    ) -> torch.Tensor:
        """tokens [B, L], or values float32 [B, L, C] -> logits, float32 [B, classes].

        Pairs are [B, 2, L] and have lengths [B, 2]. Without `lengths`, zeros at the end of a row are
        padding, in a task that has any. In training mode dropout is drawn from `key`, by default
        from torch's generator.
        """
        towers, channels = self._facts["towers"], self._facts["channels"]
        dims = 1 + (towers > 1) + 1 + (channels > 0)
        if tokens.dim() != dims or (towers > 1 and tokens.shape[1] != towers):
            shape = "[B, 2, L" if towers > 1 else "[B, L"
            raise ValueError(
                f"tokens have the shape {list(tokens.shape)}; expected {shape}"
                f"{f', {channels}' if channels else ''}]")
        rows = tokens.flatten(0, 1) if towers > 1 else tokens
        if not channels:
            self._check_ids(rows)
            rows = rows.to(torch.int32)
        counts = self._lengths(rows, lengths) if self._facts["padded"] else None
        if key is None:
            key = int(torch.randint(2**62, ()).item()) if self.training else 0
        if identities(self) != self._made:
            raise RuntimeError(REPLACED.format("a loaded model"))
        with generators_aside(self.device):
            logits: torch.Tensor = self._model.forward(rows, counts, self.training, key, step)
        return logits

    def _check_ids(self, rows: torch.Tensor) -> None:
        vocabulary = self._facts["vocabulary"]
        if rows.is_floating_point() or (rows.numel() and (rows.min() < 0 or rows.max() >= vocabulary)):
            raise ValueError(f"expected token ids, whole numbers from 0 to {vocabulary - 1}")

    def _lengths(self, rows: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
        if lengths is not None:
            return lengths.flatten().to("cpu", torch.int32)
        there = (rows != 0).flatten(2).any(2) if rows.dim() > 2 else rows != 0
        places = torch.arange(1, rows.shape[1] + 1, device=rows.device)
        return (there * places).amax(1).to("cpu", torch.int32)

    @torch.no_grad()
    def predict(self, examples: Any, batch_size: int | None = None) -> Predictions:
        """Classes and probabilities of examples, as `lra eval` computes them.

        `examples` are a split or a batch of lra.data, or a list of: texts, for tasks of bytes;
        expressions "[MAX 2 9 ]" of ListOps; arrays of token ids (or of values [L, C]); pictures
        [height, width]; examples of a split; for two towers, pairs of these. A tensor or an array of
        several is taken row by row. Sequences longer than the task's are cut. Raises Error for
        anything else.
        """
        was_training = self.training
        self.eval()
        try:
            logits = self._logits(examples, batch_size or int(self._facts["batch_size"]))
        finally:
            self.train(was_training)
        probabilities = logits.double().softmax(1)
        return Predictions(probabilities.argmax(1), probabilities)

    def _logits(self, examples: Any, batch_size: int) -> torch.Tensor:
        if isinstance(examples, data.Batch):
            batch = [torch.as_tensor(part) for part in examples]
            return self.forward(batch[0], batch[2]).cpu()
        if isinstance(examples, data.Split):
            split = self._split(examples)
            lengths = split.lengths  # in the order of an evaluation, for its batches and bits
            batch_of = functools.partial(split.batch, trim=self._facts["trim"])
        else:
            sequences = [self._sequences(example) for example in _listed(examples)]
            lengths = np.array([len(example[0]) for example in sequences], dtype=np.int64)
            batch_of = functools.partial(self._padded, sequences)
        logits = torch.empty(lengths.size, self._facts["classes"])
        order = np.argsort(lengths, kind="stable")
        for begin in range(0, order.size, batch_size):
            indices = order[begin : begin + batch_size]
            some = data.as_tensors(batch_of(indices))
            logits[indices] = self.forward(some.tokens, some.lengths).cpu()
        return logits

    def _split(self, split: data.Split) -> data.Split:
        """Read as the run reads it."""
        if self.record["config"]["train"]["token_order"] != "given":
            raise Error("the run shuffled the tokens of its examples (train.token_order): "
                        "lra.arena.evaluate evaluates it, predict() does not shuffle")
        return split.cut_to(self._facts["length"])

    def _sequences(self, example: Any) -> tuple[Any, ...]:
        """An array [L] or [L, C] for each tower."""
        if isinstance(example, data.Example):
            example = example.tokens
        towers = self._facts["towers"]
        parts = (example,) if towers == 1 else example
        if towers > 1 and (isinstance(parts, (str, bytes)) or len(parts) != towers):
            raise Error(f"{self.record['task']} has pairs; expected (first, second) for each example")
        return tuple(self._array(part) for part in parts)

    def _array(self, part: Any) -> Any:
        if isinstance(part, (str, bytes)):
            return self._ids_of(part)
        array = np.asarray(part.cpu() if isinstance(part, torch.Tensor) else part)
        channels = self._facts["channels"]
        if channels:
            return array.astype(np.float32).reshape(len(array), -1)
        if array.ndim == 2 and not self._facts["padded"]:
            array = array.reshape(-1)  # a picture, row by row
        if array.ndim != 1 or array.dtype.kind not in "ui":
            raise Error(f"an example is an array of {array.dtype} of shape {list(array.shape)}; "
                        "expected token ids [L], a picture [height, width] or a text")
        return array

    def _ids_of(self, text: str | bytes) -> Any:
        task, settings = self.record["task"], self.record["config"]["task"]
        if task == "listops":
            return data.listops_ids(text if isinstance(text, str) else text.decode())
        if task not in data._BYTE_TASKS and settings.get("input") != "text":
            raise Error(f"{task} does not read texts; expected arrays of token ids")
        raw = text.encode() if isinstance(text, str) else text
        return np.frombuffer(raw, np.uint8).astype(np.int64) + 1

    def _padded(
        self, sequences: Sequence[tuple[Any, ...]], indices: NDArray[np.int64]
    ) -> data.Batch:
        """The sequences of some examples, cut and padded as a split's."""
        facts = self._facts
        shape = data.Task(
            "", facts["length"], facts["vocabulary"], facts["classes"], facts["towers"],
            facts["padded"], facts["channels"])
        views = [view for i in indices for view in sequences[i]]
        if not shape.padded and (wrong := [len(v) for v in views if len(v) != shape.length]):
            raise Error(f"an example has {wrong[0]} positions; expected {shape.length}")
        labels = np.zeros(indices.size, dtype=np.int64)  # unknown
        return data.padded(views, labels, shape, shape.length, trim=facts["trim"])

    def _apply(self, fn: Any, recurse: bool = True) -> Model:
        probe = fn(torch.empty(0, device=self.device))
        if probe.device != self.device or probe.dtype != torch.float32:
            raise Error("a loaded model stays where it is, in float32; load it again with "
                        f'lra.arena.load("{self.folder}", device="{probe.device}")')
        return self

    def __reduce__(self) -> Any:
        return _reload, (self.folder, self.checkpoint, str(self.device), self.state_dict())

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return _reload(self.folder, self.checkpoint, str(self.device), self.state_dict())

    def __repr__(self) -> str:
        total = sum(parameter.numel() for parameter in self.parameters())
        return (f"<lra.arena.Model {self.record['model_title']} on {self.record['task']}, "
                f"{total:,} parameters, step {self.step:,} of {self.folder}, on {self.device}>")


def _reload(folder: Path, checkpoint: str, device: str, state: Mapping[str, Any]) -> Model:
    made = Model(folder, checkpoint, device)
    made.load_state_dict(state)
    return made


def _listed(examples: Any) -> Iterator[Any]:
    if isinstance(examples, (str, bytes, data.Example)):
        raise Error("expected a list of examples, also for one: [example]")
    return iter(examples)
