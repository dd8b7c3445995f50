#include "tasks/own/row_steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

namespace lra::tasks {
namespace {

using Rows = std::vector<OwnExample>;
using Group = std::pair<std::string, std::string>;  // split and label

Group group_of(const OwnExample& row) { return {row.split, row.label}; }
std::span<const float> numbers_of(const OwnExample& row) { return row.sequences[0].numbers; }

bool has_long_runs(const Rows& rows) {
  constexpr size_t kFewestRows = 100, kFewestInRun = 8;
  std::map<Group, size_t> runs;
  size_t num_runs = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && group_of(rows[i]) == group_of(rows[i - 1])) continue;
    ++runs[group_of(rows[i])];
    ++num_runs;
  }
  // As many runs as classes are a file that is sorted.
  return rows.size() >= kFewestRows && rows.size() >= kFewestInRun * num_runs &&
         num_runs > runs.size();
}

// The rows with mean 0 and deviation 1 in each column; columns that never vary are 0.
class StandardRows {
 public:
  explicit StandardRows(const Rows& rows)
      : rows_(rows), means_(numbers_of(rows[0]).size()), factors_(means_.size()) {
    const auto count = static_cast<double>(rows.size());
    for (const OwnExample& row : rows) {
      for (size_t k = 0; k < means_.size(); ++k) means_[k] += numbers_of(row)[k] / count;
    }
    for (const OwnExample& row : rows) {
      for (size_t k = 0; k < means_.size(); ++k) {
        factors_[k] += std::pow(numbers_of(row)[k] - means_[k], 2) / count;
      }
    }
    for (double& factor : factors_) factor = factor > 0 ? 1 / std::sqrt(factor) : 0;
  }

  double at(size_t row, size_t column) const {
    return (numbers_of(rows_[row])[column] - means_[column]) * factors_[column];
  }
  // Mean square of the differences.
  double distance(size_t row, size_t other) const {
    double sum = 0;
    for (size_t k = 0; k < means_.size(); ++k) sum += std::pow(at(row, k) - at(other, k), 2);
    return sum / static_cast<double>(means_.size());
  }
  // The same of neighboring columns.
  double roughness(size_t row) const {
    double sum = 0;
    for (size_t k = 1; k < means_.size(); ++k) sum += std::pow(at(row, k) - at(row, k - 1), 2);
    return sum / static_cast<double>(means_.size() - 1);
  }

 private:
  const Rows& rows_;
  std::vector<double> means_, factors_;
};

}  // namespace

bool may_be_steps(const Rows& examples) {
  constexpr double kNear = 0.25, kSmooth = 1;  // columns of which neighbors are unrelated have 2
  const size_t size = examples.empty() ? 0 : numbers_of(examples[0]).size();
  const bool are_alike = std::ranges::all_of(
      examples, [&](const OwnExample& row) { return numbers_of(row).size() == size; });
  if (!are_alike || size < 2 || !has_long_runs(examples)) return false;
  const StandardRows rows(examples);
  std::map<Group, std::vector<size_t>> groups;
  for (size_t i = 0; i < examples.size(); ++i) groups[group_of(examples[i])].push_back(i);
  double to_next = 0, to_others = 0, roughness = 0, count = 0;
  for (const auto& [unused, places] : groups) {
    for (size_t k = 1; k < places.size(); ++k) {
      if (places[k] != places[k - 1] + 1) continue;
      ++count;
      to_next += rows.distance(places[k - 1], places[k]);
      to_others += rows.distance(places[k], places[(k + places.size() / 2) % places.size()]);
      roughness += rows.roughness(places[k]);
    }
  }
  return to_next < kNear * to_others && roughness > kSmooth * count;
}

}  // namespace lra::tasks
