#include "cli/run_pace.h"

#include <fstream>
#include <string_view>

#include "io/json.h"

namespace lra::cli {

std::optional<Pace> last_pace(const std::string& path) {
  constexpr std::streamoff kTail = 8192;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg(), begin = std::max<std::streamoff>(0, size - kTail);
  std::string tail(static_cast<size_t>(size - begin), '\0');
  file.seekg(begin);
  if (!file.read(tail.data(), size - begin)) return {};
  std::optional<Pace> pace;
  for (size_t at = tail.find("{\"step\""); at != std::string::npos;) {
    const size_t end = tail.find('\n', at);
    if (end == std::string::npos) break;  // being written
    const Json line = parse_json(std::string_view(tail).substr(at, end - at), path);
    JsonFields fields(line, path);
    if (fields.get<std::string>("kind") == "train") {
      pace = {.step = fields.get<int64_t>("step"),
              .loss = fields.get<double>("loss"),
              .accuracy = fields.get<double>("accuracy"),
              .tokens_per_s = fields.get<double>("tokens_per_s")};
    }
    at = tail.find("{\"step\"", end);
  }
  return pace;
}

}  // namespace lra::cli
