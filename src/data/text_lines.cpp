#include "data/text_lines.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/text_format.h"
#include "base/utf8.h"
#include "data/stopping.h"
#include "io/input_file.h"

namespace lra {

ReadAt reader_of(const InputFile& file) {
  return
      [&file](uint64_t offset, char* out, size_t size) { return file.read_at(offset, out, size); };
}

ReadAt reader_of(std::string_view text) {
  return [text](uint64_t offset, char* out, size_t size) {
    return text.copy(out, size, std::min<size_t>(offset, text.size()));
  };
}

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

[[noreturn]] void refuse_encoding(const std::string& name, const std::string& what) {
  throw Error({.where = name, .what = what, .expected = "UTF-8", .advice = "save it as UTF-8"});
}

// Refuses a file that a text was packed into, or that never was one, by all that its format fixes
// at the beginning: the letters "BZh" or "PK" also begin texts.
void refuse_other_formats(std::string_view begin, const std::string& name) {
  using namespace std::string_view_literals;
  constexpr const char* kUnpack = "unpack or convert it";
  constexpr const char* kDownload = "download it from the address of the file itself";
  struct Format {
    std::string_view begin;
    const char *title, *advice;
  };
  static constexpr Format kFormats[] = {{"\x1F\x8B\x08"sv, "a gzip file", kUnpack},
                                        {"BZh91AY&SY"sv, "a bzip2 file", kUnpack},
                                        {"\xFD\x37zXZ\0"sv, "an xz file", kUnpack},
                                        {"\x28\xB5\x2F\xFD"sv, "a zstd file", kUnpack},
                                        {"PK\3\4"sv, "a zip archive", kUnpack},
                                        {"%PDF-"sv, "a PDF file", kUnpack},
                                        {"<!DOCTYPE html"sv, "an HTML page", kDownload},
                                        {"<!doctype html"sv, "an HTML page", kDownload},
                                        {"<html"sv, "an HTML page", kDownload}};
  for (const Format& format : kFormats) {
    if (!begin.starts_with(format.begin)) continue;
    throw Error({.where = name,
                 .what = std::string("is ") + format.title + " by its first bytes",
                 .expected = "text in UTF-8",
                 .advice = format.advice});
  }
}

// The beginning of a file or document without its byte order mark.
std::string_view skip_byte_order_mark(std::string_view begin, const std::string& name) {
  if (begin.starts_with("\xFF\xFE") || begin.starts_with("\xFE\xFF")) {
    refuse_encoding(name, "is UTF-16 by its first two bytes");
  }
  refuse_other_formats(begin, name);
  if (begin.starts_with(kByteOrderMark)) begin.remove_prefix(kByteOrderMark.size());
  return begin;
}

// True if the text is UTF-8 up to a character that is cut off at its end.
bool is_utf8_to_its_end(std::string_view text) {
  constexpr size_t kMaxCut = 3;
  for (size_t cut = 0; cut <= std::min(kMaxCut, text.size()); ++cut) {
    if (is_utf8(text.substr(0, text.size() - cut))) return true;
  }
  return false;
}

}  // namespace

std::string_view checked_text(std::string_view text, const std::string& name) {
  text = skip_byte_order_mark(text, name);
  if (text.find('\0') != std::string_view::npos) {
    refuse_encoding(name, "holds zero bytes: it is UTF-16 or UTF-32, or not a text");
  }
  if (!is_utf8_to_its_end(text)) refuse_encoding(name, "is not UTF-8");
  return text;
}

std::string document_text(std::string_view text, const std::string& name) {
  std::string lines(checked_text(text, name));
  size_t size = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines.compare(i, 2, "\r\n") != 0) lines[size++] = lines[i];
  }
  lines.resize(size);
  return lines;
}

std::string_view take_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

void read_lines(const ReadAt& read_at, const std::string& name, const LineSink& sink,
                const LineLimits& limits) {
  LRA_CHECK_GT(limits.block_bytes, 0u);
  std::vector<char> buffer(limits.block_bytes);
  size_t kept = 0;      // of a line whose end was not in the last block
  uint64_t offset = 0;  // of buffer[0] in the file
  int64_t number = 0;
  int64_t empty_line = 0;  // the first one behind the last line that was not empty; 0: none
  const auto give = [&](std::string_view line, uint64_t at) {
    ++number;
    if (number == 1) {
      const std::string_view text = skip_byte_order_mark(line, name);
      at += line.size() - text.size();
      line = text;
    }
    if (line.empty()) {
      if (empty_line == 0) empty_line = number;
      return;
    }
    if (empty_line > 0) {
      throw Error({.where = name + ":" + std::to_string(empty_line),
                   .what = "is empty",
                   .expected = "an example; lines may be empty only at the end of the file"});
    }
    sink(line, number, at);
  };
  const auto check_length = [&](size_t size, int64_t line) {
    if (size <= limits.line_bytes) return;
    throw Error(
        {.where = name + ":" + std::to_string(line),
         .what = "line has over " + thousands(static_cast<int64_t>(limits.line_bytes)) + " bytes",
         .expected = "a line of text"});
  };
  for (bool at_end = false; !at_end;) {
    throw_if_stopped();
    if (kept == buffer.size()) buffer.resize(2 * buffer.size());
    const size_t wanted = buffer.size() - kept;
    const size_t count = read_at(offset + kept, buffer.data() + kept, wanted);
    at_end = count < wanted;
    const std::string_view all(buffer.data(), kept + count);
    size_t begin = 0, scanned = kept;
    while (begin < all.size()) {
      const size_t end = all.find('\n', std::max(begin, scanned));
      if (end == std::string_view::npos && !at_end) break;
      std::string_view line = all.substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      check_length(line.size(), number + 1);
      give(line, offset + begin);
      begin = end == std::string_view::npos ? all.size() : end + 1;
    }
    kept = all.size() - begin;
    // A carriage return may turn out to belong to the line end.
    check_length(kept - (all.ends_with('\r') && kept > 0 ? 1 : 0), number + 1);
    std::memmove(buffer.data(), buffer.data() + begin, kept);
    offset += begin;
  }
}

}  // namespace lra
