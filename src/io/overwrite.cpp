#include "io/overwrite.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace lra {
namespace {

std::string beginning_of(const std::string& path) {
  constexpr std::streamsize kMost = 4096;
  std::string begin(static_cast<size_t>(kMost), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), kMost);
  begin.resize(static_cast<size_t>(file.gcount()));
  return begin;
}

bool is_of_kind(const std::string& begin, const OutputKind& kind) {
  // A line may be empty before the first one.
  const size_t first = begin.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return false;
  if (!std::string_view(begin).substr(first).starts_with(kind.marks.front())) return false;
  for (const std::string_view mark : kind.marks) {
    if (begin.find(mark) == std::string::npos) return false;
  }
  return true;
}

}  // namespace

const OutputKind& png_output() {
  static const OutputKind kind{.name = "a PNG picture", .marks = {"\x89PNG\r\n"}};
  return kind;
}

const OutputKind& trace_output() {
  static const OutputKind kind{.name = "a trace",
                               .marks = {"{", "\"schemaVersion\"", "\"deviceProperties\""}};
  return kind;
}

void refuse_to_overwrite(const std::string& path, const OutputKind& kind,
                         const std::string& option) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;
  const std::string begin = beginning_of(path);
  if (begin.empty() || is_of_kind(begin, kind)) return;
  throw Error({.where = path,
               .what = "exists and is not " + std::string(kind.name) + " that lra wrote",
               .expected = "a new file, or an earlier one of this kind",
               .advice = "name another file with " + option});
}

}  // namespace lra
