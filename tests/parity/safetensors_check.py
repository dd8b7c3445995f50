"""The official safetensors package reads the checkpoints of a run: names, shapes, sizes."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    from safetensors import safe_open
    from safetensors.torch import load_file
except ImportError:
    print("skipped: no safetensors package")
    sys.exit(77)

PROGRAM = os.environ["LRA_PROGRAM"]
LENGTH, LAYERS, WIDTH, HIDDEN, CLASSES, RANK = 48, 3, 16, 24, 10, 5
SETTINGS = [f"task.length={LENGTH}", f"model.layers={LAYERS}", f"model.embed_dim={WIDTH}",
            f"model.qkv_dim={WIDTH}", f"model.mlp_dim={HIDDEN}", f"mixer.rank={RANK}",
            "model.heads=2", "model.pooling=cls", "model.positions=learned",
            "model.classifier=mlp", "train.steps=2", "train.batch_size=4"]


def lra(*words):
    done = subprocess.run([PROGRAM, *map(str, words), "--threads", "1", "--quiet"], check=True,
                          stdout=subprocess.PIPE)
    return done.stdout


def expected_shapes(vocabulary):
    positions = LENGTH + 1  # the CLS vector stands in front
    shapes = {"embedding.token": [vocabulary, WIDTH], "embedding.cls": [WIDTH],
              "embedding.position": [positions, WIDTH],
              "encoder.norm.weight": [WIDTH], "encoder.norm.bias": [WIDTH],
              "head.hidden.weight": [HIDDEN, WIDTH], "head.hidden.bias": [HIDDEN],
              "head.output.weight": [CLASSES, HIDDEN], "head.output.bias": [CLASSES]}
    for layer in range(LAYERS):
        block = {"norm1.weight": [WIDTH], "norm1.bias": [WIDTH],
                 "norm2.weight": [WIDTH], "norm2.bias": [WIDTH],
                 "mixer.query.weight": [WIDTH, WIDTH],
                 "mixer.key_value.weight": [2 * WIDTH, WIDTH],
                 "mixer.projection": [positions, RANK], "mixer.output.weight": [WIDTH, WIDTH],
                 "mlp.fc1.weight": [HIDDEN, WIDTH], "mlp.fc1.bias": [HIDDEN],
                 "mlp.fc2.weight": [WIDTH, HIDDEN], "mlp.fc2.bias": [WIDTH]}
        shapes.update({f"encoder.layers.{layer}.{name}": s for name, s in block.items()})
    return shapes


def check(run, record):
    latest = run / "checkpoints" / "latest"
    weights = load_file(latest / "model.safetensors")
    expected = expected_shapes(weights["embedding.token"].shape[0])
    shapes = {name: list(t.shape) for name, t in weights.items()}
    assert shapes == expected, f"{shapes}, not {expected}"
    count = sum(t.numel() for t in weights.values())
    assert count == sum(map(math.prod, expected.values())) == record["num_parameters"], count
    moments = load_file(latest / "optimizer.safetensors")
    assert set(moments) == {f"{m}.{name}" for m in "mv" for name in weights}
    for name, tensor in weights.items():
        assert tensor.isfinite().all(), f"{name} is not finite"
        assert (moments[f"v.{name}"] >= 0).all(), f"v.{name} is negative"
        assert (moments[f"v.{name}"] > 0).any(), f"{name} had no gradient"
    with safe_open(latest / "model.safetensors", "pt") as file:
        assert json.loads(file.metadata()["lra.progress"])["step"] == 2
    print(f"ok: {len(weights)} tensors, {count} parameters")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        run, data = pathlib.Path(scratch) / "run", pathlib.Path(scratch) / "data"
        lra("data", "make", "listops", "--train", 40, "--val", 8, "--test", 8,
            "--out", data / "listops")
        record = json.loads(lra("train", "listops", "linformer", "--json", "--data", data,
                                "--out", run, *[w for s in SETTINGS for w in ("--set", s)]))
        check(run, record)


main()
