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
from lra._probe import doubts, padding_takes_part

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


class KeepsFirstMean(Linear):
    def forward(self, x, mask):
        self.mean = getattr(self, "mean", x.detach().mean())
        return super().forward(x, mask) * self.mean


class KeepsMeanOfTraining(Linear):
    mean = 0.0

    def forward(self, x, mask):
        if self.training:
            self.mean = 100 * x.detach().mean()
        return super().forward(x, mask) + self.mean


class BatchNorm(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        self.norm = torch.nn.BatchNorm1d(dim)

    def forward(self, x, mask):
        return self.norm(super().forward(x, mask).transpose(1, 2)).transpose(1, 2)


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


class CausalLSTM(torch.nn.Module):
    """Nothing to doubt: padding comes after all tokens."""

    def __init__(self, dim):
        super().__init__()
        self.lstm = torch.nn.LSTM(dim, dim, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


class PackedLSTM(torch.nn.Module):
    """Nothing to doubt: packing sorts the examples, and puts them back."""

    def __init__(self, dim):
        super().__init__()
        self.lstm = torch.nn.LSTM(dim, dim // 2, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y = self.lstm(packed)[0]
        return torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0]


class Sorted(CausalLSTM):
    def forward(self, x, lengths):
        return super().forward(x[lengths.argsort(descending=True)])


class SortedBack(CausalLSTM):
    """Nothing to doubt."""

    def forward(self, x, lengths):
        order = lengths.argsort(descending=True)
        return super().forward(x[order])[order.argsort()]


class Backward(CausalLSTM):
    """Reads padding first."""

    def forward(self, x):
        return super().forward(x.flip(1)).flip(1)


class GatedLSTM(CausalLSTM):
    """Nothing to doubt."""

    def __init__(self, dim):
        super().__init__(dim)
        self.gate = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return self.gate * super().forward(x)


class GatedBackward(GatedLSTM):
    def forward(self, x):
        return super().forward(x.flip(1)).flip(1)


class SmallBackward(GatedBackward):
    """A residual layer with a small scale."""

    def __init__(self, dim):
        super().__init__(dim)
        torch.nn.init.constant_(self.gate, 1e-5)

    def forward(self, x):
        return x + super().forward(x)


class Position(torch.nn.Linear):
    def __init__(self, dim):
        super().__init__(dim, dim)


class FailingPosition(Position):
    def forward(self, x):
        raise ValueError("no")


class Circular(torch.nn.Module):
    """Wraps around at the padded length."""

    def __init__(self, dim, max_length):
        super().__init__()
        self.kernel = torch.nn.Parameter(torch.randn(max_length, dim) / max_length**0.5)

    def forward(self, x, mask):
        length = x.shape[1]
        spectrum = torch.fft.rfft(x * mask.unsqueeze(-1), dim=1) * torch.fft.rfft(self.kernel[:length], dim=0)
        return torch.fft.irfft(spectrum, length, dim=1)


class ByLength(Linear):
    """Depends on the amount of padding, and not on the numbers in it."""

    def forward(self, x):
        positions = torch.linspace(0, 1, x.shape[1]).unsqueeze(1)
        return self.inner((x * positions).cumsum(1))


class Mixer(torch.nn.Module):
    """Nothing to doubt: weights of the longest length."""

    def __init__(self, dim, max_length):
        super().__init__()
        self.down = torch.nn.Linear(max_length, 32)
        self.up = torch.nn.Linear(32, max_length)

    def forward(self, x, mask):
        length, x = x.shape[1], (x * mask.unsqueeze(-1)).transpose(1, 2)
        y = torch.nn.functional.linear(x, self.down.weight[:, :length], self.down.bias).relu()
        return torch.nn.functional.linear(y, self.up.weight[:length], self.up.bias[:length]).transpose(1, 2)


class OneLength(Mixer):
    """Nothing to doubt, for runs without trimming."""

    def forward(self, x, mask):
        return self.up(self.down((x * mask.unsqueeze(-1)).transpose(1, 2)).relu()).transpose(1, 2)


class Pooled(torch.nn.Module):
    """Nothing to doubt: attends to means of 6 tokens."""

    def __init__(self, dim):
        super().__init__()
        self.attention = TorchAttention(dim)

    def forward(self, x, mask):
        length, more = x.shape[1], -x.shape[1] % 6
        counts = torch.nn.functional.pad(mask.float(), (0, more)).unflatten(1, (-1, 6)).sum(2)
        sums = torch.nn.functional.pad(x * mask.unsqueeze(-1), (0, 0, 0, more)).unflatten(1, (-1, 6)).sum(2)
        y = self.attention(sums / counts.clamp_min(1).unsqueeze(-1), counts == 0)
        return y.repeat_interleave(6, 1)[:, :length]


class Frozen(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        self.requires_grad_(False)


class Signed(Linear):
    """Its inner weights get a gradient of zeros, and the outer ones a true one."""

    def __init__(self, dim):
        super().__init__(dim)
        self.outer = torch.nn.Linear(dim, dim)

    def forward(self, x, mask):
        return x.cumsum(1) * 0.1 + self.outer(super().forward(x, mask).sign())


class DeadBranch(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        self.branch = torch.nn.Linear(dim, dim)
        self.register_buffer("scale", torch.zeros(1))

    def forward(self, x, mask):
        return super().forward(x, mask) + self.scale * self.branch(x)


class ReZero(Linear):
    """Nothing to doubt: the branch begins at zero, and its factor is trained."""

    def __init__(self, dim):
        super().__init__(dim)
        self.branch = torch.nn.Linear(dim, dim)
        self.scale = torch.nn.Parameter(torch.zeros(1))

    def forward(self, x, mask):
        return super().forward(x, mask) + self.scale * self.branch(x)


class HalfKeys(torch.nn.Module):
    """Attends to the first half alone, over numbers that a convolution has mixed."""

    AT = 2

    def __init__(self, dim):
        super().__init__()
        self.near = torch.nn.Conv1d(dim, dim, 5, padding=2)
        self.inner = torch.nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = self.inner(self.near(x.transpose(1, 2)).transpose(1, 2)).chunk(3, -1)
        cut = x.shape[1] // self.AT
        return (q @ k[:, :cut].transpose(1, 2) / 4).softmax(-1) @ v[:, :cut]


class FewKeys(HalfKeys):
    AT = 4


class AllKeys(HalfKeys):
    """Nothing to doubt."""

    AT = 1


class Band(torch.nn.Module):
    """Nothing to doubt: a convolution reaches its neighbors alone."""

    def __init__(self, dim):
        super().__init__()
        self.near = torch.nn.Conv1d(dim, dim, 9, padding=4)

    def forward(self, x):
        return self.near(x.transpose(1, 2)).transpose(1, 2)


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


class MaskedBag(Bag):
    """Nothing to doubt."""

    def forward(self, tokens, mask):
        return self.head((self.embedding(tokens) * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True))


class MaskIgnored(Bag):
    def forward(self, tokens, mask):
        return super().forward(tokens)


class LengthsIgnored(Bag):
    def forward(self, tokens, lengths):
        return super().forward(tokens)


class PaddingToken(Bag):
    """Nothing to doubt: knows padding by its token, and takes a mask that it does not need."""

    def forward(self, tokens, mask=None):
        there = (tokens != 0).unsqueeze(-1)
        return self.head((self.embedding(tokens) * there).sum(1) / there.sum(1))


class FrozenBag(Bag):
    def __init__(self, vocab_size, num_classes):
        super().__init__(vocab_size, num_classes)
        self.requires_grad_(False)


class Sigmoid(MaskedBag):
    def forward(self, tokens, mask):
        return super().forward(tokens, mask).sigmoid()


class SmallLogits(MaskedBag):
    """Nothing to doubt: from 0 to 1 at first."""

    def __init__(self, vocab_size, num_classes):
        super().__init__(vocab_size, num_classes)
        torch.nn.init.uniform_(self.head.bias, 0.4, 0.6)
        torch.nn.init.normal_(self.head.weight, std=0.01)


class LastState(torch.nn.Module):
    """Nothing to doubt: its first weights forget the first half below float32."""

    def __init__(self, vocab_size, num_classes):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab_size, 16)
        self.gru = torch.nn.GRU(16, 16, batch_first=True)
        self.head = torch.nn.Linear(16, num_classes)

    def states(self, tokens):
        return self.gru(self.embedding(tokens))[0]

    def forward(self, tokens, lengths):
        return self.head(self.states(tokens)[torch.arange(len(tokens)), lengths - 1])


class LastHalf(LastState):
    def states(self, tokens):
        return torch.nn.functional.pad(super().states(tokens[:, 32:]), (0, 0, 32, 0))


class LastPair(LastState):
    """Nothing to doubt: two documents, [B, 2, L]."""

    def forward(self, tokens, mask):
        lengths = mask.sum(-1)
        one, other = (self.states(tokens[:, i])[torch.arange(len(tokens)), lengths[:, i] - 1] for i in (0, 1))
        return self.head(one * other)


class LastLayer(torch.nn.Module):
    """Nothing to doubt: the last state at every position, for a residual branch."""

    def __init__(self, dim):
        super().__init__()
        self.gru = torch.nn.GRU(dim, dim, batch_first=True)

    def forward(self, x, lengths):
        last = self.gru(x)[0][torch.arange(len(x)), lengths - 1]
        return last.unsqueeze(1).expand_as(x)


class LastOfAll(LastState):
    """Reads padding last."""

    def forward(self, tokens):
        return self.head(self.states(tokens)[:, -1])


class Cut(Linear):
    """Silently reads no more than the first positions."""

    AT = 512

    def forward(self, x, mask=None):
        cut = x[:, : self.AT]
        y = super().forward(cut, cut.new_ones(cut.shape[:2]) if mask is None else mask[:, : self.AT])
        return torch.nn.functional.pad(y, (0, 0, 0, x.shape[1] - y.shape[1]))


class CutAtHalf(Cut):
    AT = 128


class CutTokens(MaskedBag):
    def forward(self, tokens, mask):
        return super().forward(tokens[..., :512], mask[..., :512])


class CutPairs(CutTokens):
    def forward(self, tokens, mask):
        return sum(super(CutPairs, self).forward(tokens[:, i], mask[:, i]) for i in (0, 1))


class CutByMask(LastState):
    def forward(self, tokens, lengths):
        return super().forward(tokens, lengths.clamp(max=512))


class BackwardState(LastState):
    """Nothing to doubt: forgets the end of a long sequence below the gradients of float32."""

    def forward(self, tokens):
        return self.head(self.gru(self.embedding(tokens).flip(1))[0][:, -1])


class FailsFar(Linear):
    """Nothing to doubt: the trainer meets it."""

    def forward(self, x, mask):
        if x.shape[1] > 300:
            raise ValueError("no")
        return super().forward(x, mask)


class AnyKeyword(Linear):
    def __init__(self, dim, dropout=0.5, start=1, **kw):
        super().__init__(dim)


class PassesOn(AnyKeyword):
    def __init__(self, dim, width=1, **more):
        super().__init__(dim, **more)


def makes_any_keyword(dim, dropout=0.5, **options):
    return Linear(dim)


class Doubts(unittest.TestCase):
    def maker(self, kind, task=None, length=64, settings={}):
        shape = Shape(dim=16, heads=2, head_dim=8, max_length=length, layer=0, task=task)

        def make(other):
            with torch.random.fork_rng():
                torch.manual_seed(5 + other)
                return adapt(kind, settings, shape)

        return make

    def found(self, kind, task=None, length=64, settings={}, **more):
        return doubts(self.maker(kind, task, length, settings), **more)

    def test_each_mistake_is_named_alone(self):
        for kind, said in (
            (Confused, "another output beside others"), (Drops, "is random in evaluation"),
            (Remembers, "remembers earlier batches"), (KeepsFirstMean, "remembers earlier batches"),
            (KeepsMeanOfTraining, "no checkpoint holds it"), (Unseeded, "two layers of one seed"),
            (Hidden, "of shape [16, 16], [16]: not trained, counted or saved"),
            (Detached, "of shape [16, 16], [16]: counted, not trained"), (Inverted, "reads nothing but padding"),
            (Unmasked, "reads padding in spite of its mask"), (Opposite, "reads nothing but padding"),
            (Infinite, "are not finite"),
            (Short, "does not read the second half of 64 positions"),
            (Pointwise, "each position apart"), (WithoutInput, "no gradient to its input"),
            (Zero, "returns zeros"), (SwitchedOff, "switches dropout off"), (Loaded, "for every seed"),
            (Sorted, "another output beside others"), (Circular, "with more padding after it"),
            (ByLength, "with more padding after it"), (Frozen, "trains none of its parameters"),
            (Signed, "of shape [16, 16], [16]: they are not trained"),
            (DeadBranch, "of shape [16, 16], [16]: they are not trained"),
        ):
            with self.subTest(kind.__name__):
                self.assertEqual([said in text for text in self.found(kind)], [True], self.found(kind))
        self.assertIn("returns zeros whatever its parameters are", self.found(Constant))
        for kind, said in ((Probabilities, "expected logits"), (FirstTokens, "the second half of 64 positions"),
                           (Clamps, "gives 8 of 16 tokens"), (Wraps, "gives 12 of 16 tokens"),
                           (MaskIgnored, "reads padding in spite"), (LengthsIgnored, "reads padding in spite"),
                           (Sigmoid, "without sigmoid"), (FrozenBag, "trains none of its parameters"),
                           (LastHalf, "the first half of 64 positions")):
            self.assertEqual([said in text for text in self.found(kind, TASK)], [True], self.found(kind, TASK))

    def test_others_have_none(self):
        for kind, task in ((Linear, None), (TorchAttention, None), (BatchNorm, None), (BeginsAtZero, None), (ZeroWeight, None),
                           (SmallScale, None), (Recomputed, None), (Blocks, None), (Fails, None), (Bag, TASK),
                           (Bag, {**TASK, "towers": 2}), (CausalLSTM, None), (PackedLSTM, None),
                           (SortedBack, None), (GatedLSTM, None), (Mixer, None), (OneLength, None), (Pooled, None),
                           (LastLayer, None), (ReZero, None), (MaskedBag, TASK), (PaddingToken, TASK), (SmallLogits, TASK),
                           (LastState, TASK), (LastPair, {**TASK, "towers": 2}), (LastOfAll, TASK)):
            with self.subTest(kind.__name__):
                self.assertEqual(self.found(kind, task), [])

    def test_keys_that_are_cut_are_named(self):
        for kind, length in ((HalfKeys, 64), (FewKeys, 64), (HalfKeys, 300)):
            found = self.found(kind, length=length, has_padding=False)
            self.assertEqual(["reads from afar only what is at the beginning" in text for text in found], [True], found)
        for kind in (AllKeys, Band, TorchAttention, Linear, BeginsAtZero):
            for length in (64, 300):
                self.assertEqual(self.found(kind, length=length, has_padding=False), [], (kind, length))

    def test_a_cut_of_the_longest_examples_is_named(self):
        long, pairs = {**TASK, "length": 5000}, {**TASK, "length": 4000, "towers": 2}
        for kind, task, length, said in (
            (Cut, None, 2048, "the last 205 of 2048"), (Cut, None, 16384, "the last 410 of 4096"),
            (CutAtHalf, None, 256, "the last 26 of 256"), (CutAtHalf, None, 257, "the last 26 of 257"),
            (CutTokens, long, 0, "the last 410 of 4096"), (CutPairs, pairs, 0, "the last 400 of 4000"),
            (CutByMask, long, 0, "the last 410 of 4096"),
        ):
            with self.subTest(kind.__name__):
                self.assertEqual(self.found(kind, task, length), [f"does not read {said} positions (cut?)"])
        self.assertEqual(
            self.found(Cut, None, 2048, has_padding=False), ["does not read the last 205 of 2048 positions (cut?)"])

    def test_layers_that_read_the_longest_examples_have_none(self):
        long, pairs = {**TASK, "length": 4096}, {**TASK, "length": 4000, "towers": 2}
        for kind, task, length in (
            (CausalLSTM, None, 2048), (PackedLSTM, None, 1000), (Linear, None, 16384), (Mixer, None, 1024),
            (TorchAttention, None, 1000), (Pooled, None, 1001), (SmallScale, None, 2048), (MaskedBag, long, 0),
            (LastState, long, 0), (LastPair, pairs, 0), (PaddingToken, long, 0), (FailsFar, None, 400),
            (Cut, None, 512),
        ):
            with self.subTest(kind.__name__):
                self.assertEqual(self.found(kind, task, length), [])
        self.assertEqual(self.found(OneLength, None, 512, has_padding=False), [])
        self.assertEqual(self.found(BackwardState, long, has_padding=False), [])

    def test_a_misspelt_setting_is_named(self):
        for kind, name, said in (
            (AnyKeyword, "droput", "takes droput through **kw; was dropout meant?"),
            (PassesOn, "droput", "takes droput through **more; was dropout meant?"),
            (PassesOn, "widht", "takes widht through **more; was width meant?"),
            (makes_any_keyword, "dropouts", "takes dropouts through **options; was dropout meant?"),
        ):
            with self.subTest(name):
                self.assertEqual(self.found(kind, settings={name: 1}), [said])

    def test_other_settings_for_any_keyword_are_not_doubted(self):
        for kind, settings in (
            (AnyKeyword, {"dropout": 1, "dropout1": 1}), (AnyKeyword, {"dropout1": 1}), (AnyKeyword, {"rank": 1}),
            (AnyKeyword, {"dropout": 1, "dropout_in": 1}), (PassesOn, {"dropout": 1, "start": 2, "width": 3}),
            (makes_any_keyword, {"rate": 1}),
        ):
            with self.subTest(str(settings)):
                self.assertEqual(self.found(kind, settings=settings), [])

    def test_padding_does_not_count_in_tasks_without_it(self):
        for kind, task in ((Unmasked, None), (Circular, None), (ByLength, None), (MaskIgnored, TASK), (Linear, None)):
            with self.subTest(kind.__name__):
                self.assertEqual(self.found(kind, task, has_padding=False), [])
        for kind, said in ((Confused, "another output beside others"), (Short, "the second half"),
                           (Pointwise, "each position apart")):
            with self.subTest(kind.__name__):
                found = self.found(kind, has_padding=False)
                self.assertEqual([said in text for text in found], [True], found)

    def test_padding_takes_part_only_where_it_changes_results(self):
        for kind, task, expected in (
            (CausalLSTM, None, False), (GatedLSTM, None, False), (Position, None, False), (Backward, None, True),
            (GatedBackward, None, True), (SmallBackward, None, True), (FailingPosition, None, True), (PaddingToken, TASK, False),
            (PaddingToken, {**TASK, "length": 16}, False), (Bag, TASK, True), (LastOfAll, TASK, True),
            (LastOfAll, {**TASK, "length": 16}, True),
        ):
            with self.subTest(kind.__name__):
                self.assertEqual(padding_takes_part(self.maker(kind, task)), expected)

    def test_the_generator_of_torch_stays_where_it_was(self):
        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)
        self.found(Linear)
        self.assertEqual(torch.rand(1), expected)


if __name__ == "__main__":
    unittest.main()
