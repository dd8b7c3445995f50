"""Every mixer once more from its definition in tests/parity/layers, against lra mixer run and lra.nn.

Values with padding in float64, float32 and bfloat16; gradients of the input and of every parameter, by autograd
through the definition; weights that go out and come in again with the same bits (with LRA_QUICK, these and gradients
under the first settings of each mixer); the tables of docs/mixers.md; and the errors for files that do not fit. A
mixer without a definition is a failure.
"""
import json
import math
import os
import pathlib
import re
import sys
import tempfile

import numpy as np

try:
    import torch
    from safetensors.numpy import save_file
    from safetensors.torch import load_file as load_torch, save_file as save_torch
except ImportError:
    print("skipped: no safetensors package, or no torch")
    sys.exit(77)

from definitions.every_layer import About, every_layer
from definitions.program import PROGRAM, apply_mixer, default_settings, lra as run_lra, lra_json, run_mixer

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("LRA_BUILD", str(pathlib.Path(PROGRAM).resolve().parent))
os.environ.setdefault("LRA_CONFIGS", str(ROOT / "configs"))
import lra.nn

torch.set_num_threads(1)
LAYERS = every_layer()
BATCH, LENGTH, WIDTH, HEADS, HEAD_DIM, MAX_LENGTH = 3, 37, 10, 2, 6, 41
SIZES = ["--heads", HEADS, "--head-dim", HEAD_DIM, "--max-length", MAX_LENGTH]
SEED = 3  # of fresh weights; with those of a file the program draws from 0
# Largest allowed difference, relative to the largest value, or gradient of a tensor.
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}
BF16_TOLERANCE = 2**-5
GRADIENT_TOLERANCE = 1e-11


def about(seed=SEED):
    return About(WIDTH, HEADS, HEAD_DIM, MAX_LENGTH, seed=seed)


WIDE = About(width=384, heads=4, head_dim=96, max_length=70)  # beyond the limits of default widths


def defined(name, x, valid, weights, settings, seed):
    """The result of the definition; arrays or tensors in, a tensor of float64 out."""
    wide = {key: torch.as_tensor(value).double() for key, value in weights.items()}
    with torch.no_grad():
        return LAYERS[name].layer(torch.as_tensor(x).double(), torch.as_tensor(valid), wide,
                                  {**default_settings(name), **settings}, about(seed))


def is_present(when, settings):
    """'always', 'SETTING = VALUE, VALUE' or 'SETTING > 0'"""
    if when == "always":
        return True
    if when.endswith(" > 0"):
        return settings[when.removesuffix(" > 0")] > 0
    key, wanted = when.split(" = ")
    value = settings[key]
    return (json.dumps(value) if isinstance(value, bool) else str(value)) in wanted.split(", ")


def documented_tensors(name, settings, about):
    """{tensor: shape} that docs/mixers.md promises."""
    sections = re.split(r"^## ", pathlib.Path("docs/mixers.md").read_text(), flags=re.MULTILINE)
    section = [s for s in sections if s.startswith(f"`{name}`")]
    assert section, f"docs/mixers.md has no section '## `{name}`'"
    values = {"D": about.width, "H": about.heads, "E": about.head_dim, "Lmax": about.max_length,
              "directions": 1 + settings.get("bidirectional", False), **settings}
    if hasattr(LAYERS[name], "sizes"):
        values |= LAYERS[name].sizes(settings, about)
    shapes = {}
    for tensor, shape, when in re.findall(r"^\| `(\S+)` \| \[(.*)\] \| (.*) \|$", section[0],
                                          flags=re.MULTILINE):
        if not is_present(when, settings):
            continue
        shapes[tensor] = [math.prod(int(word) if word.isdigit() else values[word]
                                    for word in side.split()) for side in shape.split(", ")]
    return shapes


def inputs(dtype):
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, (BATCH, LENGTH, WIDTH)).astype(dtype)
    lengths = np.array([LENGTH, 20, 1])
    mask = np.arange(LENGTH)[None, :] < lengths[:, None]
    return x, mask


def difference(name, y, x, valid, weights, settings, seed):
    """Largest error at valid positions against the definition, relative to the largest value."""
    exact = defined(name, x, valid, weights, settings, seed)
    return (torch.as_tensor(y).double() - exact)[valid].abs().max() / exact[valid].abs().max()


def check_case(name, settings, dtype, folder, thorough):
    """Fresh weights with a mask; if thorough, also without one, which leaves them as they are, and given back."""
    x, mask = inputs(dtype)
    masked = run_mixer(name, folder, {"x": x, "mask": mask}, settings, *SIZES, "--seed", SEED)
    weights = {key: value for key, value in masked.items() if key != "y"}
    shapes = {key: list(value.shape) for key, value in weights.items()}
    full = {**default_settings(name), **settings}
    assert shapes == documented_tensors(name, full, about()), f"{name} {settings}: tensors are {shapes}"
    cases = [(masked["y"], mask, SEED)]
    if thorough:
        whole = run_mixer(name, folder, {"x": x}, settings, *SIZES, "--seed", SEED)
        again = run_mixer(name, folder, {"x": x, "mask": mask.astype(np.uint8), **weights}, settings, *SIZES)
        assert set(whole) == set(masked) == set(again), f"{name}: {settings}"
        assert all(np.array_equal(whole[key], weights[key]) for key in weights), f"{name}: {settings}"
        same = weights if hasattr(LAYERS[name], "DRAWS_FROM_SEED") else masked
        assert all(np.array_equal(again[key], masked[key]) for key in same), f"{name}: {settings}"
        cases += [(whole["y"], np.ones_like(mask), SEED), (again["y"], mask, 0)]
    for y, valid, seed in cases:
        error = difference(name, y, x, valid, weights, settings, seed)
        assert error <= TOLERANCE[dtype], f"{name} {settings} {dtype.__name__}: {error:.1e}"
    print(f"ok: {name} {settings} {dtype.__name__}: {error:.1e}")


def check_wide(name):
    """Tensors and values of a wide layer with default settings."""
    layer = lra.nn.mixers()[name](WIDE.width, heads=WIDE.heads, max_length=WIDE.max_length).to(torch.float64).eval()
    shapes = {key: list(value.shape) for key, value in layer.state_dict().items()}
    settings = default_settings(name)
    assert shapes == documented_tensors(name, settings, WIDE), f"{name}, wide: tensors are {shapes}"
    x = torch.from_numpy(np.random.default_rng(8).normal(0, 1, (1, 20, WIDE.width)))
    with torch.no_grad():
        exact = LAYERS[name].layer(x, torch.ones(1, 20, dtype=torch.bool), layer.state_dict(), settings, WIDE)
        error = (layer(x) - exact).abs().max() / exact.abs().max()
    assert error <= TOLERANCE[np.float64], f"{name}, wide: {error:.1e}"
    print(f"ok: {name} wide: {error:.1e}")


def check_gradients(name, settings):
    """Of a sum of results with random factors, by lra.nn and by autograd through the definition."""
    layer = lra.nn.mixers()[name](WIDTH, heads=HEADS, head_dim=HEAD_DIM, max_length=MAX_LENGTH, seed=SEED,
                                  **settings).to(torch.float64).eval()
    buffers = set(layer.state_dict()) & set(getattr(LAYERS[name], "BUFFERS", ()))
    assert buffers == set(dict(layer.named_buffers())), f"{name} {settings}: BUFFERS of its file are others"
    random = np.random.default_rng(7)
    with torch.no_grad():  # some parameters begin as zeros, which would hide gradients of others
        for parameter in layer.parameters():
            parameter += torch.from_numpy(random.normal(0, 0.05, parameter.shape))
    x, valid = map(torch.from_numpy, inputs(np.float64))
    factors = torch.from_numpy(random.normal(0, 1, x.shape))[valid]
    leaves = {"x": x.requires_grad_(), **dict(layer.named_parameters())}
    weights, full = layer.state_dict(keep_vars=True), {**default_settings(name), **settings}
    defined = LAYERS[name].layer(x, valid, weights, full, about())
    both = [torch.autograd.grad((y[valid] * factors).sum(), leaves.values(), materialize_grads=True)
            for y in (layer(x, valid), defined)]
    worst = 0
    for tensor, ours, exact in zip(leaves, *both):
        error = (ours - exact).abs().max() / exact.abs().max().clamp_min(1e-300)
        assert error <= GRADIENT_TOLERANCE, f"{name} {settings}: gradient of {tensor}: {error:.1e}"
        worst = max(worst, error)
    print(f"ok: {name} {settings} gradients: {worst:.1e}")


def check_bf16(name, settings, folder):
    """BF16 goes in and comes out beside F32 weights."""
    x = torch.from_numpy(inputs(np.float64)[0]).to(torch.bfloat16)
    save_torch({"x": x}, folder / "in.safetensors")
    apply_mixer(name, folder, settings, *SIZES, "--seed", 0)
    weights = load_torch(folder / "out.safetensors")
    y = weights.pop("y")
    assert y.dtype == torch.bfloat16, f"{name}: {y.dtype}"
    assert all(weight.dtype == torch.float32 for weight in weights.values()), name
    if hasattr(LAYERS[name], "HARD_CHOICES"):
        print(f"not compared: {name} {settings} bfloat16: {LAYERS[name].HARD_CHOICES}")
        return
    error = difference(name, y, x, np.ones(x.shape[:2], bool), weights, settings, 0)
    assert error <= BF16_TOLERANCE, f"{name} {settings} bfloat16: {error:.1e}"
    print(f"ok: {name} {settings} bfloat16: {error:.1e}")


def refuse(folder, phrase, tensors, *words):
    """One line with the phrase on standard error, exit code 2, nothing written."""
    save_file(tensors, folder / "bad.safetensors")
    done = run_lra("mixer", "run", *words, "--in", folder / "bad.safetensors", "--out",
               folder / "never.safetensors")
    assert done.returncode == 2, f"{words}: {done.returncode}, {done.stderr}"
    assert done.stderr.count("\n") == 1 and re.search(phrase, done.stderr), done.stderr
    assert not (folder / "never.safetensors").exists()


def check_errors(folder):
    x = np.zeros((2, 5, 4), np.float32)
    fresh = run_mixer("linformer", folder, {"x": x}, {"rank": 3})
    weights = {key: value for key, value in fresh.items() if key != "y"}
    whole = {"x": x, **weights}
    linformer_3 = ("linformer", "--set", "mixer.rank=3")
    refuse(folder, "unknown model 'linfomer'.*'linformer'", {"x": x}, "linfomer")
    refuse(folder, "tensor 'x': is missing", {"mask": np.ones((2, 5), np.uint8)}, "local")
    refuse(folder, r"tensor 'x': has shape \[2, 5\]", {"x": x[..., 0].copy()}, "local")
    refuse(folder, "tensor 'x': is I32", {"x": x.astype(np.int32)}, "local")
    refuse(folder, r"tensor 'mask': has shape \[5\].*\[2, 5\]",
           {"x": x, "mask": np.ones(5, np.uint8)}, "local")
    refuse(folder, "tensor 'mask': is F32", {"x": x, "mask": x[..., 0].copy()}, "local")
    refuse(folder, "tensor 'mask': holds a value above 1",
           {"x": x, "mask": np.full((2, 5), 2, np.uint8)}, "local")
    refuse(folder, "tensor 'projection': is missing",
           {key: value for key, value in whole.items() if key != "projection"}, *linformer_3)
    refuse(folder, r"tensor 'projection': has shape \[4, 3\].*\[5, 3\]",
           {**whole, "projection": weights["projection"][:4].copy()}, *linformer_3)
    refuse(folder, "tensor 'projection': is F64.*F32",
           {**whole, "projection": weights["projection"].astype(np.float64)}, *linformer_3)
    refuse(folder, "tensor 'projektion': is not.*'projection'",
           {**whole, "projektion": weights["projection"]}, *linformer_3)
    refuse(folder, "--seed: .*its own weights", whole, *linformer_3, "--seed", 1)
    refuse(folder, "3 heads do not divide the width 4", {"x": x}, "local", "--heads", 3)
    refuse(folder, "--max-length: 4 is below", {"x": x}, "local", "--max-length", 4)
    refuse(folder, "unknown section 'rank'", {"x": x}, "linformer", "--set", "rank=3")
    refuse(folder, "mixer.rnk.*'mixer.rank'", {"x": x}, "linformer", "--set", "mixer.rnk=3")
    print("ok: errors")


def check_subnormal_numbers(folder):
    """Those of float32 are 0 in the program, read or made; in float64 the same weights are normal numbers."""
    for dtype, expected in ((np.float32, 0), (np.float64, 1e-41)):
        x = np.ones((1, 5, WIDTH), dtype)
        weights = run_mixer("transformer", folder, {"x": x}, {}, *SIZES, "--seed", SEED)
        del weights["y"]
        weights["output.weight"] = np.full_like(weights["output.weight"], 1e-41)
        largest = np.abs(run_mixer("transformer", folder, {"x": x, **weights}, {}, *SIZES)["y"]).max()
        assert largest <= expected * 100 and (largest > 0) == (expected > 0), f"{dtype.__name__}: {largest}"
    print("ok: numbers below the smallest normal one are 0")


def check_that_all_are_defined():
    names = {row["name"] for row in lra_json("list", "models")["models"]}
    for name in sorted(names - LAYERS.keys()):
        sys.exit(f"no definition of {name}: add tests/parity/layers/{name}.py with its SETTINGS and layer(x, valid, w, "
                 "settings, about), as tests/parity/definitions/every_layer.py says")
    assert LAYERS.keys() == names, f"tests/parity/layers has files of no model: {LAYERS.keys() - names}"


def main():
    check_that_all_are_defined()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, layer in LAYERS.items():
            first = layer.SETTINGS[0]
            for settings in layer.SETTINGS:
                thorough = settings is first or not os.environ.get("LRA_QUICK")
                check_case(name, settings, np.float64, folder, thorough)
                if thorough:
                    check_gradients(name, settings)
            check_case(name, first, np.float32, folder, False)
            check_bf16(name, first, folder)
            check_wide(name)
        check_subnormal_numbers(folder)
        check_errors(folder)


main()
