"""Tests of junit_counts.py on files as ctest writes them."""
import tempfile
import unittest

import junit_counts


def counts(cases):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(f'<?xml version="1.0" encoding="UTF-8"?><testsuite>{cases}</testsuite>')
        file.flush()
        return junit_counts.counts(file.name)


class JunitCounts(unittest.TestCase):
    def test_counts_passed_and_failed_tests(self):
        self.assertEqual((2, 1, 0), counts(
            '<testcase name="a" status="run"/><testcase name="b" status="run"/>'
            '<testcase name="c" status="fail"><failure message=""/></testcase>'))

    def test_a_missing_program_is_a_failure(self):
        self.assertEqual((0, 1, 0), counts(
            '<testcase name="a" status="notrun"><skipped message="Unable to find executable"/>'
            '</testcase>'))

    def test_tests_that_skip_themselves_or_are_disabled_are_skipped(self):
        self.assertEqual((0, 0, 3), counts(
            '<testcase name="a" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'
            '<testcase name="b" status="notrun">'
            '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
            '<testcase name="c" status="disabled"/>'))


if __name__ == "__main__":
    unittest.main()
