"""Bare Linux systems in folders: what mmdebstrap makes, and commands that run inside, apart from this machine.

Needs root. Used by tools/roots and tests/faults/fresh_debian.py.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import time

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def why_not() -> str:
    """What this machine lacks to make a root; empty if it has all."""
    if os.geteuid() != 0:
        return "only the superuser can make a root"
    lacking = [name for name in ("mmdebstrap", "git", "unshare", "ip") if not shutil.which(name, path=PATH)]
    return f"no {', '.join(lacking)}" if lacking else ""


def existing_path(text: str) -> pathlib.Path:
    path = pathlib.Path(text).absolute()
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{path} is not there")
    return path


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mirror", help="where mmdebstrap gets its packages")
    parser.add_argument("--apt-option", action="append", default=[], metavar="TEXT",
                        help="a line of apt's configuration, such as 'Acquire::Check-Valid-Until \"false\"'")
    parser.add_argument("--share", action="append", default=[], type=existing_path, metavar="PATH",
                        help="shown in the root, where it lies here: configuration of pip, wheels, certificates")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable in the root")


class BareRoot:
    """A Debian of `suite` in `folder`, with nothing but its required packages, certificates and `packages`."""

    def __init__(self, folder: pathlib.Path, options: argparse.Namespace) -> None:
        self.folder, self.options = folder.absolute(), options
        self.writable: list[pathlib.Path] = []

    def make(self, suite: str, packages: list[str]) -> None:
        """The archive of a root is kept beside it, and unpacked again the next time."""
        archive = self.folder.with_suffix(".tar")
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        if not archive.exists():
            options = [f"--aptopt={line}" for line in self.options.apt_option]
            unfinished = archive.with_suffix(".part.tar")
            subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", *options,
                            "--include=" + ",".join(["ca-certificates", *packages]), suite, str(unfinished),
                            *([self.options.mirror] if self.options.mirror else [])], check=True)
            unfinished.rename(archive)
        self.folder.mkdir()
        subprocess.run(["tar", "-xf", str(archive), "-C", str(self.folder)], check=True)
        # As the installer writes it: processes of one run find each other by the name of the machine.
        (self.folder / "etc/hosts").write_text(
            f"127.0.0.1 localhost\n127.0.1.1 {socket.gethostname()}\n", encoding="utf-8")
        shutil.copy("/etc/resolv.conf", self.folder / "etc/resolv.conf")

    def clone(self, checkout: pathlib.Path, inside: str, owner: int = 0) -> None:
        """The last commit of `checkout`, as a clone at the path `inside`."""
        target = self.folder / inside.lstrip("/")
        if target.exists():
            subprocess.run(["git", "-c", "safe.directory=*", "-C", str(target), "fetch", "--quiet", str(checkout), "HEAD"], check=True)
            subprocess.run(["git", "-c", "safe.directory=*", "-C", str(target), "reset", "--quiet", "--hard", "FETCH_HEAD"], check=True)
        else:
            subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(checkout), str(target)], check=True)
        subprocess.run(["chown", "-R", f"{owner}:{owner}", str(target)], check=True)

    def _mounts(self) -> list[str]:
        """Shell lines that show the kernel's file systems and the shared paths inside."""
        folder = shlex.quote(str(self.folder))
        lines = ["set -e", "mount --make-rprivate /", f"mount -t proc proc {folder}/proc",
                 f"mount --rbind /dev {folder}/dev", f"mount --rbind -o ro /sys {folder}/sys"]
        for path, access in [*((path, "ro") for path in self.options.share), *((path, "rw") for path in self.writable)]:
            there = shlex.quote(f"{self.folder}{path}")
            made = f"mkdir -p {there}" if path.is_dir() else f"mkdir -p $(dirname {there}) && touch {there}"
            lines += [made, f"mount --bind -o {access} {shlex.quote(str(path))} {there}"]
        return lines

    def run(self, command: str, log: pathlib.Path, *, at: str = "/", user: int = 0,
            network: bool = True) -> tuple[int, str, float]:
        """Exit code, output and seconds of a shell command inside. `log` shows the output as it comes."""
        folder = shlex.quote(str(self.folder))
        lines = self._mounts()
        if not network:
            lines += ["ip link set lo up", f"test $(tail -n +3 {folder}/proc/net/dev | wc -l) = 1"]  # lo alone
        home = "/root" if user == 0 else "/home/user"
        words = ["env", "-i", f"PATH={PATH}", f"HOME={home}", "LANG=C.UTF-8", *self.options.set, "bash", "-c",
                 f"cd {at} && {command}"]
        lines.append(f"exec chroot --userspec={user}:{user} {folder} {shlex.join(words)}")
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", *([] if network else ["--net"])]
        begin = time.monotonic()
        with open(log, "w+", encoding="utf-8", errors="replace") as output:
            code = subprocess.run([*unshare, "bash", "-c", "\n".join(lines)], stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT, check=False).returncode
            output.seek(0)
            return code, output.read(), time.monotonic() - begin
