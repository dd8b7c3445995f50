#include "base/step_lines.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"

namespace lra {

std::string kept_lines(std::string_view text, const KeepsLine& keeps) {
  std::string kept;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string_view::npos;
       begin = end + 1) {
    try {
      if (keeps(text.substr(begin, end - begin))) kept += text.substr(begin, end + 1 - begin);
    } catch (const Error&) {
      // Not a whole line of ours.
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
  const Json json = parse_json(line, name);
  JsonFields fields(json, name);
  return fields.get<int64_t>("step") <= step && fields.find<std::string>("kind") != "test";
}

}  // namespace lra
