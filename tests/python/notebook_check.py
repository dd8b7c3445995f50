"""A notebook, run by its own kernel: layers of cells, one line of progress, what a run looks like.

Needs nbclient, ipykernel, pandas and matplotlib, which tools/setup --with-tests installs.
"""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

NEEDED = ("nbclient", "ipykernel", "pandas", "matplotlib")
if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
    print(f"skipped: no {', '.join(missing)} (tools/setup --with-tests)")
    sys.exit(77)

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).parents[2]
SETTINGS = """
quick = {"train": {"steps": 6, "batch_size": 4, "eval_every": 3, "memory_check": "off"},
         "model": {"layers": 1, "heads": 2, "embed_dim": 16, "qkv_dim": 16, "mlp_dim": 16}}
"""
# A cell, and a pattern that its output matches; None: nothing is printed.
CELLS = (
    ("from __future__ import annotations\nimport lra, torch\nfrom torch import nn\nimport torch.nn.functional as F", None),
    ("WIDTH = 1\ndata = lra.data.make('listops', 'data/listops', train=64, val=16, test=40)" + SETTINGS, None),
    ("def scaled(x: torch.Tensor, by=WIDTH):\n    return F.gelu(x) * by", None),
    ("class Base(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n        self.mix = nn.Linear(dim, dim)", None),
    ("x = torch.zeros(3)\n%matplotlib inline\n@lra.mixer('cellular')\nclass Cell(Base):\n"
     "    def forward(self, x, mask=None):\n        x = x if mask is None else x * mask.unsqueeze(-1)\n"
     "        return scaled(self.mix(x.cumsum(1) / 100))", None),
    ("run = lra.arena.train('listops', Cell, settings=quick, data='data', out='runs/cell')", r"100%\|█+\| 6/6"),
    ("run", r"(?s)<lra.arena.Run Cell on Long ListOps.*test accuracy.*<svg"),
    ("model, split = run.load(), lra.data.load('listops', 'test', 'data')\n"
     "(model.predict(split).classes.numpy() == split.labels).mean() == run.test_accuracy", "True"),
    ("lra.arena.evaluate(run)['accuracy'] == run.test_accuracy", "True"),
    ("lra.arena.resume(run, settings={'train.steps': 8}, quiet=True).record['steps']", "8"),
    ("lra.arena.train('listops', 'cellular', settings=quick, data='data', out='runs/cell', quiet=True)",
     "(?s)^Error: runs/cell: already holds a run.*overwrite=True to replace it$"),
    ("again = lra.arena.train('listops', 'cellular', seed=[0, 1], settings=quick, data='data', out='runs/named', quiet=True)\n"
     "[one.record['model'] == run.record['model'] for one in again]", r"\[True, True\]"),
    # Another layer of the same name is another model, and both can be loaded.
    ("WIDTH = 3", None), ("def scaled(x, by=WIDTH):\n    return by * x", None),
    ("other = lra.arena.train('listops', Cell, settings=quick, data='data', out='runs/other', quiet=True)\n"
     "other.record['model'] != run.record['model'], other.load() is not None", r"\(True, True\)"),
    ("float((run.load().predict(split).probabilities - model.predict(split).probabilities).abs().sum()) > 0, "
     "run.load('step_6') is not None", r"\(True, True\)"),
    ("found = lra.arena.sweep('listops', Cell, {**quick, 'model.layers': [1, 2]}, data='data', out='runs/swept', quiet=True)\n"
     "from pathlib import Path\ntried = [path.parent for path in Path('runs/swept/tries').glob('*/record.json')]\n"
     "[lra.arena.load(place).step for place in (found.chosen[0], *tried)], lra.arena.evaluate(tried[0], 'val')['step']",
     r"\(\[6, 6\], 6\)"),
    ("run.curve()", "accuracy"), ("run.plot();", "image/png"), ("run.predictions().shape[0]", "40"),
    ("for late in range(3): pass\nclass Bad(nn.Module):\n    def forward(self, x):\n        return late * x\n"
     "lra.arena.train('listops', Bad, data='data')", "^Error: Bad uses late, which no cell binds at its top level"),
    ("dir(lra)", r"(?s)^\['Error',\s+'__version__',\s+'arena'"),
)


def shown(cell):
    """What a person sees: texts and types of the outputs; of lines that were redrawn the last."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append(f"{output.ename}: {output.evalue}")
        else:
            parts += [text for kind, text in output.data.items() if kind.startswith("text/")]
            parts += [kind for kind in output.data if not kind.startswith("text/")]
    return "".join(parts)


class Notebook(unittest.TestCase):
    def test_every_cell_says_what_it_should(self):
        variables = {
            **os.environ, "PYTHONPATH": str(ROOT / "python"), "LRA_CONFIGS": str(ROOT / "configs"),
            "LRA_BUILD": str(pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent), "OMP_NUM_THREADS": "1"}
        variables.pop("LRA_DATA", None)
        with tempfile.TemporaryDirectory() as scratch:
            kernel = pathlib.Path(scratch, "kernels/here")
            kernel.mkdir(parents=True)
            (kernel / "kernel.json").write_text(json.dumps({
                "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                "display_name": "here", "language": "python"}))
            os.environ["JUPYTER_PATH"] = scratch
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source, _ in CELLS])
            client = nbclient.NotebookClient(
                notebook, timeout=600, kernel_name="here", allow_errors=True,
                resources={"metadata": {"path": scratch}})
            client.execute(env=variables)
            for cell, (source, pattern) in zip(notebook.cells, CELLS):
                with self.subTest(source):
                    found = shown(cell)
                    if pattern is None:
                        self.assertEqual(found, "")
                    else:
                        self.assertRegex(found, pattern)
            progress = shown(notebook.cells[5])
            self.assertLess(progress.count("\n"), 8, progress)
            self.assertIn("\r", progress)
            (source,) = pathlib.Path(scratch, "runs/cell/source").glob("*.py")
            text = source.read_text()
            for part in ("class Cell(Base)", "class Base", "def scaled", "WIDTH = 1", "import torch.nn.functional as F"):
                self.assertIn(part, text)
            self.assertNotIn("zeros(3)", text)


if __name__ == "__main__":
    unittest.main()
