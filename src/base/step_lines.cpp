#include "base/step_lines.h"

#include "base/error.h"
#include "base/json.h"

namespace lra {

std::string lines_until_step(std::string_view text, int64_t step, const std::string& name) {
  std::string kept;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string_view::npos;
       begin = end + 1) {
    try {
      const Json json = parse_json(text.substr(begin, end - begin), name);
      if (JsonFields(json, name).get<int64_t>("step") <= step) {
        kept += text.substr(begin, end + 1 - begin);
      }
    } catch (const Error&) {
      // Not a whole line of ours.
    }
  }
  return kept;
}

}  // namespace lra
