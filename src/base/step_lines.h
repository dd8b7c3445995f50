// metrics.jsonl of a run that goes on: what its lines say after the checkpoint will be written
// again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lra {

// The lines of `text` that are JSON objects with a "step" of at most `step`, each with its line
// end. Others, a last one without a line end among them, were cut short by a crash. `name` is the
// file in messages; throws nothing for what stands in the text.
std::string lines_until_step(std::string_view text, int64_t step, const std::string& name);

}  // namespace lra
