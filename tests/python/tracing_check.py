"""torch.ops.lra without data: shapes under FakeTensorMode, one graph under torch.compile, gradcheck.

opcheck compares shapes, dtypes and strides of what the operators say with what they give.
"""
import os
import pathlib
import unittest

import torch

torch.ops.load_library(str(pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent / "liblra_ops.so"))
ops = torch.ops.lra
OPCHECKS = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_static")
# Their weights pass through Tensor.to, which returns its input and which the check of schemas takes for
# a part of the operator.
CAST = ("linear", "feed_forward")


def normal(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def mask(*lengths, length):
    return (torch.arange(length) < torch.tensor(lengths).unsqueeze(1)).to(torch.uint8)


def turned(*shape):
    """Without contiguous rows."""
    return normal(*shape).detach().transpose(0, 2).requires_grad_()


def differentiable_cases():
    """Operators with a gradient: name -> arguments of float64."""
    qkv = [normal(2, 8, 2, 4) for _ in range(3)]
    rows = mask(8, 5, length=8)
    offsets, blocks = torch.tensor([0, 1, 3]), torch.tensor([0, 0, 1], dtype=torch.int32)
    wide = normal(3, 400)  # by transforms
    return {
        "linear": (normal(2, 8, 6), normal(5, 6), normal(5)),
        "product": (normal(2, 3, 4), normal(2, 4, 5)),
        "layer_norm": (normal(2, 8, 6), normal(6), normal(6)),
        "row_norm": (normal(2, 8, 6), normal(6), 1e-5),
        "unit_rows": (normal(2, 8, 6),),
        "row_norm of a view": (turned(6, 8, 2), normal(6), 1e-5),
        "activation of a view": (turned(6, 2, 8), 3),
        "rotary": (normal(2, 8, 3, 4), torch.randn(8, 4, dtype=torch.float64)),
        "activation": (normal(2, 8, 6), 2),
        "feed_forward": (normal(2, 8, 6), normal(12, 6), normal(12), normal(6, 12), normal(6)),
        "feed_forward with norm and residual": (normal(2, 8, 6), normal(12, 6), normal(12), normal(6, 12), normal(6),
                                                0.5, 7, normal(6), normal(6), 8),
        "gate": (normal(2, 8, 6),),
        "silu": (normal(2, 8, 6), normal(2, 8, 6)),
        "dropout": (normal(2, 8, 6), 0.5, 7),
        "dropout_add": (normal(2, 8, 6), normal(2, 8, 6), 0.5, 7),
        "gelu_dropout": (normal(2, 8, 6), 0.5, 7),
        "convolution": (normal(2, 8, 3), rows, normal(3, 5), 2),
        "convolution by transforms": (normal(2, 8, 3), rows, wide, 199),
        "convolution_silu": (normal(2, 8, 3), rows, normal(3, 4), normal(3), 1),
        "convolution_silu of many lags": (normal(2, 8, 3), rows, normal(3, 12), normal(3), 1),
        "diagonal_scan": (normal(2, 8, 3), normal(2, 2, 3), normal(2, 2, 2, 3), normal(3), rows),
        "state_scan": (normal(2, 8, 2, 3), normal(2, 3), True, rows),
        "selective_scan": (normal(2, 8, 4), normal(2, 8, 4), normal(3, 4), normal(2, 8, 2, 3), normal(2, 8, 2, 3),
                           normal(4), normal(3, 4), normal(4), False, rows),
        "selective_scan of complex states": (
            normal(2, 8, 4), normal(2, 8, 4), normal(3, 4), normal(2, 8, 2, 6), normal(2, 8, 2, 6), normal(4),
            normal(6, 4), normal(4), False, rows, normal(3, 4)),
        "hold_pairs": (normal(1, 3), normal(1, 3), normal(4), normal(2, 4, 3, 2)),
        "hold_pairs of each channel": (normal(4, 3), normal(4, 3), normal(4), normal(1, 4, 3, 2), True, True),
        "damped_poles": (*[normal(2, 3, 4) for _ in range(4)], normal(4)),
        "gated_scan": (normal(2, 8, 4), normal(2, 8, 4), 1, rows),
        "matrix_scan": (normal(2, 8, 2, 3), normal(2, 8, 2, 3), normal(2, 8, 2, 4), normal(2, 8, 2, 3),
                        normal(2, 8, 2), 1, rows),
        "matrix_scan with reads": (normal(2, 8, 2, 3), normal(2, 8, 2, 3), normal(2, 8, 2, 4), normal(2, 8, 2, 3),
                                   normal(2, 8, 2), 1, rows, True, normal(2, 8, 2, 3)),
        "matrix_scan of scaled values": (*qkv, normal(2, 8, 2, 1), normal(2, 8, 2), 1, rows, False),
        "matrix_scan with a decay for a head": (*qkv, normal(2, 8, 2, 1)),
        "sinkhorn": (normal(2, 2, 3, 3), mask(3, 2, length=3).bool(), 2),
        "rotate_tracks": (normal(2, 8, 7), 4, rows),
        "packed_feature_attention": (normal(2, 8, 3, 2, 4), "elu", rows),
        "attention": (*qkv, rows),
        "attention in blocks": (*qkv, None, None, offsets, blocks, None, [4, 4, -1, -1]),
        "attention by distances": (*qkv[:2], normal(2, 8, 2, 5), rows, rows, None, None, None, [0, 0, -1, -1], 0.5,
                                   0.2, 3, normal(2, 15), True),
        "attention_with_logsumexp": tuple(qkv),
        "packed_attention": (normal(2, 8, 3, 2, 4),),
    }


def other_cases():
    """Operators without one: name -> arguments."""
    plain = lambda *shape: torch.randn(*shape)  # noqa: E731
    buckets = torch.randint(4, (2, 1, 2, 8), dtype=torch.int32)
    parameters = [plain(10), plain(10), torch.zeros(10), torch.zeros(10)]
    return {
        "batch_norm": (plain(2, 8, 6), mask(8, 5, length=8), plain(6), plain(6)),
        "linear_gelu": (plain(2, 8, 6), plain(5, 6), plain(5)),
        "add_linear_backward_input_": (plain(9, 6), plain(9, 5), plain(5, 6)),
        "sum_of_outer_products": (plain(9, 4), plain(9, 5)),
        "sum_of_outer_products_and_rows": (plain(9, 4), plain(9, 5)),
        "sum_of_rows": (plain(9, 4).bfloat16(),),
        "sum_by_token": (plain(9, 4), torch.randint(5, (9,)), 5),
        "draw_rotations": (plain(1, 8, 2, 4), 3, 5, 7),
        "hash_buckets": (plain(1, 8, 2, 4), plain(2, 2, 4, 2)),
        "sorted_runs": (buckets, 4),
        "gumbel_noise_like": (plain(1, 2, 4, 4), 3),
        "adam_step_": (*parameters, [1e-3, 0.9, 0.999, 1e-8, 0.0], 0, 1.0, torch.tensor(2.0, dtype=torch.float64), 1.0),
        "gradient_norm": (plain(10),),
        "merge_attention_": (plain(2, 8, 2, 4), plain(2, 2, 2, 8), plain(2, 8, 2, 4), plain(2, 2, 2, 8), 0.5),
    }


# Its result is a Python number.
NUMBERS = ("attention_pairs",)


def call(name, arguments):
    return getattr(ops, name.split()[0])(*arguments)


def loss_of(result):
    results = [t for t in (result if isinstance(result, tuple) else (result,)) if t.requires_grad]
    return sum((t * torch.cos(torch.arange(t.numel(), dtype=t.dtype)).view(t.shape)).sum() for t in results)


class Operators(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_every_operator_has_a_case(self):
        cases = {name.split()[0] for name in {**differentiable_cases(), **other_cases()}}
        names = {name.removeprefix("lra::") for name in torch._C._dispatch_get_all_op_names() if name.startswith("lra::")}
        halves = {name for name in names for half in ("_forward", "_backward", "_backward_input")
                  if name.removesuffix(half) in names - {name}}
        self.assertEqual(cases, names - halves - {*NUMBERS})
        for name in names - {*NUMBERS}:  # shapes without data, of halves that the CPU does not call, too
            keys = ("Meta", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
            has = torch._C._dispatch_has_kernel_for_dispatch_key
            self.assertTrue(any(has(f"lra::{name}", key) for key in keys), name)

    def test_shapes_without_data_are_those_with_data(self):
        for name, arguments in {**differentiable_cases(), **other_cases()}.items():
            with self.subTest(name):
                op = getattr(ops, name.split()[0]).default
                checks = OPCHECKS if name.split()[0] in CAST else ("test_schema", *OPCHECKS)
                torch.library.opcheck(op, arguments, test_utils=checks)

    def test_compiled_functions_are_one_graph_with_the_same_gradients(self):
        for name, arguments in differentiable_cases().items():
            if " " in name:  # an operator is the same node of a graph with other arguments
                continue
            with self.subTest(name):
                torch._dynamo.reset()
                leaves = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]
                expected = torch.autograd.grad(loss_of(call(name, arguments)), leaves)
                compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=False)
                gradients = torch.autograd.grad(loss_of(compiled(name, arguments)), leaves)
                for ours, theirs in zip(gradients, expected):
                    self.assertTrue(torch.equal(ours, theirs))

    def test_gradients_are_right_in_float64(self):
        for name, arguments in differentiable_cases().items():
            with self.subTest(name):
                self.assertTrue(torch.autograd.gradcheck(lambda *a: call(name, a), arguments))

    def test_second_derivatives_are_right_in_float64_and_refused_in_bfloat16(self):
        x = normal(2, 4)
        self.assertTrue(torch.autograd.gradgradcheck(ops.gate, (x,)))
        rounded = x.detach().bfloat16().requires_grad_()
        with self.assertRaisesRegex(RuntimeError, "no second derivative"):
            torch.autograd.grad(ops.gate(rounded).sum(), rounded, create_graph=True)


if __name__ == "__main__":
    unittest.main()
