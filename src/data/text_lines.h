// Text as every task reads it: UTF-8, without a byte order mark, lines ending in LF or CR LF. An
// encoding that only one class or split has would tell a model the label, or make it fail a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace lra {
class InputFile;
}

namespace lra {

// Returns `text` without a byte order mark. The text may end within a character, as texts do that
// were cut. Throws an lra::Error that names `name` for UTF-16, zero bytes, and invalid UTF-8.
std::string_view checked_text(std::string_view text, const std::string& name);

// The same for a whole document, with each CR LF as LF.
std::string document_text(std::string_view text, const std::string& name);

// Takes the next line off `rest`, without its LF.
std::string_view take_line(std::string_view& rest);

// Copies `size` bytes from `offset` to `out`; returns how many there were, less only at the end.
using ReadAt = std::function<size_t(uint64_t offset, char* out, size_t size)>;
// Reader of a file, or of text in memory; both must outlive it.
ReadAt reader_of(const InputFile& file);
ReadAt reader_of(std::string_view text);

// A line without its line end, its number from 1, and where it begins. The line is valid during the
// call.
using LineSink = std::function<void(std::string_view line, int64_t number, uint64_t offset)>;

struct LineLimits {
  size_t block_bytes = size_t{4} << 20;  // read at a time, at least 1
  size_t line_bytes = size_t{16} << 20;  // a longer line is refused
};

// Calls sink for each line in order, reading in blocks: memory does not grow with the file. Lines
// end in LF or CR LF; the last one may lack its end. A byte order mark in front and empty lines at
// the end are skipped. The file is read from front to back, each byte once. Throws lra::Error that
// names `name` and the line when a line is too long, when an empty line stands before others, and
// when the file is UTF-16.
void read_lines(const ReadAt& read_at, const std::string& name, const LineSink& sink,
                const LineLimits& limits = {});

}  // namespace lra
