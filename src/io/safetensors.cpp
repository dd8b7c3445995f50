#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "io/atomic_file.h"
#include "io/byte_reader.h"
#include "io/json.h"

namespace lra {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data is written as it lies");

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the official limit
constexpr size_t kMaxDimensions = 64;
constexpr const char* kMetadata = "__metadata__";

struct DtypeInfo {
  Dtype dtype;
  const char* name;
  int64_t size;
};
constexpr std::array<DtypeInfo, 10> kDtypes = {{{Dtype::kF64, "F64", 8},
                                                {Dtype::kF32, "F32", 4},
                                                {Dtype::kF16, "F16", 2},
                                                {Dtype::kBF16, "BF16", 2},
                                                {Dtype::kI64, "I64", 8},
                                                {Dtype::kI32, "I32", 4},
                                                {Dtype::kI16, "I16", 2},
                                                {Dtype::kI8, "I8", 1},
                                                {Dtype::kU8, "U8", 1},
                                                {Dtype::kBool, "BOOL", 1}}};

const DtypeInfo& info(Dtype dtype) {
  const auto index = static_cast<size_t>(dtype);
  LRA_CHECK_LT(index, kDtypes.size());
  return kDtypes[index];
}

// Bytes of a tensor; nothing when a size is negative or the product leaves 63 bits.
std::optional<uint64_t> tensor_bytes(Dtype dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = size_in_bytes(dtype);
  bool overflow = false;
  for (const int64_t size : shape) {
    if (size < 0) return {};
    overflow = __builtin_mul_overflow(bytes, size, &bytes) || overflow;
  }
  // A zero after an overflow still is an empty tensor, but nobody writes such a shape in earnest.
  if (overflow) return {};
  return static_cast<uint64_t>(bytes);
}

std::string header_text(const std::vector<TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  // The vector under an ordered object: its own insertion searches linearly.
  auto& entries = header.get_ref<Json::object_t&>();
  uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    const uint64_t end = offset + tensor.data.size();
    entries.emplace_back(tensor.name, Json{{"dtype", to_string(tensor.dtype)},
                                           {"shape", tensor.shape},
                                           {"data_offsets", {offset, end}}});
    offset = end;
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

void check_tensors(const std::vector<TensorView>& tensors) {
  std::set<std::string_view> names;
  for (const TensorView& tensor : tensors) {
    LRA_CHECK(!tensor.name.empty() && tensor.name != kMetadata);
    LRA_CHECK(names.insert(tensor.name).second);
    const auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
    LRA_CHECK(bytes.has_value());
    LRA_CHECK_EQ(*bytes, tensor.data.size());
  }
}

[[noreturn]] void refuse(const std::string& path, const std::string& what,
                         const std::string& expected = "") {
  throw Error({.where = path, .what = what, .expected = expected});
}

// Refuses other files of weights by their first bytes, which are no length of a header here: a
// header of 640 bytes begins a file with 80 02, as a pickle does.
void refuse_other_format(const std::string& path, std::string_view content) {
  using namespace std::string_view_literals;
  static constexpr const char* kPickle = "is a Python pickle, as torch.save wrote it";
  static constexpr std::pair<std::string_view, const char*> kOthers[] = {
      {"PK\3\4"sv, "is a zip archive, as torch.save writes it"},
      {"\x80\2\x8A\x0A\x6C\xFC\x9C\x46"sv, kPickle},  // torch's own number
      {"\x80\2}"sv, kPickle},                         // a dictionary
      {"\x80\2c"sv, kPickle},                         // a class
      {"\x80\3}"sv, kPickle},
      {"\x80\3c"sv, kPickle},
      {"\x80\4\x95"sv, kPickle},  // a frame
      {"\x80\5\x95"sv, kPickle},
      {"\x89HDF\r\n\x1A\n"sv, "is an HDF5 file"}};
  if (content.size() > 8 && content[8] == '{') return;  // the header, behind its length
  for (const auto& [begin, what] : kOthers) {
    if (!content.starts_with(begin)) continue;
    throw Error({.where = path,
                 .what = what,
                 .expected = "safetensors",
                 .advice = "convert it in Python: safetensors.torch.save_file(torch.load(FILE, "
                           "weights_only=True), 'model.safetensors')"});
  }
}

// One entry of the header, before the data are looked at.
struct Entry {
  TensorView tensor;
  uint64_t begin = 0, end = 0;
};

uint64_t unsigned_item(const Json& value, const JsonFields& fields, const char* key) {
  if (!value.is_number_unsigned()) {
    fields.fail(key, "holds " + json_text(value).substr(0, 40), "integers >= 0");
  }
  return value.get<uint64_t>();
}

Entry parse_entry(const std::string& name, const Json& value, const std::string& path) {
  JsonFields fields(value, path, printable(name));
  Entry entry;
  entry.tensor.name = name;
  const auto dtype = fields.get<std::string>("dtype");
  const auto known = std::find_if(kDtypes.begin(), kDtypes.end(),
                                  [&](const DtypeInfo& item) { return item.name == dtype; });
  if (known == kDtypes.end()) {
    fields.fail("dtype", "is " + in_quotes(dtype),
                "F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL");
  }
  entry.tensor.dtype = known->dtype;
  const Json& shape = fields.array("shape");
  if (shape.size() > kMaxDimensions) fields.fail("shape", "is too long", "at most 64 sizes");
  for (const Json& size : shape) {
    const uint64_t count = unsigned_item(size, fields, "shape");
    if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fields.fail("shape", "overflows", "a product below 2^63 bytes");
    }
    entry.tensor.shape.push_back(static_cast<int64_t>(count));
  }
  const Json& offsets = fields.array("data_offsets");
  if (offsets.size() != 2) fields.fail("data_offsets", "is malformed", "[begin, end]");
  entry.begin = unsigned_item(offsets[0], fields, "data_offsets");
  entry.end = unsigned_item(offsets[1], fields, "data_offsets");
  if (entry.end < entry.begin) fields.fail("data_offsets", "end before they begin", "[begin, end]");
  fields.finish();
  const auto bytes = tensor_bytes(entry.tensor.dtype, entry.tensor.shape);
  if (!bytes) fields.fail("shape", "overflows", "a product below 2^63 bytes");
  if (*bytes != entry.end - entry.begin) {
    fields.fail("data_offsets", "hold " + std::to_string(entry.end - entry.begin) + " bytes",
                std::to_string(*bytes) + " for dtype and shape");
  }
  return entry;
}

std::map<std::string, std::string> parse_metadata(const Json& value, const std::string& path) {
  JsonFields fields(value, path, kMetadata);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) fields.fail(printable(key), "is " + json_type_name(text), "a string");
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

// Cuts the data into tensors, which must follow each other without holes and end with the file.
std::vector<TensorView> place_tensors(std::vector<Entry> entries, ByteReader& reader,
                                      const std::string& path) {
  // Empty tensors may share an offset with the next one: the shorter first.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::vector<TensorView> tensors;
  uint64_t offset = 0;
  for (Entry& entry : entries) {
    const std::string name = "tensor " + in_quotes(entry.tensor.name, 100);
    if (entry.begin < offset) refuse(path, name + " overlaps the tensor before it");
    if (entry.begin > offset) {
      refuse(path, std::to_string(entry.begin - offset) + " bytes before " + name +
                       " belong to no tensor");
    }
    if (entry.end - entry.begin > reader.remaining()) {
      refuse(path, name + " reaches past the end of the file",
             std::to_string(entry.end - entry.begin) + " bytes of data");
    }
    entry.tensor.data = reader.bytes(entry.end - entry.begin, "tensor data");
    offset = entry.end;
    tensors.push_back(std::move(entry.tensor));
  }
  reader.expect_end();
  return tensors;
}

}  // namespace

std::string to_string(Dtype dtype) { return info(dtype).name; }

int64_t size_in_bytes(Dtype dtype) { return info(dtype).size; }

void write_safetensors(const std::string& path, const std::vector<TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  check_tensors(tensors);
  const std::string header = header_text(tensors, metadata);
  LRA_CHECK_LE(header.size(), kMaxHeaderBytes);
  const uint64_t length = header.size();
  AtomicFile file(path);
  file.append(std::as_bytes(std::span(&length, 1)));
  file.append(header);
  for (const TensorView& tensor : tensors) file.append(tensor.data);
  file.commit();
}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result(path, read_file(path, std::numeric_limits<int64_t>::max()));
  refuse_other_format(path, result.content_);
  ByteReader reader(std::as_bytes(std::span(result.content_)), path);
  const uint64_t length = reader.u64("length of the header");
  if (length > kMaxHeaderBytes) {
    refuse(path, "a header of " + std::to_string(length) + " bytes", "at most 100000000");
  }
  if (length % 8 != 0) {
    refuse(path, "a header of " + std::to_string(length) + " bytes", "a multiple of 8");
  }
  const std::string_view text = reader.text(length, "header");
  // The format wants the brace first; a parser would also take white space or a byte order mark.
  if (!text.starts_with('{')) refuse(path, "the header is not a JSON object", "'{' at byte 8");
  const Json header =
      parse_json(text, path + " (header)", {.max_bytes = kMaxHeaderBytes, .max_depth = 4});
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata) {
      result.metadata_ = parse_metadata(value, path);
    } else {
      entries.push_back(parse_entry(name, value, path));
    }
  }
  result.tensors_ = place_tensors(std::move(entries), reader, path);
  for (size_t i = 0; i < result.tensors_.size(); ++i) {
    result.index_.emplace(result.tensors_[i].name, i);
  }
  return result;
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace lra
