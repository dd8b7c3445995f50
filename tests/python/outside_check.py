"""Layers of ten outside packages train in the arena and stand in one report.

Needs the packages of tests/python/requirements.txt, which this command installs from the network:

    tools/make_venv build/outside-venv tests/python/requirements.txt
"""
import math
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import own_venv

own_venv.enter("build/outside-venv", "tests/python/requirements.txt")

sys.path.insert(0, str(ROOT / "python"))
os.environ["LRA_BUILD"] = str(pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent)
os.environ["LRA_CONFIGS"] = str(ROOT / "configs")
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests/python/outside"), str(ROOT / "python")])

import lra

# As they are, or with the few lines of outside_layers.py; and what their constructors need besides
# width, heads and length.
LAYERS = {
    "performer_pytorch:SelfAttention": {},
    "reformer_pytorch:LSHSelfAttention": {"bucket_size": 32},
    "linformer:LinformerSelfAttention": {"k": 32},
    "sinkhorn_transformer.sinkhorn_transformer:SinkhornSelfAttention": {"bucket_size": 32},
    "local_attention.transformer:LocalMHA": {"window_size": 32},
    "linear_attention_transformer.linear_attention_transformer:SelfAttention": {},
    "outside_layers:BigBird": {},
    "outside_layers:Longformer": {},
    "s5:S5": {},
    "mega_pytorch:MegaLayer": {},
    "outside_layers:mamba": {},
}
SETTINGS = {
    "train.steps": 20, "train.batch_size": 4, "train.eval_every": 20, "train.eval_examples": 16,
    "train.test_examples": 16, "train.trim_padding": False, "train.memory_check": "off",
    "task.length": 128, "model.layers": 2, "model.heads": 2, "model.embed_dim": 32,
    "model.qkv_dim": 32, "model.mlp_dim": 32, "model.pooling": "mean",
}


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        os.environ["LRA_DATA"] = str(folder / "data")
        lra.data.make("listops", folder / "data" / "listops", train=64, val=16, test=16)
        for name, arguments in LAYERS.items():
            run = lra.arena.train("listops", name, arguments=arguments, settings=SETTINGS,
                                  out=folder / "runs" / name, quiet=True)
            assert run.status == "done", (name, run.status)
            assert math.isfinite(run.record["test"]["loss"]), name
            print(f"ok: {name}: {run.record['num_parameters']} parameters, {run.division}")
        rows = {row["model"] for row in lra.results(folder / "runs")}
        assert rows == set(LAYERS), rows
        page = lra.report(folder / "runs", out=folder / "report.html").path.read_text()
        for name in LAYERS:
            assert name.partition(":")[2] in page, name
        lra._program.run(["report", str(folder / "runs"), "--check"])
    print(f"ok: one report of {len(LAYERS)} layers")


if __name__ == "__main__":
    main()
