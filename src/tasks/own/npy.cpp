#include "tasks/own/npy.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/quoted.h"
#include "io/byte_reader.h"

namespace lra::tasks {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// The text behind 'key': in the dictionary that a header is.
std::string_view value_of(std::string_view header, const std::string& key,
                          const ByteReader& reader) {
  const std::string quoted = "'" + key + "':";
  const size_t at = header.find(quoted);
  if (at == std::string_view::npos) reader.fail("the header has no " + quoted, "an .npy file");
  header.remove_prefix(at + quoted.size());
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

// "(100, 64)", "(100,)" or "()".
std::vector<int64_t> shape_of(std::string_view text, const ByteReader& reader) {
  std::vector<int64_t> shape;
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos)
    reader.fail("the shape is not a tuple");
  const char* at = text.data() + 1;
  const char* const stop = text.data() + end;
  while (at != stop) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t size = 0;
    const auto [after, problem] = std::from_chars(at, stop, size);
    if (problem != std::errc() || size < 0) reader.fail("the shape is not one of counts");
    shape.push_back(size);
    at = after;
  }
  return shape;
}

// "'<f4'" or "'|S10'".
void read_type(std::string_view type, const ByteReader& reader, NpyHeader& to) {
  const std::string_view dtype = type.substr(0, std::min(type.find('\'', 1), type.size()));
  if (dtype.size() < 4 || dtype[0] != '\'' || dtype[1] == '>' ||
      std::string_view("biufUS").find(dtype[2]) == std::string_view::npos) {
    reader.fail("dtype is " + in_quotes(type.substr(0, std::min<size_t>(type.find(','), 40))),
                "little-endian bools, integers, floats or texts (no objects)");
  }
  to.kind = dtype[2];
  (void)std::from_chars(dtype.data() + 3, dtype.data() + dtype.size(), to.item_bytes);
  const bool is_text = to.kind == 'U' || to.kind == 'S';
  if (to.kind == 'U') to.item_bytes *= 4;
  const bool known_width = to.item_bytes == 1 || to.item_bytes == 2 || to.item_bytes == 4 ||
                           to.item_bytes == 8 || is_text;
  if (!known_width || to.item_bytes == 0 || (to.kind == 'f' && to.item_bytes == 1)) {
    reader.fail("elements have " + std::to_string(to.item_bytes) + " bytes", "at most 64 bits");
  }
}

void append_utf8(uint32_t c, std::string& to) {
  const auto tail = [&](int shift) { to += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    to += static_cast<char>(c);
  } else if (c < 0x800) {
    to += static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    to += static_cast<char>(0xE0 | c >> 12);
    tail(6), tail(0);
  } else {
    to += static_cast<char>(0xF0 | (c >> 18 & 7));
    tail(12), tail(6), tail(0);
  }
}

double half_number(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction ? std::nan("") : HUGE_VAL)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

}  // namespace

uint64_t NpyHeader::total_bytes() const {
  return data_begin + static_cast<uint64_t>(size) * item_bytes;
}

NpyHeader read_npy_header(std::span<const std::byte> content, const std::string& name) {
  NpyHeader found;
  ByteReader reader(content, name);
  if (reader.text(kMagic.size(), "magic") != kMagic) reader.fail("is not an .npy file", "an array");
  const int version = reader.u8("version");
  reader.skip(1, "minor version");
  if (version < 1 || version > 3) {
    reader.fail("format version is " + std::to_string(version), "1, 2 or 3");
  }
  const uint64_t header_bytes = version == 1 ? reader.u16("size") : reader.u32("size");
  const std::string_view header = reader.text(header_bytes, "header");
  found.shape = shape_of(value_of(header, "shape", reader), reader);
  found.data_begin = reader.position();
  found.is_transposed =
      value_of(header, "fortran_order", reader).starts_with("True") && found.shape.size() > 1;
  read_type(value_of(header, "descr", reader), reader, found);
  constexpr uint64_t kMostBytes = uint64_t{1} << 50;
  for (const int64_t length : found.shape) {
    if (length > 0 && found.total_bytes() > kMostBytes / static_cast<uint64_t>(length)) {
      reader.fail("the shape has too many elements");
    }
    found.size *= length;
  }
  return found;
}

NpyArray::NpyArray(std::vector<std::byte> content, std::string name)
    : content_(std::move(content)),
      name_(std::move(name)),
      header_(read_npy_header(content_, name_)) {
  if (content_.size() == header_.total_bytes()) return;
  const bool is_short = content_.size() < header_.total_bytes();
  throw Error({.where = name_,
               .what = is_short ? "is cut off: its shape has more elements than the file"
                                : "holds " + std::to_string(content_.size()) + " bytes",
               .expected = std::to_string(header_.total_bytes()) + " bytes"});
}

// In Fortran order the first index runs fastest.
const std::byte* NpyArray::address(int64_t element) const {
  LRA_CHECK(element >= 0 && element < header_.size);
  int64_t place = element;
  if (header_.is_transposed) {
    place = 0;
    int64_t step = header_.size;
    for (size_t axis = header_.shape.size(); axis-- > 0;) {
      step /= header_.shape[axis];
      place += element % header_.shape[axis] * step;
      element /= header_.shape[axis];
    }
  }
  return content_.data() + header_.data_begin + header_.item_bytes * static_cast<size_t>(place);
}

template <typename T>
T NpyArray::at(int64_t element) const {
  LRA_CHECK(sizeof(T) == header_.item_bytes);
  T value;
  std::memcpy(&value, address(element), sizeof(T));
  return value;
}

double NpyArray::number(int64_t element) const {
  const bool is_signed = header_.kind == 'i', is_float = header_.kind == 'f';
  switch (header_.item_bytes) {
    case 1:
      return is_signed ? at<int8_t>(element) : at<uint8_t>(element);
    case 2:
      if (is_float) return half_number(at<uint16_t>(element));
      return is_signed ? at<int16_t>(element) : at<uint16_t>(element);
    case 4:
      if (is_float) return at<float>(element);
      return is_signed ? at<int32_t>(element) : at<uint32_t>(element);
    default:
      if (is_float) return at<double>(element);
      return is_signed ? static_cast<double>(at<int64_t>(element))
                       : static_cast<double>(at<uint64_t>(element));
  }
}

std::string NpyArray::text(int64_t element) const {
  if (is_whole()) return std::to_string(static_cast<int64_t>(number(element)));
  const std::byte* const begin = address(element);
  std::string text;
  for (size_t i = 0; i < header_.item_bytes; i += header_.kind == 'U' ? 4 : 1) {
    uint32_t character = std::to_integer<uint32_t>(begin[i]);
    if (header_.kind == 'U') std::memcpy(&character, begin + i, 4);
    if (header_.kind == 'U') {
      append_utf8(character, text);
    } else {
      text += static_cast<char>(character);
    }
  }
  // Zeros fill an element up.
  text.erase(text.find_last_not_of('\0') + 1);
  return text;
}

}  // namespace lra::tasks
