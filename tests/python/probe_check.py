"""The checks of a user's class: each mistake is named alone, and honest layers are not doubted."""

import os
import pathlib
import random
import sys
import unittest

import numpy as np
import torch
import torch.utils.checkpoint

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("LRA_BUILD", str(pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent))

from lra._adapter import Shape, adapt
from lra._probe import faults

TASK = {"vocabulary": 17, "classes": 10, "length": 64, "towers": 1, "values": False}
VALUES = {**TASK, "values": True, "channels": 3}
PAIRS = {**TASK, "towers": 2}
# Contexts of a call, with the key 1.
TRAINING, EVALUATION = ((training, 0.0, 0.0, False, 1, 1, 0, 0) for training in (True, False))


class Linear(torch.nn.Module):
    """A running sum of tokens, with dropout."""

    def __init__(self, dim):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(dim, dim), torch.nn.Dropout(0.5))

    def forward(self, x, mask):
        return self.inner((x * mask.unsqueeze(-1)).cumsum(1))


class Drops(Linear):
    def forward(self, x, mask):
        return torch.nn.functional.dropout(super().forward(x, mask))


class Remembers(Linear):
    calls = 0

    def forward(self, x, mask):
        self.calls += 1
        return super().forward(x, mask) * self.calls


class Hidden(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        self.layers = [torch.nn.Linear(dim, dim)]

    def forward(self, x, mask):
        return self.layers[0](super().forward(x, mask))


class Detached(Linear):
    def forward(self, x, mask):
        return x * mask.unsqueeze(-1) + super().forward(x, mask).detach()


class Unused(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        self.more = torch.nn.Linear(dim, 3)


class Unmasked(Linear):
    def forward(self, x, mask):
        return super().forward(x.flip(1), torch.ones_like(mask)).flip(1)


class ByLength(Linear):
    """Depends on the amount of padding, and not on the numbers in it."""

    def forward(self, x, mask):
        positions = torch.linspace(0, 1, x.shape[1]).unsqueeze(1)
        return super().forward(x * positions, mask)


class Circular(torch.nn.Module):
    """Wraps around at the padded length."""

    def __init__(self, dim, max_length):
        super().__init__()
        self.kernel = torch.nn.Parameter(torch.randn(max_length, dim) / max_length**0.5)

    def forward(self, x, mask):
        length = x.shape[1]
        spectrum = torch.fft.rfft(x * mask.unsqueeze(-1), dim=1) * torch.fft.rfft(self.kernel[:length], dim=0)
        return torch.fft.irfft(spectrum, length, dim=1)


class Infinite(Linear):
    def forward(self, x, mask):
        return super().forward(x, mask) / mask.unsqueeze(-1)


class OtherWidth(Linear):
    def forward(self, x, mask):
        return super().forward(x, mask)[..., :1]


class OtherLength(Linear):
    def forward(self, x, mask):
        return super().forward(x, mask)[:, 1:]


class Reversed(torch.nn.Module):
    """Reads padding first, and takes no mask."""

    def __init__(self, dim):
        super().__init__()
        self.lstm = torch.nn.LSTM(dim, dim, batch_first=True)

    def forward(self, x):
        return self.lstm(x.flip(1))[0].flip(1)


class GatedReversed(Reversed):
    """Its first output is 0."""

    def __init__(self, dim):
        super().__init__(dim)
        self.gate = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return self.gate * super().forward(x)


class FixedReversed(Reversed):
    """Takes no other length."""

    def __init__(self, dim, max_length):
        super().__init__(dim)
        self.weights = torch.nn.Parameter(torch.ones(max_length, dim))

    def forward(self, x):
        return super().forward(x * self.weights)


class Powers(torch.nn.Module):
    """A rotation, whose powers autocast computes in bfloat16."""

    def __init__(self, dim):
        super().__init__()
        self.skew = torch.nn.Parameter(torch.randn(dim, dim) / dim)

    def forward(self, x, mask):
        turn = torch.linalg.matrix_exp(self.skew - self.skew.T)
        return x * mask.unsqueeze(-1) @ torch.linalg.matrix_power(turn, 1024)


class AfterResidual(torch.nn.LayerNorm):
    """Another signature, and the same operator."""

    def forward(self, residual, x):
        y = torch.nn.functional.layer_norm(input=x, normalized_shape=self.normalized_shape, bias=self.bias)
        return y if residual is None else residual + y


class RenamesState(torch.nn.Module):
    """As torch's checkpoint_wrapper does."""

    def __init__(self, dim):
        super().__init__()
        self.part = torch.nn.Module()
        self.part.norm = torch.nn.BatchNorm1d(dim)
        self.part.register_buffer("cache", torch.ones(1), persistent=False)
        self._register_state_dict_hook(self.rename)

    @staticmethod
    def rename(module, state, prefix, metadata):
        for name in list(state):
            state[name.replace("part.", "")] = state.pop(name)


class ReplacesBuffer(torch.nn.Linear):
    def __init__(self, dim):
        super().__init__(dim, dim)
        self.register_buffer("mean", torch.zeros(dim))

    def forward(self, x):
        self.mean = 0.5 * self.mean + 0.5 * x.detach().mean((0, 1))
        return super().forward(x - self.mean)


class MakesLayer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = None

    def forward(self, x):
        if self.layer is None:
            self.layer = torch.nn.Linear(x.shape[2], x.shape[2])
        return self.layer(x)


class DrawsAnywhere(torch.nn.Module):
    def forward(self, x):
        drawn = torch.tensor([random.random(), np.random.rand(), torch.rand(()).item()])
        return torch.nn.functional.pad(drawn, (0, x.shape[2] - 3)) * x


class TwoPlaces(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.part = torch.nn.Module()
        self.weight = self.part.weight = torch.nn.Parameter(torch.ones(dim, dtype=torch.complex64))


class Blocks(torch.nn.Module):
    def __init__(self, dim, block_len=16, seed=5, max_len=8):
        super().__init__()
        self.sizes = block_len, seed, max_len


class Counts(torch.nn.Module):
    """Gradients of layer norms and an embedding that are a number of tokens."""

    def __init__(self, dim):
        super().__init__()
        self.norm, self.other, self.table = torch.nn.LayerNorm(dim), AfterResidual(dim), torch.nn.Embedding(1, dim)

    def forward(self, x):
        y = torch.zeros_like(x)
        y[:, 1:] = self.norm(x)[:, 1:]  # of one dtype
        first = torch.utils.checkpoint.checkpoint(self.norm, x[:, :1], use_reentrant=False)
        y = y + torch.nn.functional.pad(first, (0, 0, 0, x.shape[1] - 1))
        return self.other(None, x) + self.table(x.new_zeros(x.shape[:2], dtype=torch.long)) + y


# Honest layers.


class Wide(Powers):
    """The same powers in float32."""

    def forward(self, x, mask):
        with torch.autocast("cpu", enabled=False):
            return super().forward(x.float(), mask).to(x.dtype)


class TorchAttention(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(dim, 2, batch_first=True)

    def forward(self, x, key_padding_mask=None):
        return self.attention(x, x, x, key_padding_mask=key_padding_mask, need_weights=False)[0]


class Softmax(torch.nn.Module):
    """Weights that are NaN where nothing is seen."""

    def __init__(self, dim):
        super().__init__()
        self.mix = torch.nn.Linear(dim, dim)

    def forward(self, x, mask):
        scores = (self.mix(x) @ x.mT).masked_fill(~mask[:, None], float("-inf"))
        return scores.softmax(-1) @ x


class TorchEncoder(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(dim, 2, 2 * dim, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 1)

    def forward(self, x, key_padding_mask=None):
        return self.encoder(x, src_key_padding_mask=key_padding_mask)


class Inverted(TorchAttention):
    """A mistake: the mask of torch is True for padding."""

    def forward(self, x, mask):
        return super().forward(x, mask)


class BatchNorm(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        self.norm = torch.nn.BatchNorm1d(dim)

    def forward(self, x, mask):
        return self.norm(super().forward(x, mask).transpose(1, 2)).transpose(1, 2)


class BeginsAtZero(Linear):
    def __init__(self, dim):
        super().__init__(dim)
        self.gate = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, x, mask):
        return self.gate * super().forward(x, mask)


class Recomputed(Linear):
    def forward(self, x, mask):
        return torch.utils.checkpoint.checkpoint(super().forward, x, mask, use_reentrant=True)


class NoMemoryTokens(TorchAttention):
    """An empty parameter, as packages have with "no memory tokens", and another that is not used."""

    def __init__(self, dim):
        super().__init__(dim)
        self.memory = torch.nn.Parameter(torch.randn(0, dim))
        self.unused = torch.nn.Parameter(torch.randn(0, dim))

    def forward(self, x, key_padding_mask=None):
        more = self.memory.expand(x.shape[0], -1, -1)
        return super().forward(torch.cat([more, x], 1), key_padding_mask)


class CausalLSTM(torch.nn.Module):
    """Padding comes after all tokens."""

    def __init__(self, dim):
        super().__init__()
        self.lstm = torch.nn.LSTM(dim, dim, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


class PackedLSTM(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lstm = torch.nn.LSTM(dim, dim // 2, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y = self.lstm(packed)[0]
        return torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0]


class OneLength(torch.nn.Module):
    def __init__(self, dim, max_length):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.randn(max_length, max_length) / max_length)

    def forward(self, x, mask):
        return self.weights @ (x * mask.unsqueeze(-1))


class Fills(OneLength):
    """Returns its longest length, whatever it gets."""

    def forward(self, x, mask):
        return self.weights[:, : x.shape[1]] @ (x * mask.unsqueeze(-1))


class Pointwise(torch.nn.Linear):
    def __init__(self, dim):
        super().__init__(dim, dim)


class Fails(Linear):
    """The trainer meets it."""

    def forward(self, x, mask):
        raise ValueError("no")


class Bag(torch.nn.Module):
    """A whole model, which reads padding."""

    def __init__(self, vocab_size, num_classes):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab_size, 8)
        self.head = torch.nn.Linear(8, num_classes)

    def forward(self, tokens):
        return self.head(self.embedding(tokens).mean(-2))


class PairBag(Bag):
    def forward(self, tokens):
        return super().forward(tokens).sum(1)


class OneLogit(Bag):
    def forward(self, tokens, mask):
        return super().forward(tokens)[:, :1]


class MaskedBag(Bag):
    """An honest whole model, as the next ones."""

    def forward(self, tokens, mask):
        return self.head((self.embedding(tokens) * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True))


class PaddingToken(Bag):
    """Knows padding by its token."""

    def forward(self, tokens):
        there = (tokens != 0).unsqueeze(-1)
        return self.head((self.embedding(tokens) * there).sum(1) / there.sum(1))


class LastState(torch.nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.gru = torch.nn.GRU(3, 16, batch_first=True)
        self.head = torch.nn.Linear(16, num_classes)

    def forward(self, values, lengths):
        return self.head(self.gru(values)[0][torch.arange(len(values)), lengths - 1])


class Checks(unittest.TestCase):
    def made(self, kind, task=None, length=64):
        return adapt(kind, {}, Shape(dim=16, heads=2, head_dim=8, max_length=length, layer=0, task=task))

    def found(self, kind, task=None, length=64, **more):
        torch.manual_seed(5)
        return faults(self.made(kind, task, length), **more)

    def test_each_mistake_is_named_alone(self):
        for kind, task, said in (
            (Drops, None, "other results in evaluation"), (Remembers, None, "other results in evaluation"),
            (Hidden, None, "does not register, of shape [16, 16], [16]: not trained"),
            (Detached, None, "does not use parameters of the module, of shape [16, 16], [16]: counted, not trained"),
            (Unused, None, "does not use parameters of the module, of shape [3, 16], [3]: counted, not trained"),
            (Infinite, None, "are not finite"),
            (OtherWidth, None, "returned [3, 64, 1]; expected [3, 64, 16]"),
            (OtherLength, None, "returned [3, 63, 16]; expected [3, 64, 16]"),
            (OneLogit, TASK, "returned [3, 1]; expected [3, 10]"),
            (Inverted, None, "with other padding"), (Unmasked, None, "with other padding"),
            (ByLength, None, "with other padding"), (Circular, None, "with other padding"),
            (Reversed, None, "takes no mask: padding takes part"),
            (GatedReversed, None, "takes no mask: padding takes part"),
            (FixedReversed, None, "takes no mask: padding takes part"),
            (Bag, TASK, "takes no mask: padding takes part"), (PairBag, PAIRS, "takes no mask: padding takes part"),
        ):
            with self.subTest(kind.__name__):
                self.assertEqual([said in text for text in self.found(kind, task)], [True], self.found(kind, task))

    def test_honest_layers_have_none(self):
        for kind, task in (
            (Linear, None), (TorchAttention, None), (TorchEncoder, None), (Softmax, None), (BatchNorm, None),
            (BeginsAtZero, None), (Recomputed, None),
            (NoMemoryTokens, None), (CausalLSTM, None), (PackedLSTM, None), (OneLength, None), (Pointwise, None),
            (Fails, None), (MaskedBag, TASK), (PaddingToken, TASK), (LastState, VALUES),
        ):
            with self.subTest(kind.__name__):
                self.assertEqual(self.found(kind, task), [])
        self.assertEqual(self.found(Fills, length=512), [], "the trainer may call it at its longest length")

    def test_padding_does_not_count_in_tasks_without_it(self):
        for kind, task in ((Unmasked, None), (Circular, None), (ByLength, None), (Linear, None), (Bag, TASK)):
            with self.subTest(kind.__name__):
                self.assertEqual(self.found(kind, task, has_padding=False), [])
        self.assertEqual(len(self.found(Drops, has_padding=False)), 1)

    def test_powers_in_bfloat16_are_named(self):
        found = self.found(Powers, length=2048, bf16=True)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], r"is \d+ % off in bfloat16 at 2048 positions")
        self.assertEqual(self.found(Powers, length=2048), [])
        for kind in (Wide, Linear, TorchAttention, CausalLSTM, Pointwise, BeginsAtZero):
            with self.subTest(kind.__name__):
                self.assertEqual(self.found(kind, length=2048, bf16=True), [])

    def test_long_sums_of_gradients_in_bfloat16_are_whole(self):
        """A layer norm's would stop at 256 for each thread in torch 2.13, under autocast, too."""
        layer = self.made(Counts, length=4000)
        y = layer(torch.randn(8, 4000, 16).bfloat16(), None, None, TRAINING)
        y.backward(torch.ones_like(y))
        for name in ("norm.bias", "other.bias", "table.weight"):
            self.assertTrue(layer.module.get_parameter(name).grad.eq(32_000).all(), name)

    def test_the_encoder_of_torch_takes_masks_in_bfloat16(self):
        """Its fast path of evaluation would fail under autocast on the CPU, in torch 2.13."""
        layer = self.made(TorchEncoder)
        mask = (torch.arange(64) < torch.tensor([[64], [40]])).to(torch.uint8)
        x = torch.randn(2, 64, 16)
        with torch.no_grad():
            y, wide = (layer(t, mask, None, EVALUATION) for t in (x.bfloat16(), x))
        self.assertLess(float((y.float() - wide)[mask.bool()].norm() / wide[mask.bool()].norm()), 0.02)

    def test_a_whole_model_in_bfloat16_runs_under_autocast(self):
        seen, tokens = [], torch.ones(2, 64, dtype=torch.uint8)
        for task in (TASK, {**TASK, "bf16": True}):
            model = self.made(Bag, task)
            model.module.head.register_forward_hook(lambda *args: seen.append(args[2].dtype))
            self.assertEqual(model(tokens, None, None, TRAINING).dtype, torch.float32)
        self.assertEqual(seen, [torch.float32, torch.bfloat16])
        self.assertEqual(self.found(MaskedBag, {**TASK, "bf16": True}, bf16=True), [])

    def test_an_example_without_tokens_is_no_trouble(self):
        mask = (torch.arange(64) < torch.tensor([[64], [0]])).to(torch.uint8)
        for kind in (TorchAttention, TorchEncoder, Softmax, PackedLSTM):
            with self.subTest(kind):
                layer = self.made(kind)
                layer.module.eval()
                x = torch.randn(2, 64, 16)
                with torch.no_grad():
                    y, alone = (layer(x[:n], mask[:n], None, EVALUATION) for n in (2, 1))
                self.assertTrue(y.isfinite().all())
                torch.testing.assert_close(y[:1], alone)

    def test_buffers_are_saved_whatever_hooks_call_them(self):
        self.assertIn("part.norm.running_mean", self.made(RenamesState).buffers())
        self.assertNotIn("part.cache", self.made(RenamesState).buffers())

    def test_state_that_training_would_not_know_is_refused(self):
        for kind, name in ((ReplacesBuffer, "mean"), (MakesLayer, "layer.weight")):
            with self.subTest(kind), self.assertRaisesRegex(TypeError, f"forward makes or replaces {name}"):
                self.made(kind)(torch.ones(2, 64, 16), None, None, TRAINING)

    def test_every_generator_is_seeded_by_the_key(self):
        layer = self.made(DrawsAnywhere)
        x = torch.ones(2, 64, 16)
        one, same, other = (layer(x, None, None, (*TRAINING[:4], key, key, 0, 0)) for key in (1, 1, 2))
        self.assertTrue(torch.equal(one, same))
        for channel in range(3):
            self.assertFalse(torch.equal(one[..., channel], other[..., channel]), channel)

    def test_optimizer_settings_that_would_not_be_kept_are_refused(self):
        for optim, said in (({"lr": 0.0}, "rate 0.0; expected one above 0"), ({"learning_rate": 1.0}, "has learning_rate")):
            layer = self.made(Pointwise)
            layer.module.weight._optim = optim
            with self.subTest(optim), self.assertRaisesRegex(TypeError, said):
                layer.groups()

    def test_complex_parameters_in_two_places_are_refused(self):
        with self.assertRaisesRegex(TypeError, "complex parameter weight is in two places"):
            self.made(TwoPlaces)

    def test_arguments_that_may_mean_something_else_keep_their_defaults(self):
        self.assertEqual(self.made(Blocks).module.sizes, (16, 5, 64))

    def test_a_compiled_layer_has_its_mask(self):
        self.assertTrue(self.made(lambda dim: torch.compile(TorchAttention(dim), backend="eager")).takes_mask)

    def test_float32_stays_under_autocast_of_the_caller(self):
        layer = self.made(Linear)
        with torch.autocast("cpu", torch.bfloat16):
            y = layer(torch.randn(2, 64, 16), torch.ones(2, 64), None, EVALUATION)
        self.assertEqual(y.dtype, torch.float32)

    def test_the_generator_of_torch_stays_where_it_was(self):
        torch.manual_seed(5)
        adapted = self.made(Linear)
        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)
        faults(adapted)
        self.assertEqual(torch.rand(1), expected)


if __name__ == "__main__":
    unittest.main()
