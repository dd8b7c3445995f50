"""The types of the Python package are complete: mypy --strict has nothing to say."""

import importlib.util
import pathlib
import subprocess
import sys

if importlib.util.find_spec("mypy") is None:
    print("skipped: no mypy (tools/setup --with-tests)")
    sys.exit(77)
package = pathlib.Path(__file__).parents[2] / "python" / "lra"
command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null", str(package)]
sys.exit(subprocess.run(command, check=False).returncode)
