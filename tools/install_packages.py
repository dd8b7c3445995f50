#!/usr/bin/env python3
"""Installs Python packages, and of torch the build that fits this machine.

    PYTHON tools/install_packages.py REQUIREMENTS...

installs what the files list into PYTHON's environment. If they list torch, it comes first: without
an NVIDIA card the build for CPUs, with one the build for CUDA. It is looked for where pip is
configured to look (`pip config list`: indexes, folders of wheels), then, if it is the one for CPUs,
in PyTorch's own index of those. The build for CUDA serves CPUs as well and is taken if no other can
be had. The size is printed, and the free disk space checked, before anything is downloaded.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NoReturn

# As PyTorch's documentation names it.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# For a Python that is too new for the release in the requirements.
LATER_RELEASES = ("2.15.0",)
# GB to download, and on the disk afterwards, with everything in tools/requirements.txt.
SIZES = {"CPU": (0.3, 1.2), "CUDA": (2.8, 5.0)}


@dataclasses.dataclass(frozen=True)
class Build:
    version: str
    kind: str  # "CPU" or "CUDA"
    options: tuple[str, ...] = ()  # of pip


def is_for_cpu(version: str) -> bool:
    return version.endswith("+cpu")


def choose(releases: list[str], has_card: bool, configured: list[str], of_pytorch) -> Build | None:
    """The first of `releases` that can be had, in the build that fits. `configured` holds the versions
    that pip finds by itself; of_pytorch() returns those of PyTorch's index of builds for CPUs."""
    own_index: list[str] | None = None
    for release in releases:
        of_release = [version for version in configured if version.split("+")[0] == release]
        for_cpu = [version for version in of_release if is_for_cpu(version)]
        for_cuda = [version for version in of_release if not is_for_cpu(version)]
        if has_card and for_cuda:
            return Build(for_cuda[0], "CUDA")
        if for_cpu:
            return Build(for_cpu[0], "CPU")
        if own_index is None:
            own_index = of_pytorch()
        if f"{release}+cpu" in own_index:
            return Build(f"{release}+cpu", "CPU", ("--index-url", CPU_INDEX))
        if for_cuda:
            return Build(for_cuda[0], "CUDA")
    return None


def say(text: str) -> None:
    print(f"setup: {text}", file=sys.stderr)


def stop(text: str) -> NoReturn:
    say(f"{text}, or name a LibTorch that is there already with LRA_TORCH=FOLDER")
    sys.exit(2)


def pip(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]


def versions_of_torch(*options: str) -> list[str]:
    """The versions for this Python, newest first; none if the index does not answer."""
    found = subprocess.run(pip("index", "versions", "torch", *options), capture_output=True, text=True)
    listed = re.search(r"^Available versions: (.*)$", found.stdout, re.MULTILINE)
    return listed[1].split(", ") if listed else []


def has_nvidia_card() -> bool:
    return any(pathlib.Path("/dev").glob("nvidia[0-9]*"))


def free_gb(folder: str) -> float:
    return shutil.disk_usage(folder).free / 1e9


def lack_of_space(build: Build, environment: str, temporary: str, free=free_gb) -> str:
    """What to tell the user, or nothing. pip keeps what it downloads in a temporary folder and in its
    cache until the end."""
    download, installed = SIZES[build.kind]
    on_one_disk = pathlib.Path(environment).stat().st_dev == pathlib.Path(temporary).stat().st_dev
    needs = {environment: installed + (download if on_one_disk else 0)}
    if not on_one_disk:
        needs[temporary] = download
    for folder, needed in needs.items():
        if free(folder) < needed:
            return f"{folder}: only {free(folder):.1f} GB are free; torch for {build.kind} needs {needed:.1f} GB there"
    return ""


def find_build(release: str) -> Build:
    card = has_nvidia_card()
    build = choose([release, *LATER_RELEASES], card, versions_of_torch(),
                   lambda: versions_of_torch("--retries", "1", "--index-url", CPU_INDEX))
    if build is None:
        stop(f"no package index that answers has torch {release} for Python {sys.version_info[0]}."
             f"{sys.version_info[1]}; check the network and `pip config list`")
    if not card and build.kind == "CUDA":
        say(f"the build of torch for CPUs is not to be had (looked in pip's own indexes and {CPU_INDEX}); "
            "taking the large one for CUDA")
    download, installed = SIZES[build.kind]
    say(f"torch {build.version} for {build.kind} and a few small packages: {download} GB to download, "
        f"{installed} GB on the disk")
    lack = lack_of_space(build, sys.prefix, tempfile.gettempdir())
    if lack:
        stop(f"{lack}; free some")
    return build


def installed_torch() -> str | None:
    import importlib.metadata

    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> int:
    lines = [line.split("#")[0].strip() for path in sys.argv[1:] for line in pathlib.Path(path).read_text().splitlines()]
    others = [line for line in lines if line and not re.match(r"torch\b", line)]
    pinned = [line.removeprefix("torch==") for line in lines if line.startswith("torch==")]
    if pinned:
        version = installed_torch()
        if version is None or version.split("+")[0] not in (pinned[0], *LATER_RELEASES):
            build = find_build(pinned[0])
            version = build.version
            if subprocess.run(pip("install", *build.options, f"torch==={version}")).returncode != 0:
                return 1
        others.append(f"torch==={version}")
    return subprocess.run(pip("install", *others)).returncode


if __name__ == "__main__":
    sys.exit(main())
