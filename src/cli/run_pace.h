// The last line of training in metrics.jsonl: newer than the record, which is written with
// checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lra::cli {

struct Pace {
  int64_t step = 0;
  double loss = 0, accuracy = 0, tokens_per_s = 0;
};

// Nothing if there is no such file, or no line of training among its last.
std::optional<Pace> last_pace(const std::string& path);

}  // namespace lra::cli
