#include "kernels/scan/selective_scan.h"

#include <memory>

#include "base/error.h"
#include "kernels/example_sums.h"

namespace lra::kernels {
namespace {

template <typename T>
SelectiveScanParts<T> choose_selective_parts() {
  LRA_RETURN_BEST(T, Op::kSelectiveScan, selective_scan_parts<T>());
}

// [batch, tasks of an example, length, numbers of states] -> to [batch, length, groups, numbers of
// states]: the sum over the tasks of each group; 0 at padding.
template <typename T>
void sum_over_channels(const SelectiveScan<T>& p, const SelectiveTasks<T>& tasks,
                       const Wide<T>* shares, T* to) {
  using W = Wide<T>;
  const int64_t numbers = p.state_numbers();
  parallel_ranges(p.batch * p.length, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t example = row / p.length, place = row % p.length;
      const bool valid = !p.lengths || place < p.lengths[example];
      for (int64_t group = 0; group < p.groups; ++group) {
        const int64_t block = example * tasks.of_example + group * tasks.of_group;
        const W* const first = shares + (block * p.length + place) * numbers;
        T* const sums = to + (row * p.groups + group) * numbers;
        for (int64_t n = 0; n < numbers; ++n) {
          W sum = 0;
          for (int64_t k = 0; valid && k < tasks.of_group; ++k) {
            sum += first[k * p.length * numbers + n];
          }
          sums[n] = static_cast<T>(sum);
        }
      }
    }
  });
}

}  // namespace

template <typename T>
void selective_scan_forward(const SelectiveScan<T>& p, T* y, Wide<T>* starts) {
  LRA_CHECK(p.groups > 0 && p.channels % p.groups == 0);
  const SelectiveScanParts<T> parts = choose_selective_parts<T>();
  const SelectiveTasks<T> tasks(p);
  const int64_t of_task = selective_starts_of_task(p);
  parallel_for_each(p.batch * tasks.of_example, [&](int64_t n) {
    parts.forward(p, tasks.task(n), y, starts == nullptr ? nullptr : starts + n * of_task);
  });
}

template <typename T>
void selective_scan_backward(const SelectiveScanBackward<T>& problem) {
  using W = Wide<T>;
  const SelectiveScan<T>& p = problem.problem;
  LRA_CHECK(p.groups > 0 && p.channels % p.groups == 0);
  const SelectiveScanParts<T> parts = choose_selective_parts<T>();
  const SelectiveTasks<T> tasks(p);
  const auto space = [](int64_t count) {
    return std::make_unique_for_overwrite<W[]>(static_cast<size_t>(count));
  };
  const int64_t num_tasks = p.batch * tasks.of_example, rows = p.length * p.state_numbers();
  const int64_t count = selective_parameters(p), of_task = selective_starts_of_task(p);
  const auto of_b = space(num_tasks * rows), of_c = space(num_tasks * rows);
  const auto of_examples = space(p.batch * count);
  parallel_for_each(num_tasks, [&](int64_t n) {
    const SelectiveTask task = tasks.task(n);
    parts.backward(problem, task,
                   {.b = of_b.get() + n * rows,
                    .c = of_c.get() + n * rows,
                    .parameters = of_examples.get() + task.example * count},
                   problem.starts == nullptr ? nullptr : problem.starts + n * of_task);
  });
  sum_over_channels(p, tasks, of_b.get(), problem.grad_b);
  sum_over_channels(p, tasks, of_c.get(), problem.grad_c);
  sum_over_examples(of_examples.get(), p.batch, count, problem.grad_parameters);
}

template void selective_scan_forward(const SelectiveScan<float>&, float*, float*);
template void selective_scan_forward(const SelectiveScan<Bf16>&, Bf16*, float*);
template void selective_scan_forward(const SelectiveScan<double>&, double*, double*);
template void selective_scan_backward(const SelectiveScanBackward<float>&);
template void selective_scan_backward(const SelectiveScanBackward<Bf16>&);
template void selective_scan_backward(const SelectiveScanBackward<double>&);

}  // namespace lra::kernels
