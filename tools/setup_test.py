"""Tests of tools/setup, on systems that stand-in commands and files pretend."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent
FEDORA = 'NAME="Fedora Linux"\nID=fedora\n'
ROCKY = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\n'
MINT = 'NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n'
TUMBLEWEED = 'NAME="openSUSE Tumbleweed"\nID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n'
MANJARO = 'NAME="Manjaro Linux"\nID=manjaro\nID_LIKE=arch\n'
ALPINE = 'NAME="Alpine Linux"\nID=alpine\n'


def packages(command):
    """What a shell command with the functions of packages.bash prints, in lines."""
    done = subprocess.run(["bash", "-c", f"set -euo pipefail; source {TOOLS}/packages.bash; {command}"],
                          capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


class Names(unittest.TestCase):
    def system(self, text):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            return packages(f"system_of {file.name}")

    def names(self, system):
        return packages(f"printf '%s\\n' \"${{needs[@]}}\" | names_on {system}")

    def test_a_system_goes_by_its_name_or_by_that_of_its_kin(self):
        for text, name in ((FEDORA, "fedora"), (ROCKY, "rocky"), (MINT, "ubuntu"), (TUMBLEWEED, "opensuse-tumbleweed"),
                           (MANJARO, "arch"), (ALPINE, "alpine")):
            self.assertEqual([name], self.system(text))
        self.assertEqual(["linux"], packages("system_of /nowhere"))

    def test_packages_go_by_the_names_of_the_system(self):
        self.assertIn("libcurl4-openssl-dev", self.names("debian"))
        self.assertIn("gcc-c++", self.names("rocky"))
        self.assertIn("nlohmann_json-devel", self.names("opensuse-tumbleweed"))
        self.assertIn("nlohmann-json", self.names("arch"))
        self.assertEqual([], self.names("alpine"))

    def test_every_row_names_a_package_on_every_system_or_says_that_it_has_none(self):
        rows = packages("printf '%s\\n' \"${needs[@]}\"")
        for row in rows:
            self.assertEqual(5, len(row.split(" | ")), row)
        self.assertEqual(len(rows), len(self.names("debian")))
        self.assertEqual(["header rapidcheck.h", "header gloo/context.h"],
                         packages("printf '%s\\n' \"${needs[@]}\" | without_package arch"))

    def test_versions_are_compared_as_versions(self):
        self.assertEqual(["older"], packages("is_older 3.9 3.10 && echo older"))
        for version in ("3.10", "3.10.1", "11"):
            self.assertEqual(["not"], packages(f"is_older {version} 3.10 || echo not"))


class Machine(unittest.TestCase):
    """tools/setup of a copy of tools/, where apt-get, g++ and cmake are stand-ins that write down their calls."""

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        shutil.copytree(TOOLS, self.folder / "tools", ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
        (self.folder / "bin").mkdir()
        for name in ("apt-get", "sudo", "pip", "curl"):
            self.command(name, f'echo "{name} $*" >>"{self.folder}/calls"; exit 1')

    def command(self, name, script):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def setup(self, **variables):
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", **variables}
        for name in ("CXX", "LRA_TORCH", "CONDA_PREFIX"):
            if name not in variables:
                environment.pop(name, None)
        done = subprocess.run([str(self.folder / "tools/setup")], capture_output=True, text=True, env=environment)
        calls = self.folder / "calls"
        return done.returncode, done.stderr.splitlines(), calls.read_text() if calls.exists() else ""

    def test_an_old_compiler_is_refused_in_one_line_before_anything_is_downloaded(self):
        self.command("g++", 'if [ "$1" = -dumpversion ]; then echo 9; fi')
        self.assertEqual((2, ["setup: g++ is version 9; needed is g++ 11 or newer (set CXX to name another compiler)"], ""),
                         self.setup())

    def test_the_named_compiler_counts(self):
        self.command("clang++-13", 'if [ "$1" = -dumpversion ]; then echo 13.0.1; else echo "#define __clang__ 1"; fi')
        code, lines, _ = self.setup(CXX="clang++-13")
        self.assertEqual((2, 1), (code, len(lines)))
        self.assertIn("clang++-13 is version 13.0.1; needed is clang 14 or newer", lines[0])

    def test_an_old_cmake_is_refused_in_one_line_before_anything_is_downloaded(self):
        self.command("cmake", "echo cmake version 3.18.4")
        self.assertEqual((2, ["setup: cmake is version 3.18.4; needed is 3.22 or newer (pip install cmake has one)"], ""),
                         self.setup())

    def without_rights(self, **variables):
        """Set-up of a user who may install nothing, where headers are missing until CPLUS_INCLUDE_PATH is set."""
        self.command("id", "echo 1000")
        self.command("g++", 'case "$1" in -dumpversion) echo 12 ;; -E) [ -n "$CPLUS_INCLUDE_PATH" ] || grep "^header" ;; esac')
        torch = self.folder / "torch/share/cmake/Torch"
        torch.mkdir(parents=True)
        (torch / "TorchConfig.cmake").touch()
        return self.setup(LRA_TORCH=str(self.folder / "torch"), CPLUS_INCLUDE_PATH="", **variables)

    def test_without_rights_packages_are_carried_and_one_line_says_so(self):
        (self.folder / "tools/carry").write_text(
            f'mkdir {self.folder}/build-carried; echo "export CPLUS_INCLUDE_PATH=x" >{self.folder}/build-carried/env\n')
        code, lines, calls = self.without_rights()
        self.assertEqual((0, ["setup: no right to install packages: unpacking them into build-carried/ (tools/carry, 0.1 GB)"]),
                         (code, lines))
        self.assertNotIn("apt-get", calls)

    def test_without_rights_a_conda_environment_comes_first(self):
        (self.folder / "conda/include").mkdir(parents=True)
        code, lines, _ = self.without_rights(CONDA_PREFIX=str(self.folder / "conda"))
        self.assertEqual((0, [f"setup: taking headers and libraries from the conda environment {self.folder}/conda"]),
                         (code, lines))
        shown = subprocess.run(["bash", "-c", f"source {self.folder}/build-carried/env; echo $CPLUS_INCLUDE_PATH"],
                               capture_output=True, text=True, check=True)
        self.assertTrue(shown.stdout.startswith(f"{self.folder}/conda/include"), shown.stdout)

    def test_without_rights_and_apt_get_the_names_of_packages_are_printed(self):
        (self.folder / "tools/carry").write_text("exit 1\n")
        code, lines, _ = self.without_rights()
        self.assertEqual(2, code)
        self.assertEqual(1, sum("cli11" in line for line in lines), lines)


if __name__ == "__main__":
    unittest.main()
