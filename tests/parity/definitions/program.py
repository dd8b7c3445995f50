"""Running the program whose results are compared."""
import functools
import json
import os
import re
import subprocess

from safetensors.numpy import load_file, save_file

PROGRAM = os.environ["LRA_PROGRAM"]


def lra(*words):
    words = [PROGRAM, *map(str, words), "--threads", "1"]
    return subprocess.run(words, capture_output=True, text=True)


def lra_json(*words):
    done = lra(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@functools.cache
def default_settings(name):
    rows = lra_json("help", name)
    mixer = {row["setting"].removeprefix("mixer."): row["default"].strip('"') for row in rows
             if row["setting"].startswith("mixer.")}
    return {key: json.loads(text) if re.fullmatch(r"true|false|-?[\d.]+(e-?\d+)?", text) else text
            for key, text in mixer.items()}


def apply_mixer(name, folder, settings, *more):
    """in.safetensors of the folder -> out.safetensors"""
    sets = [f"--set=mixer.{key}={json.dumps(value)}" for key, value in settings.items()]
    done = lra("mixer", "run", name, "--in", folder / "in.safetensors", "--out",
               folder / "out.safetensors", *sets, *more)
    assert done.returncode == 0, f"{name} {settings}: {done.stderr}"


def run_mixer(name, folder, tensors, settings, *more):
    """NumPy arrays in and out."""
    save_file(tensors, folder / "in.safetensors")
    apply_mixer(name, folder, settings, *more)
    return load_file(folder / "out.safetensors")
