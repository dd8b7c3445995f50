"""The report page asks the network for nothing and does no harm, whatever the records say.

    LRA_PROGRAM=build/lra LRA_PYTHON=python3 python3 tests/faults/report_page.py [--quick]

Runs tests/e2e/report_page.sh, which drives the page in Chromium; its last lines are the figures, of which
docs/results/scorecard/23-report.json is made. --quick only says that ./check runs that script itself.
"""
import argparse
import os
import re
import subprocess
import sys

from shared import result

SCRIPT = result.ROOT / "tests" / "e2e" / "report_page.sh"
SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    if parser.parse_args().quick:
        print("left out: ./check runs tests/e2e/report_page.sh")
        return SKIPPED
    environment = {"LRA_PYTHON": sys.executable, **os.environ}
    done = subprocess.run(["bash", SCRIPT], env=environment, capture_output=True, text=True,
                          check=False, cwd=result.ROOT)
    print(done.stdout + done.stderr, end="")
    if done.returncode == SKIPPED:
        return SKIPPED
    claims = re.findall(r"^ok: (.*)$", done.stdout, re.MULTILINE)
    visits = re.search(r"^(\d+) visits, (\d+) requests, (\d+) errors$", done.stdout, re.MULTILINE)
    good = done.returncode == 0 and visits is not None
    figures = {"claims tested": len(claims)}
    if visits:
        figures |= {"visits in Chromium": int(visits[1]), "requests": int(visits[2]),
                    "console errors and breaches of the policy": int(visits[3])}
    result.record(23, "report", figures, "green" if good else "red",
                  "LRA_PROGRAM=build/lra python3 tests/faults/report_page.py")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
