"""Tests of layers.py on small trees made for the purpose."""
import pathlib
import tempfile
import unittest

import layers


class Layers(unittest.TestCase):
    def breaches(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root) / "src" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return layers.check(root)

    def assert_one_breach(self, files, *parts):
        breaches = self.breaches(files)
        self.assertEqual(len(breaches), 1, breaches)
        for part in parts:
            self.assertIn(part, breaches[0])

    def test_accepts_what_the_design_allows(self):
        self.assertEqual([], self.breaches({
            "base/error.h": "#include <string>\n",
            "tasks/task.h": '#include "base/error.h"\n#include "data/dataset.h"\n#include "checks/facts.h"\n',
            "data/dataset.h": "",
            "checks/facts.h": '#include "data/dataset.h"\n',
            "kernels/gelu_cuda.cu": '#include <cuda_runtime.h>\n#include "kernels/gelu.h"\n',
            "kernels/gelu.h": "",
            "ops/gelu.h": '#include <ATen/ATen.h>\n#include "kernels/gelu.h"\n',
            "cli/main.cpp": '#include "report/html.h"\n#include "analysis/span.h"\n',
        }))

    def test_names_file_and_line_of_a_room_that_reaches_up(self):
        self.assert_one_breach(
            {"tasks/task.h": '// a task\n\n#include "training/loop/trainer.h"\n'},
            "src/tasks/task.h:3:", "training/loop/trainer.h", "room tasks may include only: checks data io base")

    def test_keeps_libtorch_out_of_parts_without_it(self):
        header = {"ops/linear.h": "#include <ATen/ATen.h>\n", "mixers/all.h": '#include "ops/linear.h"\n'}
        include = '#include "mixers/all.h"\n'
        self.assertEqual([], self.breaches({**header, "compute/eval.cpp": include, "mixers/s4d.cpp": include,
                                            "training/settings/presets_test.cpp": include}))
        for name in ("cli/list.cpp", "training/settings/presets.cpp", "mixers/specs/all.cpp"):
            self.assert_one_breach({**header, name: include}, f"src/{name}:1", "mixers/all.h", "is free of LibTorch")

    def test_keeps_tasks_apart(self):
        include = '#include "tasks/text/text.h"\n'
        self.assertEqual([], self.breaches({
            "tasks/all.cpp": include, "tasks/every_task_test.cpp": include, "tasks/text/text.cpp": include,
            "tasks/text/text.h": "", "tasks/image/image_test.cpp": include}))
        self.assert_one_breach({"tasks/image/image.cpp": include}, "src/tasks/image/image.cpp:1", "no other task")
        self.assert_one_breach({"tasks/prepare.cpp": include}, "only tasks/all.cpp")

    def test_counts_lines_without_tests_against_the_budget_of_rooms(self):
        most = layers.BUDGETS["report"]
        kept = {"report/html.cpp": "\n" * most, "report/html_test.cpp": "\n" * 9, "report/test_records.h": "\n"}
        self.assertEqual([], self.breaches(kept))
        self.assert_one_breach({**kept, "report/text.cpp": "\n"}, "src/report:1: report", f"budget {most:,}")

    def test_a_folder_has_at_most_seventy_files(self):
        kept = {f"io/{name}.cpp": "" for name in range(70)}
        self.assertEqual([], self.breaches({**kept, "io/archives/71.cpp": ""}))
        self.assert_one_breach({**kept, "io/71.cpp": ""}, "src/io:1: 71 files", "at most 70")

    def test_every_room_has_a_budget(self):
        self.assertEqual(sorted(layers.ALLOWED), sorted(room for rooms in layers.BUDGETS for room in rooms.split()))

    def test_report_reads_records_only(self):
        self.assert_one_breach({"report/html.cpp": '#include "tasks/task.h"\n'}, "report")

    def test_refuses_torch_in_every_torch_free_room(self):
        for room in ("base", "tasks", "kernels", "report"):
            for header in ("<torch/torch.h>", "<ATen/ATen.h>", '"c10/util/Half.h"'):
                self.assert_one_breach({f"{room}/x.cpp": f"#include {header}\n"}, "LibTorch")

    def test_refuses_torch_in_a_cuda_kernel(self):
        self.assert_one_breach({"kernels/x_cuda.cu": "#include <ATen/cuda/CUDAContext.h>\n"})

    def test_refuses_cuda_outside_cuda_kernels(self):
        for name in ("kernels/gelu.cpp", "ops/gelu.cpp", "base/x_cuda.cu"):
            self.assert_one_breach({name: "#include <cuda_runtime.h>\n"}, "CUDA")

    def test_refuses_includes_that_hide_their_room(self):
        self.assert_one_breach({"base/a.h": '#include "b.h"\n'}, "written from src/")
        self.assert_one_breach({"base/a.h": '#include "../tasks/b.h"\n'}, "written from src/")
        self.assert_one_breach({"base/a.h": "#include <base/b.h>\n"}, "quotes")

    def test_lets_base_alone_read_the_generated_revision(self):
        include = '#include "lra_git_revision.h"\n'
        self.assertEqual([], self.breaches({"base/revision.cpp": include}))
        self.assert_one_breach({"report/html.cpp": include}, "written from src/")

    def test_sees_includes_with_odd_spacing(self):
        self.assert_one_breach({"base/a.h": '  #  include  "tasks/task.h"\n'}, "a.h:1")

    def test_refuses_cycles_and_shows_the_way_round(self):
        self.assert_one_breach(
            {"base/a.h": '#include "base/b.h"\n', "base/b.h": '\n#include "base/c.h"\n',
             "base/c.h": '#include "base/a.h"\n'},
            "src/base/a.h:1:", "base/a.h -> base/b.h -> base/c.h -> base/a.h")

    def test_a_shared_header_is_no_cycle(self):
        self.assertEqual([], self.breaches({
            "base/a.h": '#include "base/b.h"\n#include "base/c.h"\n',
            "base/b.h": '#include "base/c.h"\n', "base/c.h": ""}))

    def test_refuses_files_outside_the_rooms(self):
        self.assert_one_breach({"utils/x.h": ""}, "src/utils/x.h:1:", "not in a room")
        self.assert_one_breach({"x.h": ""}, "src/x.h:1:", "not in a room")

    def test_an_empty_tree_is_not_a_pass(self):
        self.assertEqual(1, len(self.breaches({})))

    def test_knows_the_files_of_tests(self):
        for name, is_test in (("scan_test.cpp", True), ("test_tensors.h", True), ("scan_test_case.h", True),
                              ("latest.h", False), ("contest.cpp", False)):
            self.assertEqual(is_test, layers.is_test(pathlib.PurePath(name)), name)


if __name__ == "__main__":
    unittest.main()
