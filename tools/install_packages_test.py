"""Tests of install_packages.py: the choice of torch, against indexes of small stand-in wheels."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import install_packages
from install_packages import Build, choose

TOOLS = pathlib.Path(__file__).resolve().parent


class Choice(unittest.TestCase):
    def choice(self, *, card, configured=(), of_pytorch=(), releases=("2.13.0", "2.15.0")):
        return choose(list(releases), card, list(configured), lambda: list(of_pytorch))

    def test_without_a_card_a_configured_build_for_cpus_comes_first(self):
        self.assertEqual(Build("2.13.0+cpu", "CPU"),
                         self.choice(card=False, configured=["2.13.0+cpu", "2.13.0"], of_pytorch=["2.13.0+cpu"]))

    def test_without_a_card_and_such_a_build_pytorchs_index_is_asked(self):
        self.assertEqual(Build("2.13.0+cpu", "CPU", ("--index-url", install_packages.CPU_INDEX)),
                         self.choice(card=False, configured=["2.13.0"], of_pytorch=["2.14.0+cpu", "2.13.0+cpu"]))

    def test_the_large_build_is_taken_where_no_other_can_be_had(self):
        self.assertEqual(Build("2.13.0", "CUDA"), self.choice(card=False, configured=["2.15.0", "2.13.0"]))

    def test_with_a_card_the_build_for_cuda_is_taken_even_beside_a_local_one_for_cpus(self):
        self.assertEqual(Build("2.13.0", "CUDA"), self.choice(card=True, configured=["2.13.0+cpu", "2.13.0"]))
        self.assertEqual(Build("2.13.0+cu130", "CUDA"), self.choice(card=True, configured=["2.13.0+cu130", "2.13.0"]))

    def test_a_card_without_a_build_for_cuda_gets_the_one_for_cpus(self):
        self.assertEqual(Build("2.13.0+cpu", "CPU"), self.choice(card=True, configured=["2.13.0+cpu"]))

    def test_a_python_too_new_for_the_release_gets_a_later_one(self):
        self.assertEqual(Build("2.15.0", "CUDA"), self.choice(card=True, configured=["2.15.0"]))
        self.assertEqual("2.15.0+cpu", self.choice(card=False, configured=["2.15.0"], of_pytorch=["2.15.0+cpu"]).version)

    def test_nothing_is_chosen_where_no_index_answers(self):
        self.assertIsNone(self.choice(card=False))

    def test_disk_space_is_counted_where_it_is_needed(self):
        with tempfile.TemporaryDirectory() as folder:
            lack = install_packages.lack_of_space(Build("2.13.0", "CUDA"), folder, folder, free=lambda _: 7.7)
            self.assertIn("only 7.7 GB are free; torch for CUDA needs 7.8 GB", lack)
            self.assertEqual("", install_packages.lack_of_space(Build("2.13.0+cpu", "CPU"), folder, folder, free=lambda _: 1.6))


class StandIns(unittest.TestCase):
    """pip itself, with indexes in folders."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        for where, versions in {"configured": ("2.13.0",), "local": ("2.13.0+cpu",), "pytorch": ("2.13.0+cpu",)}.items():
            for version in versions:
                cls.wheel(cls.folder / where / "torch", "torch", version)
            links = [f'<a href="{path.name}">{path.name}</a>' for path in (cls.folder / where / "torch").iterdir()]
            (cls.folder / where / "torch/index.html").write_text("<!DOCTYPE html>" + "\n".join(links))
        (cls.folder / "wanted.txt").write_text("torch==2.13.0  # the library\n")
        subprocess.run([sys.executable, "-m", "venv", str(cls.folder / "venv")], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @staticmethod
    def wheel(folder, name, version):
        folder.mkdir(parents=True, exist_ok=True)
        info = f"{name}-{version}.dist-info"
        with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
            file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(f"{info}/RECORD", "")

    def install(self, *, cpu_index="pytorch", **variables):
        """The version of torch that is there afterwards, and what was said."""
        python = str(self.folder / "venv/bin/python")
        subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "torch"], check=True, capture_output=True)
        program = (f"import sys; sys.path.insert(0, {str(TOOLS)!r}); import install_packages as p; "
                   f"p.CPU_INDEX = {(self.folder / cpu_index).as_uri()!r}; p.has_nvidia_card = lambda: False; sys.exit(p.main())")
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        done = subprocess.run([python, "-c", program, str(self.folder / "wanted.txt")], capture_output=True, text=True,
                              env={**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": (self.folder / "configured").as_uri(),
                                   **variables})
        self.assertEqual(0, done.returncode, done.stderr)
        shown = subprocess.run([python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True)
        return next(line for line in shown.stdout.splitlines() if line.startswith("torch==")), done.stderr

    def test_the_index_of_builds_for_cpus_is_used(self):
        version, said = self.install()
        self.assertEqual("torch==2.13.0+cpu", version)
        self.assertIn("0.3 GB to download, 1.2 GB on the disk", said)
        self.assertNotIn("CUDA", said)

    def test_a_local_wheel_comes_before_it(self):
        self.assertEqual("torch==2.13.0+cpu", self.install(
            cpu_index="nowhere", PIP_FIND_LINKS=str(self.folder / "local/torch"))[0])

    def test_the_size_of_the_large_build_is_said(self):
        version, said = self.install(cpu_index="nowhere")
        self.assertEqual("torch==2.13.0", version)
        self.assertIn("2.8 GB to download, 5.0 GB on the disk", said)


if __name__ == "__main__":
    unittest.main()
