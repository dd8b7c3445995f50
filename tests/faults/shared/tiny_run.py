"""Runs of milliseconds a step, for the scripts that kill, stop and starve `lra train`."""
import json
import os
import pathlib
import subprocess
import time

PROGRAM = os.path.realpath(os.environ["LRA_PROGRAM"])
BUILD = os.path.dirname(PROGRAM)
# Threads that wait for each other would make a busy machine part of the measurement.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
# In a SLURM job signals have other meanings (src/base/stop_flag.h).
ENVIRONMENT.pop("SLURM_JOB_ID", None)
TIMEOUT_S = 120

SETTINGS = {"task.length": 64, "task.num_train": 200, "task.num_val": 40, "task.num_test": 40,
            "model.layers": 1, "model.heads": 2, "model.embed_dim": 16, "model.qkv_dim": 16,
            "model.mlp_dim": 16, "train.batch_size": 2, "train.steps": 1000000,
            "train.eval_every": 50, "train.eval_examples": 8, "train.test_examples": 8,
            "train.checkpoint_every": 5, "train.log_every": 1, "train.warmup_steps": 5,
            # One that does not depend on the number of steps, so that runs of other lengths compare.
            "train.schedule": "constant", "train.learning_rate": 1e-3}


def make_data(root):
    """ListOps expressions for every run below `root`; returns the data folder."""
    folder = pathlib.Path(root) / "data"
    subprocess.run([PROGRAM, "data", "make", "listops", "--train", "200", "--val", "40", "--test", "40",
                    "--out", str(folder / "listops"), "--quiet"], check=True,
                   stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    return folder


class Run:
    """One run folder, and the process that trains in it."""

    def __init__(self, root, name, data, model="transformer", **settings):
        self.folder, self.data, self.model = pathlib.Path(root) / name, data, model
        pathlib.Path(root).mkdir(parents=True, exist_ok=True)
        changed = {key.replace("__", "."): value for key, value in settings.items()}
        self.settings = {**SETTINGS, **changed}
        self.errors = pathlib.Path(root) / f"{name}.err"
        self.process = None

    def command(self):
        """Begins the run, or goes on with it where there is one: what a requeued job does."""
        common = ["--data", str(self.data), "--threads", "1"]
        if (self.folder / "record.json").exists():
            return [PROGRAM, "train", "--resume", str(self.folder), *common]
        sets = [word for key, value in self.settings.items() for word in ("--set", f"{key}={value}")]
        return [PROGRAM, "train", "listops", self.model, "--out", str(self.folder), *common, *sets]

    def start(self, **environment):
        """Starts the process; what it says goes to self.errors."""
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=errors,
                                            env={**ENVIRONMENT, **environment})
        return self

    def end(self):
        """Waits for the process; its exit code. A process that hangs is killed, and an error."""
        try:
            return self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def kill(self):
        """The end without a warning."""
        self.process.kill()
        self.process.wait()

    def to_the_end(self, **environment):
        """Runs in the foreground; the exit code."""
        return self.start(**environment).end()

    def said(self):
        """Standard error of the last process."""
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def checkpoints(self):
        return self.folder / "checkpoints"

    def latest(self):
        """Step of the newest checkpoint under its final name; 0 when there is none."""
        names = [path.name for path in self.checkpoints().glob("step_*")]
        return max((int(name[5:]) for name in names if name[5:].isdigit()), default=0)

    def metrics(self):
        """Whole lines of metrics.jsonl."""
        path = self.folder / "metrics.jsonl"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def logged(self):
        """The last step in metrics.jsonl; 0 when there is none."""
        return max((line["step"] for line in self.metrics()), default=0)

    def record(self):
        return json.loads((self.folder / "record.json").read_text(encoding="utf-8"))

    def wait_for(self, condition):
        """Until it holds, or the process has ended; whether it holds."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            if self.process.poll() is not None:
                return condition()
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.folder}: nothing happened for {TIMEOUT_S} s: {self.said()}")
            time.sleep(0.002)
        return True

    def wait_for_training(self, steps=0):
        """Until this process has logged a step, and about as many more as `steps`. Its event file
        begins with less than 200 bytes; a step adds some 280."""
        return self.wait_for(lambda: any(path.stat().st_size > 200 + 280 * steps for path in self.folder.glob(
            f"events.out.tfevents.*.{self.process.pid}")))

    def files(self):
        """The bytes of the newest checkpoint."""
        folder = self.checkpoints() / f"step_{self.latest()}"
        return {name: (folder / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer")}

    def result(self):
        """State that must not depend on interruptions: figures of the record, every line of metrics once."""
        record = self.record()
        keys = ("status", "test", "val", "best_val", "val_curve", "weights_hash", "steps", "tokens",
                "fingerprint")
        lines = [{k: v for k, v in line.items() if not k.endswith("_per_s")} for line in self.metrics()]
        return {key: record[key] for key in keys}, lines


class Loader:
    """The program `checkpoints load`: opens every checkpoint of a run as a resume does."""

    def __init__(self, build):
        self.process = subprocess.Popen([f"{build}/tests/faults/checkpoints", "load"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)

    def verdict(self, run):
        """'OK' and the steps, or what is wrong with one."""
        if not run.checkpoints().exists():
            return "OK"
        self.process.stdin.write(f"{run.checkpoints()}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def report(problems, limit=20):
    """Prints what went wrong; the exit code."""
    for problem in problems[:limit]:
        print("FAILED:", problem, flush=True)
    if len(problems) > limit:
        print(f"FAILED: and {len(problems) - limit} more", flush=True)
    return 1 if problems else 0
