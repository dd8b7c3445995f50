"""lra.nn: the program's layers in Python compute what the program computes, and are good modules."""

import copy
import os
import pathlib
import pickle
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))
PROGRAM = pathlib.Path(os.environ["LRA_PROGRAM"]).resolve()
os.environ.setdefault("LRA_BUILD", str(PROGRAM.parent))
os.environ.setdefault("LRA_CONFIGS", str(ROOT / "configs"))

import lra
import torch
import torch.nn.utils.prune
from lra import _program
from safetensors.torch import load_file, save_file
from torch._subclasses.fake_tensor import FakeTensorMode

DIM, HEADS, LENGTH = 16, 2, 64


def made(kind, **more):
    return kind(DIM, heads=HEADS, max_length=LENGTH, seed=5, **more).eval()


def padded_input(dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [40]])
    return torch.randn(2, LENGTH, DIM, generator=generator, dtype=dtype) * mask.unsqueeze(-1), mask


class EveryMixer(unittest.TestCase):
    def test_result_and_weights_are_the_program_s_bit_for_bit(self):
        for name, kind in lra.nn.mixers().items():
            with self.subTest(name), tempfile.TemporaryDirectory() as scratch:
                x, mask = padded_input()
                given, written = f"{scratch}/in.safetensors", f"{scratch}/out.safetensors"
                save_file({"x": x, "mask": mask}, given)
                _program.run([
                    "mixer", "run", name, "--in", given, "--out", written, "--heads", str(HEADS),
                    "--seed", "5", "--quiet"])
                expected = load_file(written)
                layer = made(kind)
                y = expected.pop("y")
                state = layer.state_dict()
                self.assertEqual(set(state), set(expected))
                for tensor_name, tensor in expected.items():
                    self.assertTrue(torch.equal(state[tensor_name], tensor), tensor_name)
                with torch.no_grad():  # as the program computes: some operators fuse more then
                    self.assertTrue(torch.equal(layer(x, mask)[mask], y[mask]))

    def test_every_parameter_gets_a_gradient(self):
        for name, kind in lra.nn.mixers().items():
            with self.subTest(name):
                layer, (x, mask) = made(kind), padded_input()
                layer(x, mask)[mask].square().sum().backward()
                for parameter_name, parameter in layer.named_parameters():
                    self.assertIsNotNone(parameter.grad, parameter_name)

    def test_a_state_dict_moves_the_weights(self):
        for name, kind in lra.nn.mixers().items():
            with self.subTest(name):
                layer, (x, mask) = made(kind), padded_input()
                other = kind(DIM, heads=HEADS, max_length=LENGTH, seed=6).eval()
                other.load_state_dict(layer.state_dict())
                self.assertTrue(torch.equal(other(x, mask)[mask], layer(x, mask)[mask]))

    def test_copies_and_pickles_are_layers_of_their_own(self):
        for name, kind in lra.nn.mixers().items():
            with self.subTest(name):
                layer, (x, mask) = made(kind), padded_input()
                for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
                    self.assertTrue(torch.equal(other(x, mask)[mask], layer(x, mask)[mask]))
                    with torch.no_grad():
                        for parameter in other.parameters():
                            parameter.fill_(torch.nan)
                    self.assertTrue(all(bool(own.isfinite().all()) for own in layer.parameters()))


    def test_a_move_to_meta_leaves_shapes(self):
        for name, kind in lra.nn.mixers().items():
            with self.subTest(name):
                state = made(kind).to("meta").state_dict()
                self.assertTrue(all(tensor.is_meta for tensor in state.values()))
                self.assertEqual({name: tensor.shape for name, tensor in state.items()},
                                 {name: tensor.shape for name, tensor in made(kind).state_dict().items()})

    def test_gradients_are_right_in_float64(self):
        for name, kind in lra.nn.mixers().items():
            with self.subTest(name):
                torch.manual_seed(0)
                layer = kind(4, heads=2, max_length=8).double().eval()
                x = torch.randn(2, 8, 4, dtype=torch.float64, requires_grad=True)
                self.assertTrue(torch.autograd.gradcheck(layer, (x,)))
                if name == "reformer":
                    with self.assertRaisesRegex(RuntimeError, "no second derivative"):
                        torch.autograd.gradgradcheck(layer, (x,), fast_mode=True)
                else:
                    self.assertTrue(torch.autograd.gradgradcheck(layer, (x,), fast_mode=True))

    def test_shapes_need_no_data(self):
        for name, kind in lra.nn.mixers().items():
            if name in ("sparse_transformer", "bigbird"):  # choose blocks by data
                continue
            layer = made(kind)
            with self.subTest(name):
                with FakeTensorMode(allow_non_fake_inputs=True):
                    self.assertEqual(layer(torch.randn(2, 40, DIM)).shape, (2, 40, DIM))
                with torch.inference_mode():
                    layer(torch.randn(2, 40, DIM))
                y = layer(torch.randn(2, 40, DIM))  # nothing of these modes is left
                self.assertIs(type(y), torch.Tensor)
                y.sum().backward()


class OneMixer(unittest.TestCase):
    def test_parameters_of_a_group_carry_it(self):
        layer = copy.deepcopy(made(lra.nn.S4D))
        optim = {name: parameter._optim for name, parameter in layer.named_parameters() if hasattr(parameter, "_optim")}
        self.assertEqual(set(optim), {"dt", "log_rate", "frequency", "c"})
        self.assertEqual(optim["dt"], {"name": "dt", "weight_decay": 0.0, "lr": 1e-3})
        self.assertEqual(optim["c"], {"name": "c", "weight_decay": 0.0})

    def test_training_draws_from_the_key(self):
        layer, (x, _) = made(lra.nn.Sinkhorn).train(), padded_input()
        self.assertTrue(torch.equal(layer(x, key=1), layer(x, key=1)))
        self.assertFalse(torch.equal(layer(x), layer(x)))

    def test_an_optimizer_of_torch_trains_it(self):
        layer, (x, mask) = made(lra.nn.Transformer), padded_input()
        optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = (layer(x, mask) - x)[mask].square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.5 * losses[0])

    def test_bfloat16_goes_in_and_comes_out(self):
        layer, (x, mask) = made(lra.nn.Transformer), padded_input()
        self.assertEqual(layer(x.bfloat16(), mask).dtype, torch.bfloat16)

    def test_autocast_is_bfloat16_input(self):
        for name, kind in lra.nn.mixers().items():
            with self.subTest(name):
                layer, (x, mask) = made(kind), padded_input()
                with torch.autocast("cpu", torch.bfloat16):
                    y = layer(x, mask)
                self.assertTrue(torch.equal(y, layer(x.bfloat16(), mask)))

    def test_parameters_stay_wide(self):
        for kind in lra.nn.mixers().values():
            with self.subTest(kind), self.assertRaisesRegex(ValueError, "is torch.bfloat16; expected torch.float32"):
                made(kind).bfloat16()(padded_input()[0].bfloat16())

    def test_an_empty_batch_has_an_empty_result(self):
        for kind in lra.nn.mixers().values():
            with self.subTest(kind):
                layer, x = made(kind), padded_input()[0][:0]
                y = layer(x)
                self.assertEqual(y.shape, x.shape)
                y.sum().backward()
                self.assertTrue(all(not p.grad.any() for p in layer.parameters()))

    def test_compile_leaves_it_out_of_the_graph(self):
        layer, (x, mask) = made(lra.nn.Local), padded_input()
        compiled = torch.compile(torch.nn.Sequential(layer), backend="eager")
        self.assertTrue(torch.equal(compiled(x), layer(x)))

    def test_masks_are_ones_before_zeros(self):
        layer, x = lra.nn.Linformer(8, max_length=6, rank=2).eval(), torch.randn(1, 6, 8)
        right = torch.arange(6)[None] < 4
        self.assertTrue(torch.equal(layer(x, right), layer(x, right.float())))
        for mask, said in ((~right, "padding on the right"), (torch.where(right, 0.0, -torch.inf), "other values"),
                           (right[0], r"expected \[B, L\] = \[1, 6\]")):
            with self.assertRaisesRegex(ValueError, said):
                layer(x, mask)

    def test_inputs_of_another_shape_are_refused(self):
        layer = lra.nn.Linformer(8, max_length=6, rank=2)
        for shape in ((1, 8, 5), (2, 7, 8), (6, 8)):
            with self.assertRaisesRegex(ValueError, r"expected \[B, L, 8\] with L up to max_length, 6"):
                layer(torch.randn(shape))

    def test_pruned_and_parametrized_weights_of_submodules_are_refused(self):
        def prune(layer):
            torch.nn.utils.prune.l1_unstructured(layer.qkv, "weight", 0.9)

        def parametrize(layer):
            torch.nn.utils.parametrize.register_parametrization(layer.qkv, "weight", torch.nn.Tanh())

        def normalize(layer):
            torch.nn.utils.parametrizations.spectral_norm(layer.qkv)

        x, _ = padded_input()
        for change in (prune, parametrize, normalize):
            with self.subTest(change.__name__):
                layer = made(lra.nn.Transformer)
                change(layer)
                with self.assertRaisesRegex(RuntimeError, "pruned or parametrized"):
                    layer(x)
        layer = made(lra.nn.Transformer)
        before = layer(x)
        prune(layer)
        torch.nn.utils.prune.remove(layer.qkv, "weight")  # leaves zeros in the weight itself
        pruned = made(lra.nn.Transformer)
        pruned.load_state_dict(layer.state_dict())
        self.assertAlmostEqual(float((pruned.qkv.weight == 0).float().mean()), 0.9, places=2)
        self.assertFalse(torch.equal(layer(x), before))
        self.assertTrue(torch.equal(layer(x), pruned(x)))

    def test_replaced_parameters_are_refused(self):
        layer, (x, _) = made(lra.nn.Transformer), padded_input()
        others = {name: torch.zeros_like(p) for name, p in layer.named_parameters()}
        with self.assertRaisesRegex(RuntimeError, "replaced"):
            torch.func.functional_call(layer, others, (x,))

    def test_settings_are_those_of_the_program(self):
        with self.assertRaisesRegex(RuntimeError, "did you mean 'mixer.rank'"):
            lra.nn.Linformer(16, rnak=3)
        self.assertIn("rank", lra.nn.Linformer.__doc__)
        with self.assertRaisesRegex(AttributeError, "Linfomer"):
            lra.nn.Linfomer


if __name__ == "__main__":
    unittest.main()
