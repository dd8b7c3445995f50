"""Tests of tools/scorecard on results as the measuring scripts write them."""
import importlib.machinery
import importlib.util
import json
import pathlib
import tempfile
import unittest

LOADER = importlib.machinery.SourceFileLoader(
    "scorecard", str(pathlib.Path(__file__).resolve().parent / "scorecard"))
scorecard = importlib.util.module_from_spec(importlib.util.spec_from_loader("scorecard", LOADER))
LOADER.exec_module(scorecard)


def result(line, verdict, **changes):
    return {"line": line, "promise": "p", "figures": {"runs": 1000, "a|b": "c"}, "verdict": verdict,
            "command": "measure", "machine": "m", "revision": "r", "date": "d", **changes}


def fuzzed(**changes):
    return {"runs": 1e8, "cpu_seconds": 10, "crashes": 0, "over_a_second": 0, "peak_mb": 50,
            "lines": 100, "lines_reached": 95, **changes}


def promised_targets():
    """As many targets as line 18 requires, including one for every format."""
    formats = [readers[0] for readers in scorecard.FUZZED_FORMATS.values()]
    return {name: fuzzed() for name in (*formats, "review_names")}


class Scorecard(unittest.TestCase):
    def test_every_line_has_a_row_and_those_without_a_result_say_so(self):
        text = scorecard.page([result(5, "green")])
        for line in range(1, 31):
            self.assertEqual(1, text.count(f"\n| {line} | {scorecard.PROMISES[line]} |"))
        self.assertEqual(29, text.count("| not measured yet |"))
        self.assertIn("1 green, 0 partial, 0 red, 29 not measured yet", text)
        self.assertIn("runs: 1,000; a\\|b: c", text)

    def test_the_worst_verdict_of_a_line_counts(self):
        for verdicts, worst in ((("green", "red", "partial"), "red"),
                                (("green", "partial"), "partial"), (("green",), "green")):
            row = scorecard.row_of(22, [result(22, verdict) for verdict in verdicts])
            self.assertIn(f"| {worst} |", row)

    def test_files_that_are_not_results_are_refused(self):
        for name, content in (("05-a.json", {"line": 5}), ("06-a.json", result(5, "green")),
                              ("05-a.json", result(5, "fine")), ("99-a.json", result(99, "red"))):
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / name).write_text(json.dumps(content), encoding="utf-8")
                with self.assertRaises(ValueError):
                    scorecard.load_results(pathlib.Path(folder))

    def test_fuzzing_is_green_only_when_all_of_it_was_kept(self):
        good = promised_targets()
        self.assertEqual("green", scorecard.fuzz_result({"targets": good})["verdict"])
        by_time = {**good, "png": fuzzed(runs=5, cpu_seconds=3600)}
        self.assertEqual("green", scorecard.fuzz_result(by_time)["verdict"])
        for wrong in ({"runs": 5}, {"crashes": 1}, {"lines_reached": 89}, {"over_a_second": 2},
                      {"peak_mb": 300}):
            worse = {**good, "png": fuzzed(**wrong)}
            self.assertEqual("partial", scorecard.fuzz_result(worse)["verdict"], wrong)
        self.assertEqual("partial", scorecard.fuzz_result(good | {"review_names": fuzzed(runs=5)})["verdict"])
        del good["review_names"]
        self.assertEqual("partial", scorecard.fuzz_result(good)["verdict"])

    def test_a_fuzz_target_beyond_the_promised_ones_may_run_less_but_not_crash(self):
        good = promised_targets()
        more = {**good, "manifest": fuzzed(runs=5)}
        self.assertEqual("green", scorecard.fuzz_result(more)["verdict"])
        crashed = {**good, "manifest": fuzzed(runs=5, crashes=1)}
        self.assertEqual("partial", scorecard.fuzz_result(crashed)["verdict"])

    def test_every_format_needs_a_target_that_was_fuzzed_long(self):
        readers = [name for names in scorecard.FUZZED_FORMATS.values() for name in names]
        others = {name: fuzzed() for name in (*readers, "manifest", "review_names")}
        self.assertEqual("green", scorecard.fuzz_result(others)["verdict"])
        short = {**others, "tar": fuzzed(runs=5)}
        self.assertIn("tar: too few runs", scorecard.fuzz_result(short)["figures"]["short of the promise"])
        self.assertEqual("partial", scorecard.fuzz_result(short)["verdict"])

    def test_the_commands_of_the_asked_lines_run_again(self):
        with tempfile.TemporaryDirectory() as folder:
            marks = [pathlib.Path(folder) / name for name in ("one", "two", "three")]
            results = [result(1, "green", command=f"touch {marks[0]}"),
                       result(2, "green", command=f"touch {marks[1]}; exit 4"),
                       result(3, "green", command=f"touch {marks[2]} --without PROGRAM")]
            self.assertEqual(["line 2 (exit code 4)"], scorecard.measure_again(results, [2]))
            self.assertEqual([False, True, False], [mark.exists() for mark in marks])
            scorecard.measure_again(results, [])
            self.assertEqual([True, True, False], [mark.exists() for mark in marks])


if __name__ == "__main__":
    unittest.main()
