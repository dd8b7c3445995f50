"""A wheel of tools/wheel serves an environment without compilers, and leaves it without a trace.

    LRA_WHEEL=dist/lra-*.whl python3 tests/python/wheel_check.py

pip installs it with what it needs (torch is a large download) into a fresh environment. Skipped
without LRA_WHEEL.
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).parents[2]
if not os.environ.get("LRA_WHEEL"):
    print("skipped: LRA_WHEEL names no wheel (tools/wheel)")
    sys.exit(77)
WHEEL = pathlib.Path(os.environ["LRA_WHEEL"]).resolve()
TOOLS = ("sh", "bash", "env", "uname", "cat", "seq")  # all that is on PATH besides the environment


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.scratch.name)
        cls.environment, tools = folder / "venv", folder / "tools"
        tools.mkdir()
        for tool in TOOLS:
            (tools / tool).symlink_to(shutil.which(tool))
        subprocess.run([sys.executable, "-m", "venv", str(cls.environment)], check=True)
        cls.python = str(cls.environment / "bin/python")
        cls.variables = {k: v for k, v in os.environ.items() if not k.startswith(("LRA_", "PYTHONPATH"))}
        cls.variables["PATH"] = f"{cls.environment / 'bin'}{os.pathsep}{tools}"
        cls.before = cls.files()
        cls.run_words(cls.python, "-m", "pip", "install", "--quiet", f"{WHEEL}[data,weights]")

    @classmethod
    def tearDownClass(cls):
        cls.run_words(cls.python, "-m", "pip", "uninstall", "--quiet", "--yes", "lra")
        left = {path for path in cls.files() - cls.before if path.parts[-1] == "lra" or "lra" in path.parts[0]}
        cls.scratch.cleanup()
        assert not left, left

    @classmethod
    def files(cls):
        """Of site-packages and of bin, relative to these."""
        folders = [*cls.environment.glob("lib/python*/site-packages"), cls.environment / "bin"]
        return {path.relative_to(f) for f in folders for path in f.rglob("*") if path.is_file()}

    @classmethod
    def run_words(cls, *words, **variables):
        ended = subprocess.run(words, cwd=cls.scratch.name, env={**cls.variables, **variables}, text=True,
                               capture_output=True)
        assert ended.returncode == 0, f"{words}: {ended.stdout}{ended.stderr}"
        return ended.stdout

    def test_the_command_is_on_the_path(self):
        self.assertIsNone(shutil.which("g++", path=self.variables["PATH"]))
        self.assertIn("rank", self.run_words("lra", "help", "linformer"))
        self.assertIn("linformer on listops", self.run_words("lra", "model", "compare", "listops", "linformer"))

    def test_importing_it_imports_nothing_large(self):
        loaded = self.run_words(self.python, "-c", "import lra, sys; print([m for m in ('torch', 'numpy') if m in sys.modules])")
        self.assertEqual(loaded.strip(), "[]")

    def test_the_examples_of_the_page_run(self):
        self.run_words(self.python, str(ROOT / "tests/python/docs_check.py"), LRA_INSTALLED="1")

    def test_programs_look_for_libraries_in_the_wheel_and_in_torch_alone(self):
        for file in self.environment.glob("lib/python*/site-packages/lra*/**/*"):
            if not file.is_file() or file.read_bytes()[:4] != b"\x7fELF":
                continue
            text = subprocess.run(["readelf", "-d", str(file)], check=True, capture_output=True, text=True).stdout
            for path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text):
                for part in path.split(":"):
                    self.assertTrue(part.startswith("$ORIGIN"), f"{file.name}: {path}")

    def test_it_asks_for_the_torch_that_it_serves(self):
        folders = [path.name for path in self.environment.glob("lib/python*/site-packages/lra/_torch*")]
        torch = self.run_words(self.python, "-c", "import importlib.metadata as m; print(m.version('torch'))")
        self.assertEqual(folders, ["_torch" + ".".join(torch.split(".")[:2])])

    def test_made_on_debian_12_it_serves_systems_with_glibc_2_34(self):
        version = re.search(r"manylinux_2_(\d+)", WHEEL.name)
        if not version:
            self.skipTest("auditwheel gave the wheel no tag")
        if int(platform.libc_ver()[1].split(".")[1]) > 36:
            self.skipTest("a newer C library than Debian 12's")
        self.assertLessEqual(int(version[1]), 34, WHEEL.name)

    def test_what_is_inside(self):
        names = zipfile.ZipFile(WHEEL).namelist()
        self.assertTrue(any(name.endswith("lra/configs/models/s4d.toml") for name in names))
        self.assertTrue(any(name.endswith("lra/configs/literature.json") for name in names))
        self.assertFalse([name for name in names if "test" in name or name.startswith("src/")])


if __name__ == "__main__":
    unittest.main()
