"""Small training runs for the scripts beside it: every model in seconds, with one or more threads."""
import contextlib
import hashlib
import json
import os
import pathlib
import random
import socket
import struct
import subprocess

PROGRAM = os.path.realpath(os.environ["LRA_PROGRAM"])
# Waiting threads that spin would starve each other where there are more of them than cores.
ENVIRONMENT = {**os.environ, "OMP_WAIT_POLICY": "passive"}
# Sizes that leave rows, vectors and blocks over at every cut.
SETTINGS = {"listops": ["task.length=200", "train.batch_size=6"],
            "pathfinder": ["train.batch_size=2"]}
SIZES = {"listops": (300, 30, 30), "pathfinder": (120, 12, 12)}


def models():
    """Names of all models."""
    done = subprocess.run([PROGRAM, "list", "models", "--json"], check=True, capture_output=True,
                          text=True)
    return [model["name"] for model in json.loads(done.stdout)["models"]]


def make_data(root, tasks=tuple(SIZES)):
    """Generated data of the tasks under root/data."""
    for task in tasks:
        train, val, test = map(str, SIZES[task])
        subprocess.run([PROGRAM, "data", "make", task, "--train", train, "--val", val, "--test",
                        test, "--out", f"{root}/data/{task}", "--threads", "1", "--quiet"],
                       check=True, stdout=subprocess.DEVNULL)


def command(root, run, task, model, steps, threads=1, settings=()):
    """The command of one run, which validates twice and tests."""
    sets = [*SETTINGS[task], f"train.steps={steps}", f"train.eval_every={max(1, steps // 2)}",
            "train.warmup_steps=3", "train.log_every=1", "train.eval_examples=12",
            "train.test_examples=12", *settings]
    words = [PROGRAM, "train", task, model, "--data", f"{root}/data", "--out", f"{root}/{run}",
             "--threads", str(threads), "--quiet"]
    return words + [word for each in sets for word in ("--set", each)]


def run(words, code=0):
    """Runs a command that must end with that code; returns what it printed."""
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode != code:
        raise RuntimeError(f"{' '.join(words[1:])}: ended with {done.returncode}, not {code}: "
                           f"{done.stderr[-500:]}")
    return done.stdout


def train(root, name, task, model, steps, threads=1, settings=()):
    """A whole run; returns its folder."""
    run(command(root, name, task, model, steps, threads, settings))
    return pathlib.Path(root) / name


def free_port():
    """A port that nobody uses, below those that the system gives to connections by itself: one of those may be
    gone by the time that somebody listens at it."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_768)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port


def rank_environment(rank, ranks, port):
    """The environment that torchrun gives to one process of a distributed run."""
    return {**ENVIRONMENT, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def train_on_ranks(root, name, task, model, steps, ranks, settings=()):
    """A whole run in several processes; returns its folder."""
    words, port = command(root, name, task, model, steps, settings=settings), free_port()
    processes = [subprocess.Popen(words, env=rank_environment(rank, ranks, port),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                 for rank in range(ranks)]
    said = [process.communicate()[1] for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError(f"{' '.join(words[1:])} in {ranks} processes: {said}")
    return pathlib.Path(root) / name


def logged_steps(folder):
    """Lines of metrics that are complete; every step writes one."""
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def tensor_bytes(path):
    """The data of a safetensors file, without the header, which also says whose it is."""
    content = path.read_bytes()
    return content[8 + struct.unpack("<Q", content[:8])[0]:]


def state(folder):
    """State that must be equal bit for bit: the tensors of the last checkpoint, and every figure."""
    files = {name: hashlib.sha256(tensor_bytes(folder / "checkpoints/latest" / name)).hexdigest()
             for name in ("model.safetensors", "optimizer.safetensors")}
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        for speed in ("tokens_per_s", "examples_per_s"):
            line.pop(speed, None)
    record = json.loads((folder / "record.json").read_text())
    figures = {name: record[name] for name in ("status", "steps", "tokens", "weights_hash", "val",
                                               "best_val", "test", "val_curve")}
    return {**files, "metrics": lines, **figures}


def differences(one, other):
    """Names of what differs between two states."""
    return [name for name in one if one[name] != other[name]]


def differing_tensors(one, other):
    """Names of the tensors of the optimizer's state that differ, layers taken together."""
    def tensors(folder):
        content = (folder / "checkpoints/latest/optimizer.safetensors").read_bytes()
        begin = 8 + struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:begin])
        header.pop("__metadata__", None)
        return {name: content[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]]
                for name, t in header.items()}
    of_one, of_other = tensors(one), tensors(other)
    return sorted(name[2:] for name in of_one
                  if name.startswith("m.") and of_one[name] != of_other[name])


def metadata_bytes(folder):
    """Bytes of what a checkpoint holds beside tensors: the progress of the run."""
    with (folder / "checkpoints/latest/model.safetensors").open("rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return len(json.dumps(header["__metadata__"]))
