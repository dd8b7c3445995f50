"""Every example of the pages below runs, in the order of its page, in one folder, and begins to print the block of
text that follows it directly, except for its numbers.

With LRA_INSTALLED set they use what pip installed beside this Python instead of the checkout. With LRA_QUICK set the
nine runs of README.md are of a few steps, and its table, which they do not give then, is not compared.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
PAGES = {"README.md": 1, "docs/python.md": 14, "docs/data_format.md": 3}  # how many examples at least
LONG = '"steps": 500'  # in README.md
OPTIONAL = {"pandas": r"\bimport pandas|\.predictions\(|\.curve\(|\.frame\(", "optuna": r"\bimport .*optuna"}
BLOCK = re.compile(r"^```(python|sh) ?(\S*)\n(.*?)^```$(?:\n\n```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def use_checkout(variables, folder):
    """Adds the package, and the command `lra` as pip would install it into `folder`."""
    command = folder / "lra"
    folder.mkdir()
    command.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'from lra._program import main; main()' \"$@\"\n")
    command.chmod(0o755)
    variables.update(
        PYTHONPATH=str(ROOT / "python"), LRA_CONFIGS=str(ROOT / "configs"),
        LRA_BUILD=str(pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent),
        PATH=os.pathsep.join([str(folder), str(pathlib.Path(sys.executable).parent), variables["PATH"]]))


def words(text):
    """Without numbers and spaces, which depend on the processor."""
    return re.sub(r"[\d.,]+", "#", text).replace("-", "").split()


def main():
    variables = dict(os.environ)
    variables.pop("LRA_DATA", None)
    variables.setdefault("OMP_NUM_THREADS", "1")
    for page, least in PAGES.items():
        run_page(page, least, dict(variables))


def run_page(page, least, variables):
    blocks = BLOCK.findall((ROOT / page).read_text())
    if page == "README.md":  # its layer is that of the page
        blocks = [block for block in BLOCK.findall((ROOT / "docs/python.md").read_text()) if block[1]] + blocks
        assert any(LONG in block[2] for block in blocks)
    assert len(blocks) >= least, f"found {len(blocks)} examples in {page}"
    with tempfile.TemporaryDirectory() as scratch:
        if not variables.pop("LRA_INSTALLED", None):
            use_checkout(variables, pathlib.Path(scratch, "bin"))
        for number, (language, name, text, printed) in enumerate(blocks, start=1):
            if name:
                pathlib.Path(scratch, name).write_text(text)
                continue
            if lacking := [package for package, use in OPTIONAL.items()
                           if re.search(use, text) and not importlib.util.find_spec(package)]:
                print(f"skipped: {page}, example {number}: no {lacking[0]} (tools/setup --with-tests)")
                continue
            if LONG in text and os.environ.get("LRA_QUICK"):
                text, printed = text.replace(LONG, '"steps": 5'), ""
            script = pathlib.Path(scratch, f"example_{number}.{language}")
            script.write_text(text)
            program = [sys.executable] if language == "python" else ["bash", "-e"]
            ended = subprocess.run(
                [*program, script.name], cwd=scratch, env=variables, capture_output=True, text=True)
            if ended.returncode != 0:
                sys.exit(f"example {number} of {page} ended with {ended.returncode}:\n"
                         f"{text}\n{ended.stdout}{ended.stderr}")
            if printed and words(ended.stdout)[: len(words(printed))] != words(printed):
                sys.exit(f"example {number} of {page} printed, unlike its page:\n{ended.stdout}")
            print(f"ok: {page}, example {number}")


if __name__ == "__main__":
    main()
