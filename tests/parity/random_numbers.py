"""The random numbers of tests/parity/definitions against published answers and the program.

Other scripts take from there what a mixer draws and no file holds. Here fresh weights of a mixer
must have the same bits, and its features of another kind of draw the same values.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

try:
    from safetensors.numpy import load_file, save_file
except ImportError:
    print("skipped: no safetensors package")
    sys.exit(77)

from definitions import draws
from definitions.philox import philox4x32

WIDTH, HEADS, HEAD_DIM, FEATURES = 10, 2, 6, 15
# Key, counter, answer: "philox4x32 10" in the file kat_vectors of Random123.
KNOWN_ANSWERS = [
    (0, (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((1 << 64) - 1, (0xFFFFFFFF,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (0x299F31D0A4093822, (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


def fresh_performer(seed):
    """{tensor: values} that the program draws: queries, keys, values, output, features in turn."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        save_file({"x": np.zeros((1, 4, WIDTH), np.float32)}, folder / "in.safetensors")
        words = ["mixer", "run", "performer", "--in", folder / "in.safetensors", "--out",
                 folder / "out.safetensors", "--seed", seed, "--heads", HEADS, "--head-dim",
                 HEAD_DIM, "--set", f"mixer.num_features={FEATURES}"]
        subprocess.run([os.environ["LRA_PROGRAM"], *map(str, words)], check=True,
                       stdout=subprocess.DEVNULL)
        return load_file(folder / "out.safetensors")


def main():
    for key, counter, answer in KNOWN_ANSWERS:
        assert philox4x32(counter, key) == answer, f"Philox of {counter} under {key:x}"
    print("ok: the published answers")
    for seed in (0, 7, 2**40 + 3):
        program, inner = fresh_performer(seed), HEADS * HEAD_DIM
        parts = [draws.xavier(draws.weight_key(seed, f"qkv.weight.{n}"), inner, WIDTH) for n in range(3)]
        output = draws.xavier(draws.weight_key(seed, "output.weight"), WIDTH, inner)
        assert np.array_equal(program["qkv.weight"], np.concatenate(parts)), f"seed {seed}: qkv"
        assert np.array_equal(program["output.weight"], output), f"seed {seed}: output"
        features = draws.performer_features(draws.weight_key(seed, "features"), FEATURES, HEAD_DIM)
        error = np.abs(program["features"] - features).max()
        assert error <= 1e-6, f"seed {seed}: features differ by {error:.1e}"
        print(f"ok: seed {seed}: weights have the same bits, features differ by {error:.1e}")


main()
