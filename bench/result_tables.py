"""Helpers of the table scripts of this folder: calls of the program, Markdown tables, provenance."""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

MODELS = ("transformer", "local", "sparse_transformer", "longformer", "linformer", "reformer",
          "sinkhorn", "synthesizer", "bigbird", "linear_transformer", "performer")


def program():
    """The program under test: LRA_PROGRAM, as for the scripts in tests/."""
    if "LRA_PROGRAM" not in os.environ:
        sys.exit(f"{sys.argv[0]}: LRA_PROGRAM is not set; expected the path of lra (build/lra)")
    return os.environ["LRA_PROGRAM"]


def run_json(words):
    """Output of `lra WORDS --json`; exits with its message if it fails."""
    done = subprocess.run([program(), *map(str, words), "--json", "--quiet"],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{sys.argv[0]}: exit code {done.returncode} of: lra {' '.join(map(str, words))}")
    return json.loads(done.stdout)


def without_scratch(text):
    """A text without the paths of temporary folders."""
    return re.sub(rf"{re.escape(tempfile.gettempdir())}/tmp\w+/", "", text)


def busy_processors(seconds=1.0):
    """The average number of processors that were busy while this call slept."""
    def busy():
        ticks = list(map(int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
        return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # all but idle and iowait
    before, start = busy(), time.monotonic()
    time.sleep(seconds)
    return (busy() - before) / (time.monotonic() - start)


def warn_if_loaded():
    """Before anything is measured: says so if other programs run, as `lra bench` does. Returns how many
    processors they keep busy, 0 if the machine is quiet."""
    busy = round(busy_processors(), 1)
    if busy < 0.2:
        return 0.0
    print(f"other programs keep {busy} processors busy: the figures will not represent this machine",
          file=sys.stderr, flush=True)
    return busy


@functools.cache
def provenance(threads, device="cpu"):
    """Provenance of a record of this program, on this machine, today."""
    words = ["bench", "--models", "transformer", "--lengths", 64, "--batch", 1, "--threads", threads,
             "--windows", 1, "--window-seconds", 0, "--device", device]
    return run_json(words)[0]["provenance"]


def set_words(settings):
    """Words of a command for "KEY=VALUE" texts."""
    return [word for setting in settings for word in ("--set", setting)]


def finished_run(folder, words, a):
    """The record of `lra train WORDS --out folder`: one that is done is not made again, one that was
    stopped goes on. `a` has data and threads."""
    record, common = folder / "record.json", ("--data", a.data, "--threads", a.threads)
    if not record.exists():
        run_json(["train", *words, "--out", folder, *common])
    elif json.loads(record.read_text())["status"] != "done":
        run_json(["train", "--resume", folder, *common])
    return json.loads(record.read_text())


def markdown(header, rows):
    """A Markdown table; every column but the first is right-aligned."""
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def where_measured(provenance):
    """One line that says with what and on what a record was made."""
    p = provenance
    revision = p["git_revision"][:12] + ("+changes" if p["git_dirty"] else "")
    gpu = "" if p.get("device", "cpu") == "cpu" else f"{p['device']}, "
    return (f"lra {p['lra_version']} ({revision}), torch {p['torch_version']}, "
            f"{gpu}{p['processor']}, {p['isa']}, {p['threads']} thread(s), {p['host_os']}; "
            f"{p['started_utc'][:10]}")
