"""Tests of tools/roots on the output of commands."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest

LOADER = importlib.machinery.SourceFileLoader("roots", str(pathlib.Path(__file__).resolve().parent / "roots"))
roots = importlib.util.module_from_spec(importlib.util.spec_from_loader("roots", LOADER))
sys.modules["roots"] = roots
LOADER.exec_module(roots)


class Roots(unittest.TestCase):
    def test_the_last_line_of_check_counts(self):
        self.assertEqual("71 passed, 1 failed", roots.counts("3 passed, 0 failed\nfailed: x\n71 passed, 1 failed\n"))
        self.assertEqual("", roots.counts("x: 71 passed, 1 failed of 72\n"))

    def test_warnings_of_compilers_are_counted_and_others_are_not(self):
        self.assertEqual(2, roots.warnings(
            "a.cpp:1:2: warning: unused variable 'x' [-Wunused-variable]\n   1 | int x;\n"
            "cc1plus: warning: ./a.h.gch: created and used with differing settings of '-mvzeroupper' [-Winvalid-pch]\n"
            "CMake Warning at bench/CMakeLists.txt:3\nWARNING: Retrying after connection broken\n"))

    def test_a_failure_is_seen_in_its_cell(self):
        self.assertEqual("works, 9 min", roots.verdict(0, 540))
        self.assertEqual("FAILED (1), 59 s", roots.verdict(1, 59.2))

    def test_a_root_that_stopped_early_has_a_full_row(self):
        page = roots.page([{"root": "Debian 13", "run": "FAILED (1), 2 min", "revision": "01234567, 2026-11-28"}])
        header, _, row = page.strip().splitlines()[-3:]
        self.assertEqual(header.count("|"), row.count("|"))
        self.assertIn("| Debian 13 | not run | FAILED (1), 2 min | not run |", row)


if __name__ == "__main__":
    unittest.main()
