"""Mixers against the packages of other people, with our weights carried over.

Values of lra mixer run, with padding where the package hides it as we do, and gradients of the
operators; each comparison must also notice a changed weight and a missing mask. Then what layers of
packages do beyond their definition. What is compared, how, and what was found: docs/mixers.md.

Needs the packages of tests/parity/requirements.txt, which this command installs from the network:

    tools/make_venv build/parity-venv tests/parity/requirements.txt
"""
import dataclasses
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
os.environ.setdefault("LRA_BUILD", str(pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent))
import own_venv

own_venv.enter("build/parity-venv", "tests/parity/requirements.txt")

import lra
import numpy as np
import torch

from definitions.program import default_settings, lra_json, run_mixer
from packages import approximate, behavior, exact, recurrent
from packages.carry import HEADS, WIDTH

try:
    from packages import operators
except OSError as error:  # of a program built with another PyTorch
    print(f"no gradients are compared: {error}")
    operators = None

torch.set_num_threads(1)
# Largest allowed difference, relative to the largest value. Two orders of the same sums differ by
# a few roundings, of 6e-8 in float32; the largest seen is a seventh of these bounds.
VALUE = {torch.float32: 5e-6, torch.float64: 1e-13}
GRADIENT = {torch.float32: 1e-5, torch.float64: 3e-13}
CHANGE = 1.01  # of one row of a weight
BOTH = (torch.float32, torch.float64)


@dataclasses.dataclass
class Case:
    oracle: object
    settings: dict
    length: int
    lengths: tuple = ()  # without padding, of the three examples; none: no padding
    max_length: int = 0  # 0: length
    dtypes: tuple = BOTH
    float64: float = VALUE[torch.float64]  # bound where the package rounds more coarsely than that

    @property
    def name(self):
        return self.oracle.__name__

    def inputs(self, dtype):
        x = np.random.default_rng(5).uniform(-2, 2, (3, self.length, WIDTH))
        valid = np.arange(self.length) < np.array(self.lengths or 3 * (self.length,))[:, None]
        return torch.from_numpy(x).to(dtype), torch.from_numpy(valid)


def cases(oracle, settings, *sizes, **more):
    return [Case(oracle, settings, length, lengths, **more) for length, lengths in sizes]


# Lengths below, at, between and above block sizes, where the package can.
PADDED = ((96, (96, 50, 1)), (333, (333, 200, 7)))
WHOLE = ((96, ()), (320, ()))
CASES = [
    *cases(exact.transformer, {}, *PADDED, (2, (2, 2, 1))),
    *cases(exact.sparse_transformer, {"stride": 10, "summary": 3}, *PADDED),
    *cases(exact.sparse_transformer, {"stride": 10, "causal": True, "global_first": True}, *PADDED),
    *cases(exact.sparse_transformer, {"stride": 7, "pattern": "strided"}, *PADDED),
    *cases(exact.synthesizer, {"variant": "random", "dot_product": True}, *PADDED, max_length=400),
    *cases(exact.synthesizer, {"rank": 8}, *PADDED),
    *cases(exact.synthesizer, {"rank": 8, "causal": True}, *WHOLE),
    *cases(exact.local, {"block": 8}, *PADDED),
    *cases(exact.local, {"block": 50}, *PADDED, (20, (20, 9, 1))),
    # The package's softmax is float32 whatever its input, and the gradient of float64 input is NaN.
    *cases(exact.longformer, {"window": 12, "global_tokens": 0}, *PADDED, dtypes=BOTH[:1]),
    *cases(exact.longformer, {"window": 32}, *PADDED, dtypes=BOTH[:1]),
    *cases(exact.longformer, {"window": 64, "global_tokens": 5}, (20, (20, 9, 6)),
           (320, (320, 200, 77)), dtypes=BOTH[:1]),
    # In the package the last block is that of the longest example: padding lies only within it.
    *cases(exact.bigbird, {"block": 8, "random_blocks": 3}, (96, (96, 93, 89)),
           (320, (320, 319, 313))),
    *cases(exact.bigbird, {"block": 64, "random_blocks": 2}, (1024, (1024, 1000, 961))),
    *cases(approximate.linear_transformer, {}, (40, (40, 21, 1)), *PADDED),
    *cases(approximate.linear_transformer, {"eps": 0.5}, *PADDED),
    *cases(approximate.linformer, {"rank": 24}, (96, (96, 50, 1)), (320, (320, 200, 7)),
           max_length=320),
    *cases(approximate.performer, {"num_features": 40}, *WHOLE),
    *cases(approximate.performer, {"features": "relu"}, *WHOLE),
    # The package adds 1e-9 to the number of times that it counted a pair.
    *cases(approximate.reformer, {"chunk": 16, "buckets": 6, "rounds": 1}, WHOLE[0], float64=1e-8),
    *cases(approximate.reformer, {"chunk": 16, "buckets": 20, "rounds": 4}, WHOLE[1], float64=1e-8),
    # It gives a token -5e4 as its score with itself, where float32 has steps of 0.004: that shows
    # in the sum over rounds where a token sees nothing else, as the first ones do.
    *cases(approximate.reformer, {"chunk": 8, "buckets": 12, "rounds": 3, "causal": True}, WHOLE[0],
           dtypes=BOTH[1:], float64=1e-8),
    *cases(approximate.sinkhorn, {"block": 8}, *WHOLE),
    *cases(approximate.sinkhorn, {"block": 32, "iterations": 2, "temperature": 2.5}, *WHOLE),
    # The packages compute their poles in float32 whatever the input.
    *cases(recurrent.mamba, {"bidirectional": False}, *WHOLE, dtypes=BOTH[:1]),
    *cases(recurrent.s5, {"output": "none"}, *WHOLE, dtypes=BOTH[:1]),
    *cases(recurrent.s5, {"output": "none", "bidirectional": False}, *WHOLE, dtypes=BOTH[:1]),
    *cases(recurrent.lru, {"output": "none", "bidirectional": False}, *WHOLE, dtypes=BOTH[:1]),
    # It has six digits of exp(-1/2), and its state is float32.
    *cases(recurrent.rwkv7, {"head_channels": 8, "bidirectional": False}, *WHOLE, dtypes=BOTH[:1]),
]


def run(case, folder, tensors, *more):
    tensors = {name: tensor.numpy() for name, tensor in tensors.items()}
    done = run_mixer(case.name, folder, tensors, case.settings, "--heads", HEADS, "--max-length",
                     case.max_length or case.length, *more)
    return {name: torch.from_numpy(value) for name, value in done.items()}


def weights_for(case, folder):
    """Fresh ones of the program, bent to what the package can compute and the check can see."""
    w = run(case, folder, {"x": case.inputs(torch.float64)[0]}, "--seed", 3)
    w.pop("y")
    if case.oracle is approximate.sinkhorn:
        query, key, _ = w["qkv.weight"].chunk(3)
        w["qkv.weight"] = torch.cat([query, key, key])
    if case.oracle is recurrent.rwkv7:  # fresh ones hardly decay, and are 0
        for name in ("decay_bias", "norm_bias"):
            w[name] = torch.linspace(-1, 1, WIDTH, dtype=torch.float64)
    if case.oracle is recurrent.mamba:  # fresh ones are 0
        w["conv_bias"] = torch.linspace(-1, 1, w["conv_bias"].shape[1], dtype=torch.float64)[None]
    return w


def difference(actual, expected):
    return ((actual - expected).abs().max() / expected.abs().max()).item()


def changed(weight):
    weight = weight.clone()
    weight[0] *= CHANGE
    return weight


def check_sensitivity(case, bound, x, valid, w, settings, y):
    """The bound is exceeded when a weight of the package, or its mask, is not ours."""
    for name in w:
        other = case.oracle(x, valid, {**w, name: changed(w[name])}, settings)
        error = difference(other[valid], y)
        assert error > bound, f"{case}: {name} changed by a hundredth goes unnoticed: {error:.1e}"
    if case.lengths:
        error = difference(case.oracle(x, torch.ones_like(valid), w, settings)[valid], y)
        assert error > bound, f"{case}: padding that is not hidden goes unnoticed: {error:.1e}"


def check_values(case, dtype, weights, settings, folder):
    """-> the difference"""
    x, valid = case.inputs(dtype)
    w = {name: weight.to(dtype) for name, weight in weights.items()}
    y = run(case, folder, {"x": x, **({"mask": valid} if case.lengths else {}), **w})["y"][valid]
    bound = max(VALUE[dtype], case.float64)
    with torch.no_grad():
        error = difference(case.oracle(x, valid, w, settings)[valid], y)
        assert error <= bound, f"{case} {dtype}: values differ by {error:.1e}"
        check_sensitivity(case, bound, x, valid, w, settings, y)
    return error


def gradients(function, x, valid, w, settings):
    leaves = {name: t.clone().requires_grad_() for name, t in {"x": x, **w}.items()}
    y = function(leaves["x"], valid, {name: leaves[name] for name in w}, settings)[valid]
    # A fixed, uneven weight per output: a plain sum would hide exchanged gradients.
    uneven = torch.cos(torch.arange(y.numel(), dtype=y.dtype)).view(y.shape)
    return dict(zip(leaves, torch.autograd.grad((y * uneven).sum(), [*leaves.values()])))


def check_gradients(case, dtype, weights, settings):
    """-> the largest difference of all gradients"""
    x, valid = case.inputs(dtype)
    w = {name: weight.to(dtype) for name, weight in weights.items()}
    ours = gradients(getattr(operators, case.name), x, valid, w, settings)
    theirs = gradients(case.oracle, x, valid, w, settings)
    errors = {name: difference(ours[name], theirs[name]) for name in theirs}
    # A NaN is not within the bound either.
    assert all(error <= GRADIENT[dtype] for error in errors.values()), f"{case} {dtype}: {errors}"
    return max(errors.values())


def check(case, folder):
    weights = weights_for(case, folder)
    settings = {**default_settings(case.name), **case.settings}
    has_operator = hasattr(operators, case.name) and not settings.get("global_tokens")
    said = []
    for dtype in case.dtypes:
        error = check_values(case, dtype, weights, settings, folder)
        said.append(f"{dtype} values {error:.1e}")
        if has_operator:
            said.append(f"gradients {check_gradients(case, dtype, weights, settings):.1e}")
    print(f"ok: {case.name} {case.settings}, length {case.length}, "
          f"{f'tokens {case.lengths}' if case.lengths else 'no padding'}: {', '.join(said)}")


def check_behavior():
    """docs/mixers.md says what layers of packages do, as measured now: in rows, and in sentences below them."""
    page = (ROOT / "docs/mixers.md").read_text()
    rows = page[page.index("| layer | package | published |"):].split("\n\n")[0].splitlines()[2:]
    for row in behavior.rows():
        assert row in rows, f"docs/mixers.md does not have this row: {row}"
        rows.remove(row)
        print(f"ok: {row}")
    assert not rows, f"docs/mixers.md has rows of no layer: {rows}"
    for fact in behavior.facts():
        assert fact in " ".join(page.split()), f"docs/mixers.md does not say: {fact}"
        print(f"ok: {fact}")


def check_ours():
    """All cells but the first ones would be empty for our layers."""
    for name, kind in lra.nn.mixers().items():
        def make(kind=kind):
            return kind(WIDTH, heads=HEADS, max_length=max(behavior.LENGTHS))

        cells = behavior.cells(behavior.Layer(name, "lra", make, None, mask="mask"))
        assert not any(cells), f"{name}: {cells}"
    print(f"ok: {len(lra.nn.mixers())} layers of our own depend on no batch-mates, padding or earlier batches")


def main():
    check_behavior()
    check_ours()
    names = {row["name"] for row in lra_json("list", "models")["models"]}
    for name in sorted(names - {case.name for case in CASES}):
        print(f"no package for {name}")
    with tempfile.TemporaryDirectory() as temporary:
        for case in CASES:
            check(case, pathlib.Path(temporary))


main()
