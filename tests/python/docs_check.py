"""Every example of the pages below runs, in the order of its page, in one folder.

With LRA_INSTALLED set they use what pip installed beside this Python instead of the checkout.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
PAGES = {"docs/python.md": 7, "docs/data_format.md": 3}  # how many examples at least
BLOCK = re.compile(r"^```(python|sh) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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


def main():
    variables = dict(os.environ)
    variables.pop("LRA_DATA", None)
    for page, least in PAGES.items():
        run_page(page, least, dict(variables))


def run_page(page, least, variables):
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert len(blocks) >= least, f"found {len(blocks)} examples in {page}"
    with tempfile.TemporaryDirectory() as scratch:
        if not variables.pop("LRA_INSTALLED", None):
            use_checkout(variables, pathlib.Path(scratch, "bin"))
        for number, (language, name, text) in enumerate(blocks, start=1):
            if name:
                pathlib.Path(scratch, name).write_text(text)
                continue
            script = pathlib.Path(scratch, f"example_{number}.{language}")
            script.write_text(text)
            program = [sys.executable] if language == "python" else ["bash", "-e"]
            ended = subprocess.run(
                [*program, script.name], cwd=scratch, env=variables, capture_output=True, text=True)
            if ended.returncode != 0:
                sys.exit(f"example {number} of {page} ended with {ended.returncode}:\n"
                         f"{text}\n{ended.stdout}{ended.stderr}")
            print(f"ok: {page}, example {number}")


if __name__ == "__main__":
    main()
