"""Tests of tools/carry --gpu and tools/use_torch.py, with folders and commands that stand in for torch, compilers and pip."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
NVCC = "echo 'Cuda compilation tools, release 13.0, V13.0.88'"
# Commands that tools/carry --gpu calls. Tests make nvcc and cmake themselves, and python3 is that of this test.
COMMANDS = "bash cat chmod cut dirname du env grep head mkdir realpath rm sed sort tar".split()


class Carry(unittest.TestCase):
    """tools/carry of a copy of tools/, with no command but those in a folder bin/."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        ignored = shutil.ignore_patterns("node_modules", "__pycache__")
        shutil.copytree(ROOT / "tools", self.folder / "tools", ignore=ignored)
        (self.folder / "bin").mkdir()
        for name in COMMANDS:
            (self.folder / "bin" / name).symlink_to(shutil.which(name))
        (self.folder / "bin/python3").symlink_to(os.path.realpath(sys.executable))
        # Nothing is missing on this system, and nothing is built.
        self.command("tools/setup", 'echo "$LRA_TORCH/share/cmake"')
        self.command("tools/build", 'echo "$*" >built')

    def command(self, path, script):
        path = self.folder / path
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def torch(self, version="2.11.0", cuda="13"):
        """A LibTorch; without `cuda` one for CPUs."""
        torch = self.folder / "torch"
        (torch / "share/cmake/Torch").mkdir(parents=True)
        (torch / "share/cmake/Torch/TorchConfigVersion.cmake").write_text(f'set(PACKAGE_VERSION "{version}")\n')
        (torch / "lib").mkdir()
        if cuda:
            (torch / "lib/libc10_cuda.so").write_bytes(b"\x7fELF\0libcudart.so.%s\0libcudart.so.%s\0" % ((cuda.encode(),) * 2))
        return str(torch)

    def carry(self, *arguments, torch=""):
        environment = {"PATH": str(self.folder / "bin"), "CUDA_HOME": "/nowhere", "LRA_TORCH": torch}
        done = subprocess.run([str(self.folder / "tools/carry"), *arguments], capture_output=True, text=True, env=environment)
        return done.returncode, done.stderr.splitlines()

    def refused(self, words, *arguments, torch=""):
        code, lines = self.carry(*arguments, torch=torch)
        self.assertEqual((2, 1), (code, len(lines)), lines)
        self.assertIn(words, lines[0])
        self.assertFalse((self.folder / "built").exists())

    def test_what_is_no_version_of_torch_is_refused(self):
        for arguments in ((), ("2.11",), ("latest",), ("2.11.0+cu130",)):
            self.refused("expected a version of torch, such as 2.11.0", "--gpu", *arguments)
        self.refused("unexpected '2.12.0'", "--gpu", "2.11.0", "2.12.0")
        self.refused("--gpu 2.9.1: expected torch 2.11 or later", "--gpu", "2.9.1")

    def test_a_compiler_for_gpus_is_needed(self):
        self.refused("carry: no nvcc in PATH or in /nowhere/bin", "--gpu", "2.11.0", torch=self.torch())

    def test_the_named_torch_must_be_the_one_asked_for(self):
        self.command("bin/nvcc", NVCC)
        self.refused("is 2.11.0, not 2.12.0", "--gpu", "2.12.0", torch=self.torch())

    def test_a_torch_for_cpus_is_refused(self):
        self.command("bin/nvcc", NVCC)
        self.refused("is a build for CPUs", "--gpu", "2.11.0", torch=self.torch(cuda=""))

    def test_compiler_and_torch_are_of_one_cuda(self):
        self.command("bin/nvcc", NVCC)
        self.refused("is of CUDA 13, torch 2.11.0 of CUDA 12", "--gpu", "2.11.0", torch=self.torch(cuda="12"))

    def test_without_a_network_one_line_names_the_way_out(self):
        self.command("bin/nvcc", NVCC)
        self.command("bin/python3", 'mkdir -p "$3/bin"\nprintf "#!/bin/sh\\necho ERROR: no index\\nexit 1\\n" >"$3/bin/python"\n'
                     'chmod +x "$3/bin/python"')
        code, lines = self.carry("--gpu", "2.11.0")
        self.assertEqual((2, 2), (code, len(lines)), lines)
        self.assertIn("pip installs torch 2.11.0 into build-gpu/venv", lines[0])
        self.assertIn("pip could not install torch 2.11.0 (see build-gpu/pip.log); check the network, or set LRA_TORCH", lines[1])
        self.assertEqual("ERROR: no index\n", (self.folder / "build-gpu/pip.log").read_text())

    def test_the_archive_holds_what_the_scripts_need(self):
        self.command("bin/nvcc", NVCC)
        shutil.copy(ROOT / "LICENSE", self.folder)
        for name in ("bench", "configs", "python", "tests"):
            shutil.copytree(ROOT / name, self.folder / name)
        # cmake --install build-gpu --component gpu --strip --prefix PREFIX
        self.command("bin/cmake", 'mkdir -p "$7/build"; echo program >"$7/build/lra"')
        code, lines = self.carry("--gpu", "2.11.0", torch=self.torch())
        self.assertEqual((0, 1), (code, len(lines)), lines)
        self.assertEqual("gpu lra test_gpu\n", (self.folder / "built").read_text())
        subprocess.run([sys.executable, "-m", "tarfile", "-e", "build-gpu/lra-torch2.11.0.tar.xz"], cwd=self.folder, check=True)
        carried = self.folder / "lra-torch2.11.0"
        self.assertEqual("torch 2.11.0 for CUDA 13\n", (carried / "build/made_for").read_text())
        for name in ("build/lra", "tests/gpu.sh", "tests/gpu_minutes.sh", "tests/e2e/lib.bash", "bench/peers/run",
                     "bench/result_tables.py", "configs/tasks/listops.toml", "tools/use_torch.py"):
            self.assertTrue((carried / name).is_file(), name)


class UseTorch(unittest.TestCase):
    """tools/use_torch.py of a folder whose program says what it finds."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        for name in ("tools", "build", "python/torch"):
            (self.folder / name).mkdir(parents=True)
        shutil.copy(ROOT / "tools/use_torch.py", self.folder / "tools")
        (self.folder / "build/made_for").write_text("torch 2.11.0 for CUDA 13\n")
        self.program('cat "$(dirname "$0")/torch/version.py"')

    def program(self, script):
        (self.folder / "build/lra").write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / "build/lra").chmod(0o755)

    def torch(self, version="2.11.0+cu130", cuda="13.0"):
        folder = self.folder / "python/torch"
        (folder / "__init__.py").write_text("raise SystemError('imported')\n")
        (folder / "version.py").write_text(f"__version__ = {version!r}\ncuda = {cuda!r}\n")

    def use(self):
        # -S: the Python that runs this test may have a torch of its own.
        done = subprocess.run([sys.executable, "-S", "tools/use_torch.py"], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(self.folder / "python")})
        return done.returncode, done.stdout, done.stderr

    def refused(self, words):
        code, _, text = self.use()
        self.assertEqual((2, 1), (code, text.count("\n")), text)
        self.assertIn(words, text)

    def test_the_program_finds_the_torch_that_is_there(self):
        self.torch()
        for _ in range(2):
            code, shown, errors = self.use()
            self.assertEqual((0, ""), (code, errors))
            self.assertIn("2.11.0+cu130", shown)
        self.assertTrue((self.folder / "build/torch").samefile(self.folder / "python/torch"))

    def test_another_torch_is_refused(self):
        for version, cuda, words in (("2.13.0+cu130", "13.0", "torch 2.13.0 for CUDA 13"), ("2.11.0+cpu", None, "torch 2.11.0 for CPUs"),
                                     ("2.11.0+cu128", "12.8", "torch 2.11.0 for CUDA 12")):
            self.torch(version, cuda)
            self.refused(f"{words}; this program was made for torch 2.11.0 for CUDA 13")

    def test_a_python_without_torch_is_refused(self):
        shutil.rmtree(self.folder / "python/torch")
        self.refused("has no torch; run this with a Python that has torch 2.11.0 for CUDA 13")

    def test_a_folder_that_was_not_packed_is_refused(self):
        (self.folder / "build/made_for").unlink()
        self.refused("this works in a folder that tools/carry --gpu packed")

    def test_a_program_that_does_not_start_is_named(self):
        self.torch()
        self.program("echo 'lra: liblra_python.so: cannot be loaded' >&2; exit 2")
        self.refused("exit code 2: lra: liblra_python.so: cannot be loaded")
        (self.folder / "build/lra").write_bytes(b"\x7fELF")
        self.refused("does not start: Exec format error")


if __name__ == "__main__":
    unittest.main()
