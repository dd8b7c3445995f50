"""The two sides of a comparison as processes: their words, their environment, their windows."""
import json
import os
import pathlib
import subprocess
import sys

import result_tables as tables
from rows import lra_settings, workload_of
from workload import default_batch

HERE = pathlib.Path(__file__).resolve().parent
KEEP_MEMORY = ("glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=4294967296:"
               "glibc.malloc.top_pad=67108864")


def peer_environment(a, tunables=KEEP_MEMORY):
    own = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(a.threads))
    # JAX would take most of a GPU's memory before it needs any.
    return {**os.environ, **own, "GLIBC_TUNABLES": tunables, "JAX_PLATFORMS": a.device,
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "HF_HUB_OFFLINE": "1"}


def probe(statement, a):
    """What a line of Python prints in a peer's environment, None where it fails: in a process of its own,
    so that this one stays small and off the GPU."""
    done = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True,
                          env=peer_environment(a))
    return done.stdout.strip() if done.returncode == 0 else None


def gpu_of_torch(a):
    """Its name, None without one."""
    return probe("import torch; print(torch.cuda.get_device_name())", a)


def jax_has_gpu(a):
    return probe("import jax; print(jax.default_backend())", a) == "gpu"


def batch_of(row, a):
    return a.batch or default_batch(row.get("workload", "text"), a.device)


class Timed:
    """A process that says "ready" and then times a window for every line that it reads."""

    def __init__(self, who, words, environment):
        self.who = who
        self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, env=environment)

    def expect(self, what):
        line = self.process.stdout.readline()
        while line and not line.startswith((what, "failed: ")):
            line = self.process.stdout.readline()
        if line.startswith("failed: "):
            raise RuntimeError(line.strip()[:120].replace("|", "/"))
        if not line:
            raise RuntimeError(f"{self.who} ended with {self.process.wait()}")
        return line

    def window(self):
        self.process.stdin.write("window\n")
        self.process.stdin.flush()
        return json.loads(self.expect("{"))

    def close(self):
        """What it still printed."""
        rest = self.process.communicate()[0]
        if self.process.returncode != 0:
            raise RuntimeError(f"{self.who} ended with {self.process.returncode}")
        return rest


def peer_side(peer, row, length, a, window_seconds, tunables=KEEP_MEMORY, file=""):
    """`file`: the examples of a batch, in place of random tokens; a step then takes batch_of() of them."""
    kind, name, dtype = peer[0], peer[1], peer[3]
    words = [sys.executable, HERE / "peer_process.py", kind, name, row.get("workload", "text"),
             batch_of(row, a), length, row["drop"], a.mode, dtype, a.device, a.threads, window_seconds,
             file]
    return Timed("peer", words, peer_environment(a, tunables))


def lra_words(row, peer, length, a):
    sets = tables.set_words(lra_settings(row, peer, length))
    return ["bench", "--task", workload_of(row).task, "--preset", "release", "--measure-one", row["model"],
            "--lengths", length, "--batch", batch_of(row, a), "--mode", a.mode, "--dtype", a.dtype,
            "--windows", a.windows, "--window-seconds", a.window_seconds, "--whole-steps",
            "--threads", a.threads, "--device", a.device, *sets]


def lra_side(words):
    return Timed("lra", [tables.program(), *words, "--in-turn"], os.environ)
