"""An environment made by `pip install` works on its own: program, library and presets."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent
CONSOLE = "from lra._program import main; main()"


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (BUILD / "CMakeCache.txt").is_file() or not shutil.which("cmake"):
            raise unittest.SkipTest("no build folder to install from")
        cls.scratch = tempfile.TemporaryDirectory()
        cls.site = pathlib.Path(cls.scratch.name, "site")
        subprocess.run(
            ["cmake", "--install", str(BUILD), "--component", "python", "--prefix", str(cls.site)],
            check=True, stdout=subprocess.DEVNULL)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "python/lra", cls.site / "lra", dirs_exist_ok=True, ignore=ignored)
        cls.variables = {k: v for k, v in os.environ.items() if not k.startswith("LRA_")}
        cls.variables["PYTHONPATH"] = str(cls.site)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def run_python(self, *words, path=""):
        variables = {**self.variables, "PYTHONPATH": path + self.variables["PYTHONPATH"]}
        return subprocess.run(
            [sys.executable, *words], cwd=self.scratch.name, env=variables, capture_output=True, text=True)

    def test_the_command_and_the_module_are_the_program(self):
        for words in (["-c", CONSOLE], ["-m", "lra"]):
            ended = self.run_python(*words, "help", "linformer")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertIn("rank", ended.stdout)

    def test_presets_are_found(self):
        ended = self.run_python("-c", CONSOLE, "model", "compare", "listops", "linformer")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_layers_load(self):
        ended = self.run_python("-c", "import lra; print(lra.nn.Local(8))")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    @unittest.skipUnless(shutil.which("readelf"), "no readelf")
    def test_libraries_are_looked_for_beside_and_in_torch_alone(self):
        for file in self.site.glob("lra/_torch*/*"):
            text = subprocess.run(["readelf", "-d", str(file)], check=True, capture_output=True, text=True).stdout
            paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)
            self.assertEqual(paths, ["$ORIGIN:$ORIGIN/../../torch/lib"], file.name)

    def test_another_torch_is_one_clear_line(self):
        other = pathlib.Path(self.scratch.name, "other/torch-99.1.0.dist-info")
        other.mkdir(parents=True)
        (other / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 99.1.0\n")
        ended = self.run_python("-c", CONSOLE, "list", "models", path=f"{other.parent}{os.pathsep}")
        self.assertEqual((ended.returncode, len(ended.stderr.splitlines())), (2, 1), ended.stderr)
        self.assertIn("torch 99.1 is installed, and this package was built for", ended.stderr)


if __name__ == "__main__":
    unittest.main()
