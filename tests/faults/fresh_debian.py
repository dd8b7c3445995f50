"""A fresh Debian 12 sets itself up, then builds, trains and passes every test without a network.

    python3 tests/faults/fresh_debian.py [--quick] [--without-tests] [--folder FOLDER] [--mirror URL]
                                         [--share PATH]... [--set NAME=VALUE]...

debootstrap makes a Debian of nothing but its required packages in FOLDER, and the last commit is cloned
into it. `tools/setup --with-tests` runs there with the network; `./run` and `./check` in a network
namespace that has no way out. --share shows files and folders of this machine there, read-only, where
they lie here, and --set sets a variable: how pip is reached, real data for the tests. Takes root, 10 GB
and an hour; FOLDER is removed afterwards unless it was named. --quick only says that it was left out; the
full form writes docs/results/scorecard/26-fresh-debian.json, and a part of it with --without-tests.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from shared import result

SKIPPED = 77
CHECKOUT = "/root/lra"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def why_not():
    """The tools that this machine lacks for the measurement; empty if it has all."""
    if os.geteuid() != 0:
        return "only root can make a Debian"
    lacking = [name for name in ("debootstrap", "git", "unshare", "ip") if not shutil.which(name, path=PATH)]
    return f"no {', '.join(lacking)}" if lacking else ""


def debian_of(folder, mirror):
    """A Debian 12 of the required packages, and the last commit of this checkout in it."""
    subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder, *mirror], check=True,
                   stdout=subprocess.DEVNULL)
    # As the installer writes it: processes of one run find each other by the name of the machine.
    hosts = f"127.0.0.1 localhost\n127.0.1.1 {socket.gethostname()}\n"
    (pathlib.Path(folder) / "etc/hosts").write_text(hosts, encoding="utf-8")
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", result.ROOT, f"{folder}{CHECKOUT}"], check=True)


def mounts(folder, shared):
    """Shell lines that show the kernel's file systems and the shared paths inside the Debian."""
    lines = ["mount --make-rprivate /", f"mount -t proc proc {folder}/proc", f"mount --rbind /dev {folder}/dev"]
    for path in shared:
        inside = shlex.quote(f"{folder}{path}")
        made = f"mkdir -p {inside}" if path.is_dir() else f"mkdir -p $(dirname {inside}) && touch {inside}"
        lines += [made, f"mount --bind -o ro {shlex.quote(str(path))} {inside}"]
    return lines


def inside(folder, command, arguments, network):
    """Runs a shell command in the Debian's checkout; the ended process with its output, and the seconds."""
    lines = ["set -e", *mounts(folder, arguments.share)]
    if not network:
        lines += ["ip link set lo up", f"test $(tail -n +3 {folder}/proc/net/dev | wc -l) = 1"]  # lo alone
    words = ["env", "-i", f"PATH={PATH}", "HOME=/root", "LANG=C.UTF-8", *arguments.set, "bash", "-c",
             f"cd {CHECKOUT} && {command}"]
    lines.append(f"exec chroot {folder} {shlex.join(words)}")
    unshare = ["unshare", "--mount", "--pid", "--fork", *([] if network else ["--net"])]
    begin = time.monotonic()
    done = subprocess.run([*unshare, "bash", "-c", "\n".join(lines)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    seconds = time.monotonic() - begin
    print(f"{command}: exit code {done.returncode} after {seconds:.0f} s", flush=True)
    if done.returncode != 0:
        print(done.stdout[-6000:], flush=True)
    return done, seconds


def measure(folder, arguments):
    """The figures, and whether everything ended well."""
    debian_of(folder, arguments.mirror)
    steps = [("set-up with the network", "tools/setup --with-tests", True), ("./run without", "./run", False),
             ("./run again", "./run", False)]
    if not arguments.without_tests:
        steps.append(("./check without", "./check", False))
    figures = {"system": (pathlib.Path(folder) / "etc/debian_version").read_text(encoding="utf-8").strip()}
    for name, command, network in steps:
        done, seconds = inside(folder, command, arguments, network)
        figures[name] = f"{'passed' if done.returncode == 0 else 'FAILED'} in {seconds / 60:.1f} minutes"
        if counts := re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.MULTILINE):
            figures |= {"tests passed": int(counts[1]), "tests failed": int(counts[2])}
        if done.returncode != 0:
            return figures, False
    return figures, True


def absolute(text):
    """A path of this machine that is there."""
    path = pathlib.Path(text).absolute()
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{path} is not there")
    return path


def arguments_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--without-tests", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--mirror", nargs=1, default=[], help="where debootstrap gets its packages")
    parser.add_argument("--share", action="append", default=[], type=absolute)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args()


def main():
    arguments = arguments_of()
    reason = "it takes an hour" if arguments.quick else why_not()
    if reason:
        print(f"fresh_debian: left out, {reason}")
        return SKIPPED
    folder = (arguments.folder or pathlib.Path(tempfile.mkdtemp(prefix="fresh_debian."))).absolute()
    try:
        figures, good = measure(folder, arguments)
    finally:
        if not arguments.folder:
            shutil.rmtree(folder)
    kept = "partial" if arguments.without_tests else "green"
    result.record(26, "fresh-debian", figures, kept if good else "red", "python3 tests/faults/fresh_debian.py" +
                  (" --without-tests" if arguments.without_tests else ""))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
