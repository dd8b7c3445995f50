#include "records/step_lines.h"

#include <charconv>
#include <optional>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace lra {
namespace {

// Parses a line as the metrics are written, {"step":7,"kind":"train",...}: runs log hundreds of
// thousands, and the parser takes 14 us for each. Nothing where two lines may have run into each
// other.
std::optional<StepLine> plain_head(std::string_view line) {
  constexpr std::string_view kStep = "{\"step\":", kKind = ",\"kind\":\"";
  if (!line.starts_with(kStep) || !line.ends_with('}') || line.find('{', 1) != line.npos) return {};
  StepLine head;
  const char *begin = line.data() + kStep.size(), *end = line.data() + line.size();
  const auto [stop, code] = std::from_chars(begin, end, head.step);
  if (code != std::errc()) return {};
  const std::string_view rest(stop, static_cast<size_t>(end - stop));
  if (!rest.starts_with(kKind)) return {};
  head.kind = rest.substr(kKind.size(), rest.find('"', kKind.size()) - kKind.size());
  return head;
}

}  // namespace

StepLine step_line_of(std::string_view line, const std::string& name) {
  if (auto head = plain_head(line)) return *head;
  const Json json = parse_json(line, name);
  JsonFields fields(json, name);
  return {fields.get<int64_t>("step"), fields.find<std::string>("kind").value_or("")};
}

std::string kept_lines(std::string_view text, const KeepsLine& keeps) {
  std::string kept;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string_view::npos;
       begin = end + 1) {
    try {
      if (keeps(text.substr(begin, end - begin))) kept += text.substr(begin, end + 1 - begin);
    } catch (const Error&) {
      // The line is incomplete, or not ours.
    }
  }
  return kept;
}

void keep_lines(const std::string& path, uint64_t max_bytes, const KeepsLine& keeps) {
  const std::string text = read_file(path, max_bytes);
  const std::string kept = kept_lines(text, keeps);
  if (kept.size() != text.size()) write_file_atomically(path, kept);
}

bool is_line_until_step(std::string_view line, int64_t step, const std::string& name) {
  const StepLine head = step_line_of(line, name);
  return head.step <= step && head.kind != "test";
}

}  // namespace lra
