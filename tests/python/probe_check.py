"""The doubts about layers that compute something else than their authors meant."""

import os
import pathlib
import sys
import unittest

import torch
import torch.utils.checkpoint

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("LRA_BUILD", str(pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent))

from lra._adapter import Shape, adapt
from lra._probe import doubts

TASK = {"vocabulary": 17, "classes": 10, "length": 64, "towers": 1, "values": False}


class Linear(torch.nn.Module):
    """Nothing to doubt: a running sum of tokens, with dropout."""

    def __init__(self, dim):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(dim, dim), torch.nn.Dropout(0.5))

    def forward(self, x, mask):
        return self.inner((x * mask.unsqueeze(-1)).cumsum(1))


class TorchAttention(torch.nn.Module):
    def __init__(self, dim, batch_first=True):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(dim, 2, batch_first=batch_first)

    def forward(self, x, key_padding_mask=None):
        return self.attention(x, x, x, key_padding_mask=key_padding_mask, need_weights=False)[0]


class Confused(TorchAttention):
    """Attends over the examples of a batch."""

    def __init__(self, dim):
        super().__init__(dim, batch_first=False)

    def forward(self, x):
        return super().forward(x)


class Drops(Linear):
    def forward(self, x, mask):
        return torch.nn.functional.dropout(super().forward(x, mask))


class Remembers(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        self.calls = 0

    def forward(self, x, mask):
        self.calls += 1
        return super().forward(x, mask) * self.calls


class Unseeded(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        self.scale = int.from_bytes(os.urandom(4), "little") / 2**32

    def forward(self, x, mask):
        return super().forward(x, mask) * (1 + self.scale)


class Hidden(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        self.layers = [torch.nn.Linear(dim, dim)]

    def forward(self, x, mask):
        return self.layers[0](super().forward(x, mask))


class Detached(Linear):
    def forward(self, x, mask):
        return x + super().forward(x, mask).detach()


class Inverted(Linear):
    def forward(self, x, mask):
        return super().forward(x, ~mask)


class Unmasked(Linear):
    def forward(self, x, mask):
        return super().forward(x.flip(1), torch.ones_like(mask)).flip(1)


class Opposite(TorchAttention):
    """The mask of torch is True for padding."""

    def forward(self, x, mask):
        return super().forward(x, mask)


class Infinite(Linear):
    def forward(self, x, mask):
        return super().forward(x, mask) / mask.unsqueeze(-1)


class Short(Linear):
    def forward(self, x, mask):
        y = super().forward(x[:, :16], mask[:, :16])
        return torch.nn.functional.pad(y, (0, 0, 0, x.shape[1] - 16))


class Pointwise(torch.nn.Linear):
    def __init__(self, dim):
        super().__init__(dim, dim)

    def forward(self, x, mask):
        return super().forward(x * mask.unsqueeze(-1))


class WithoutInput(Linear):
    def forward(self, x, mask):
        return super().forward(x.detach(), mask)


class Zero(Linear):
    def forward(self, x, mask):
        return 0 * super().forward(x, mask)


class BeginsAtZero(Linear):
    """Nothing to doubt."""

    def __init__(self, dim):
        super().__init__(dim)
        self.gate = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, x, mask):
        return self.gate * super().forward(x, mask)


class ZeroWeight(Linear):
    """Nothing to doubt."""

    def __init__(self, dim):
        super().__init__(dim)
        torch.nn.init.zeros_(self.inner[0].weight)


class SmallScale(BeginsAtZero):
    """Nothing to doubt: a residual layer with a small scale."""

    def __init__(self, dim):
        super().__init__(dim)
        torch.nn.init.constant_(self.gate, 1e-5)

    def forward(self, x, mask):
        return x * mask.unsqueeze(-1) + super().forward(x, mask)


class Recomputed(Linear):
    """Nothing to doubt."""

    def forward(self, x, mask):
        return torch.utils.checkpoint.checkpoint(super().forward, x, mask, use_reentrant=True)


class Blocks(Linear):
    """Nothing to doubt: sums within blocks of 16."""

    def forward(self, x, mask):
        blocks = (x * mask.unsqueeze(-1)).unflatten(1, (-1, 16))
        return self.inner(blocks.cumsum(2).flatten(1, 2))


class Constant(Linear):
    def forward(self, x, mask):
        return torch.zeros_like(x)


class SwitchedOff(Linear):
    def forward(self, x, mask):
        return self.eval().inner((x * mask.unsqueeze(-1)).cumsum(1))


class Loaded(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        for parameter in self.inner.parameters():
            torch.nn.init.ones_(parameter)


class Fails(Linear):
    def forward(self, x, mask):
        raise ValueError("no")


class Bag(torch.nn.Module):
    """A whole model."""

    def __init__(self, vocab_size, num_classes):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab_size, 8)
        self.head = torch.nn.Linear(8, num_classes)

    def forward(self, tokens):
        return self.head(self.embedding(tokens).mean(1))


class Probabilities(Bag):
    def forward(self, tokens):
        return super().forward(tokens).softmax(-1)


class FirstTokens(Bag):
    def forward(self, tokens):
        return super().forward(tokens[:, :8])


class Clamps(Bag):
    def forward(self, tokens):
        return super().forward(tokens.clamp(max=9))


class Wraps(Bag):
    def forward(self, tokens):
        return super().forward(tokens % 10)


class Doubts(unittest.TestCase):
    def found(self, kind, task=None):
        shape = Shape(dim=16, heads=2, head_dim=8, max_length=64, layer=0, task=task)

        def make(other):
            with torch.random.fork_rng():
                torch.manual_seed(5 + other)
                return adapt(kind, {}, shape)

        return doubts(make)

    def test_each_mistake_is_named_alone(self):
        for kind, said in (
            (Confused, "another output beside others"), (Drops, "is random in evaluation"),
            (Remembers, "remembers earlier batches"), (Unseeded, "two layers of one seed"),
            (Hidden, "of shape [16, 16], [16]: not trained, counted or saved"),
            (Detached, "of shape [16, 16], [16]: counted, not trained"), (Inverted, "reads nothing but padding"),
            (Unmasked, "reads padding in spite of its mask"), (Opposite, "reads nothing but padding"),
            (Infinite, "are not finite"),
            (Short, "does not read the second half of 64 positions"),
            (Pointwise, "each position apart"), (WithoutInput, "no gradient to its input"),
            (Zero, "returns zeros"), (SwitchedOff, "switches dropout off"), (Loaded, "for every seed"),
        ):
            with self.subTest(kind.__name__):
                self.assertEqual([said in text for text in self.found(kind)], [True], self.found(kind))
        self.assertIn("returns zeros whatever its parameters are", self.found(Constant))
        for kind, said in ((Probabilities, "expected logits"), (FirstTokens, "the second half of 64 positions"),
                           (Clamps, "gives 8 of 16 tokens"), (Wraps, "gives 12 of 16 tokens")):
            self.assertEqual([said in text for text in self.found(kind, TASK)], [True], self.found(kind, TASK))

    def test_others_have_none(self):
        for kind, task in ((Linear, None), (TorchAttention, None), (BeginsAtZero, None), (ZeroWeight, None),
                           (SmallScale, None), (Recomputed, None), (Blocks, None), (Fails, None), (Bag, TASK),
                           (Bag, {**TASK, "towers": 2})):
            with self.subTest(kind.__name__):
                self.assertEqual(self.found(kind, task), [])

    def test_the_generator_of_torch_stays_where_it_was(self):
        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)
        self.found(Linear)
        self.assertEqual(torch.rand(1), expected)


if __name__ == "__main__":
    unittest.main()
