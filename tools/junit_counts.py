"""Prints how many tests of a ctest JUnit file passed, failed and were skipped.

A test whose program is missing is reported by ctest as not run; here it counts as failed.
"""
import sys
import xml.etree.ElementTree as ElementTree


def counts(path):
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        status = case.get("status")
        reason = case.find("skipped")
        if status == "run":
            passed += 1
        elif status == "disabled" or (reason is not None and is_wanted(reason.get("message", ""))):
            skipped += 1
        else:
            failed += 1
    return passed, failed, skipped


def is_wanted(message):
    """True if ctest skipped a test because the test asked for it."""
    return message.startswith("SKIP_")


if __name__ == "__main__":
    print(*counts(sys.argv[1]))
