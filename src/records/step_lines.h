// Logs of a resumed run, one event per line: lines after the checkpoint will be written again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace lra {

// True if a line, without its end, is to be kept; one that makes this throw lra::Error is not.
using KeepsLine = std::function<bool(std::string_view line)>;

// The lines of `text` that are kept, each with its line end. A last one without a line end was cut
// short by a crash.
std::string kept_lines(std::string_view text, const KeepsLine& keeps);

// Leaves only these in a file of at most `max_bytes`. Throws lra::Error (74).
void keep_lines(const std::string& path, uint64_t max_bytes, const KeepsLine& keeps);

// The fields that every line of metrics.jsonl begins with. Throws lra::Error for text that is not a
// JSON object with a "step"; without a "kind" this is empty. `name` is the file in messages.
struct StepLine {
  int64_t step = 0;
  std::string kind;  // "train", "val", "test", "skip", "roll_back"
};
StepLine step_line_of(std::string_view line, const std::string& name);

// A line of metrics.jsonl: a JSON object with a "step" of at most `step` that is not of the test,
// which comes after all steps. `name` is the file in messages. Throws lra::Error for other text.
bool is_line_until_step(std::string_view line, int64_t step, const std::string& name);

}  // namespace lra
