#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace lra {
namespace {

std::string one_line(const ErrorParts& parts) {
  std::string text;
  if (!parts.where.empty()) text += parts.where + ": ";
  text += parts.what;
  if (!parts.expected.empty()) text += "; expected " + parts.expected;
  if (!parts.advice.empty()) text += "; " + parts.advice;
  // Names and file contents can carry control characters: a terminal must not act on them, and the
  // reader must see them.
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += ' ';
    } else if (byte < 0x20 || byte == 0x7f) {
      constexpr const char* kDigits = "0123456789abcdef";
      line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace

Error::Error(const ErrorParts& parts) : std::runtime_error(one_line(parts)), code_(parts.code) {}

Error io_error(const std::string& where, const std::string& what, int errno_value) {
  ErrorParts parts{
      .where = where, .what = what + ": " + std::strerror(errno_value), .code = ExitCode::kIoError};
  if (errno_value == EFBIG) {
    parts.advice = "raise the limit on the size of files (ulimit -f)";
    parts.code = ExitCode::kUserError;
  }
  return Error(parts);
}

void check_failed(const char* file, int line, const std::string& message) {
  throw CheckFailure(std::string(file) + ":" + std::to_string(line) + ": check failed: " + message);
}

}  // namespace lra
