"""A fresh Debian 12 sets itself up, then builds, trains and passes every test without a network.

    python3 tests/faults/fresh_debian.py [--quick] [--without-tests] [--folder FOLDER] [--mirror URL]
                                         [--share PATH]... [--set NAME=VALUE]...

mmdebstrap makes a Debian of nothing but its required packages in FOLDER, and the last commit is cloned
into it. `tools/setup --with-tests` runs there with the network; `./run` and `./check` in a network
namespace that has no way out. --share shows files and folders of this machine there, read-only, where
they lie here, and --set sets a variable: how pip is reached, real data for the tests. Takes root, 10 GB
and an hour; FOLDER is removed afterwards unless it was named. --quick only says that it was left out; the
full form writes docs/results/scorecard/26-fresh-debian.json, and a part of it with --without-tests.
"""
import argparse
import pathlib
import re
import shutil
import sys
import tempfile

from shared import result

sys.path.insert(0, str(pathlib.Path(result.ROOT, "tools")))
import bare_root

SKIPPED = 77
CHECKOUT = "/root/lra"


def measure(folder, arguments):
    """The figures, and whether everything ended well."""
    root = bare_root.BareRoot(folder / "debian", arguments)
    root.make("bookworm", [])
    root.clone(pathlib.Path(result.ROOT), CHECKOUT)
    steps = [("set-up with the network", "tools/setup --with-tests", True), ("./run without", "./run", False),
             ("./run again", "./run", False)]
    if not arguments.without_tests:
        steps.append(("./check without", "./check", False))
    figures = {"system": (root.folder / "etc/debian_version").read_text(encoding="utf-8").strip()}
    for name, command, network in steps:
        code, output, seconds = root.run(command, folder / "log", at=CHECKOUT, network=network)
        print(f"{command}: exit code {code} after {seconds:.0f} s", flush=True)
        figures[name] = f"{'passed' if code == 0 else 'FAILED'} in {seconds / 60:.1f} minutes"
        if counts := re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE):
            figures |= {"tests passed": int(counts[1]), "tests failed": int(counts[2])}
        if code != 0:
            print(output[-6000:], flush=True)
            return figures, False
    return figures, True


def arguments_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--without-tests", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path)
    bare_root.add_options(parser)
    return parser.parse_args()


def main():
    arguments = arguments_of()
    reason = "it takes an hour" if arguments.quick else bare_root.why_not()
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
