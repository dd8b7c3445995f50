#include "tasks/custom/npy.h"

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

NpyArray::NpyArray(std::vector<std::byte> content, std::string name)
    : content_(std::move(content)), name_(std::move(name)) {
  ByteReader reader(content_, name_);
  if (reader.text(kMagic.size(), "magic") != kMagic) reader.fail("is not an .npy file", "an array");
  const int version = reader.u8("version");
  reader.skip(1, "minor version");
  if (version < 1 || version > 3) {
    reader.fail("format version is " + std::to_string(version), "1, 2 or 3");
  }
  const uint64_t header_bytes = version == 1 ? reader.u16("size") : reader.u32("size");
  const std::string_view header = reader.text(header_bytes, "header");
  const std::string_view type = value_of(header, "descr", reader);
  const std::string_view dtype = type.substr(0, std::min(type.find('\'', 1), type.size()));
  shape_ = shape_of(value_of(header, "shape", reader), reader);
  data_begin_ = reader.position();
  if (dtype.size() < 4 || dtype[0] != '\'' || dtype[1] == '>' ||
      std::string_view("biufUS").find(dtype[2]) == std::string_view::npos) {
    reader.fail("dtype is " + in_quotes(type.substr(0, std::min<size_t>(type.find(','), 40))),
                "little-endian bools, integers, floats or texts (no objects)");
  }
  kind_ = dtype[2];
  (void)std::from_chars(dtype.data() + 3, dtype.data() + dtype.size(), item_bytes_);
  if (kind_ == 'U') item_bytes_ *= 4;
  const bool known_width =
      item_bytes_ == 1 || item_bytes_ == 2 || item_bytes_ == 4 || item_bytes_ == 8 || is_text();
  if (!known_width || item_bytes_ == 0 || (kind_ == 'f' && item_bytes_ == 1)) {
    reader.fail("elements have " + std::to_string(item_bytes_) + " bytes", "at most 64 bits");
  }
  if (value_of(header, "fortran_order", reader).starts_with("True") && shape_.size() > 1) {
    reader.fail("is in Fortran order", "C order: numpy.ascontiguousarray(...)");
  }
  const uint64_t elements = reader.remaining() / item_bytes_;
  for (const int64_t length : shape_) {
    if (length > 0 && static_cast<uint64_t>(size_) > elements / static_cast<uint64_t>(length)) {
      reader.fail("is cut off: its shape has more elements than the file");
    }
    size_ *= length;
  }
  if (static_cast<uint64_t>(size_) * item_bytes_ != reader.remaining()) {
    reader.fail("holds " + std::to_string(reader.remaining()) + " bytes of elements",
                std::to_string(static_cast<uint64_t>(size_) * item_bytes_));
  }
}

template <typename T>
T NpyArray::at(int64_t element) const {
  LRA_CHECK(element >= 0 && element < size_ && sizeof(T) == item_bytes_);
  T value;
  std::memcpy(&value, content_.data() + data_begin_ + item_bytes_ * static_cast<size_t>(element),
              sizeof(T));
  return value;
}

double NpyArray::number(int64_t element) const {
  const bool is_signed = kind_ == 'i', is_float = kind_ == 'f';
  switch (item_bytes_) {
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
  const std::byte* const begin =
      content_.data() + data_begin_ + item_bytes_ * static_cast<size_t>(element);
  std::string text;
  for (size_t i = 0; i < item_bytes_; i += kind_ == 'U' ? 4 : 1) {
    uint32_t character = std::to_integer<uint32_t>(begin[i]);
    if (kind_ == 'U') std::memcpy(&character, begin + i, 4);
    if (kind_ == 'U') {
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
