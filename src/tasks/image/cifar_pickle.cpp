#include "tasks/image/cifar_pickle.h"

#include "base/error.h"
#include "base/text_format.h"
#include "tasks/image/pickle.h"

namespace lra::tasks {
namespace {

using Kind = PickleValue::Kind;

constexpr int64_t kColours = 3072;  // of an image: three planes of 32 x 32

// A pickle that can be read, but is not a batch.
[[noreturn]] void refuse(const std::string& name, const std::string& what,
                         const std::string& expected) {
  throw Error({.where = name,
               .what = what,
               .expected = expected,
               .advice =
                   "take data_batch_1 to 5 and test_batch of cifar-10-python.tar.gz, or write "
                   "them again with pickle.dump"});
}

// The last value of a key counts, as in Python. Null if there is no such key.
const PickleValue* find_value(const Pickle& pickle, const std::string& key,
                              const std::string& name) {
  if (pickle.root.kind != Kind::kDict) {
    refuse(name, std::string("holds ") + kind_name(pickle.root.kind),
           "a dictionary with labels and data");
  }
  const PickleValues& items = pickle.containers[pickle.root.index];
  for (size_t i = items.size(); i > 0; i -= 2) {
    if (is_string(items[i - 2], key)) return &items[i - 1];
  }
  return nullptr;
}

PickleValue find(const Pickle& pickle, const std::string& key, Kind kind, const std::string& name) {
  const PickleValue* const value = find_value(pickle, key, name);
  if (!value) refuse(name, "has no " + key, "a dictionary with labels and data");
  if (value->kind != kind) refuse(name, key + " is " + kind_name(value->kind), kind_name(kind));
  return *value;
}

// The texts of a list; empty if there is no such list. No input of a model depends on it.
std::vector<std::string> texts_of(const Pickle& pickle, const std::string& key,
                                  const std::string& name) {
  const PickleValue* const value = find_value(pickle, key, name);
  std::vector<std::string> texts;
  if (!value || value->kind != Kind::kSequence) return texts;
  for (const PickleValue& item : pickle.containers[value->index]) texts.emplace_back(item.text);
  return texts;
}

std::vector<int64_t> labels_of(const Pickle& pickle, const std::string& name) {
  std::vector<int64_t> labels;
  for (const PickleValue& label :
       pickle.containers[find(pickle, "labels", Kind::kSequence, name).index]) {
    if (label.kind != Kind::kInt) {
      refuse(name, "label " + std::to_string(labels.size()) + " is " + kind_name(label.kind),
             "a whole number");
    }
    labels.push_back(label.number);
  }
  return labels;
}

// "[10000, 3072]"; anything but a number becomes "?".
std::string shape_text(const PickleValues& shape) {
  std::string text = "[";
  for (const PickleValue& size : shape) {
    text += text.size() > 1 ? ", " : "";
    if (text.size() > 40) return text + "...]";
    text += size.kind == Kind::kInt ? std::to_string(size.number) : "?";
  }
  return text + "]";
}

// One byte has no byte order, so that every sign of one is the same.
bool is_uint8(std::string_view dtype) {
  constexpr std::string_view kByteOrders = "|<>=";
  if (!dtype.empty() && kByteOrders.find(dtype[0]) != kByteOrders.npos) dtype.remove_prefix(1);
  return dtype == "u1";
}

// The bytes of Latin-1 text that is stored as UTF-8: each character is one byte.
std::vector<std::byte> latin1_bytes(std::string_view utf8, const std::string& name) {
  std::vector<std::byte> bytes;
  bytes.reserve(utf8.size());
  for (size_t i = 0; i < utf8.size(); ++i) {
    unsigned code = static_cast<unsigned char>(utf8[i]);
    if (code >= 0x80) {
      const unsigned next = ++i < utf8.size() ? static_cast<unsigned char>(utf8[i]) : 0;
      const bool is_latin1 = (code == 0xC2 || code == 0xC3) && (next & 0xC0) == 0x80;
      if (!is_latin1) refuse(name, "data holds text that is not Latin-1", "bytes");
      code = (code & 0x03) << 6 | (next & 0x3F);
    }
    bytes.push_back(static_cast<std::byte>(code));
  }
  return bytes;
}

// Throws for an array that is not [N, 3072] of uint8 in C order, regardless of its bytes.
void check_array(const Pickle& pickle, const PickleArray& array, const std::string& name) {
  if (array.data.kind == Kind::kNone) refuse(name, "data is an array without content", "images");
  if (!is_uint8(array.dtype)) {
    refuse(name, "data has the dtype '" + printable(array.dtype.substr(0, 20)) + "'", "uint8");
  }
  const PickleValues& shape = pickle.containers[array.shape.index];
  if (shape.size() != 2 || shape[1].kind != Kind::kInt || shape[1].number != kColours) {
    refuse(name, "data has the shape " + shape_text(shape), "[N, 3072]");
  }
  if (!array.is_c_order) {
    refuse(name, "data is not in C order", "what numpy.ascontiguousarray gives");
  }
}

// The bytes of an array that was checked, of the size that its shape gives.
std::span<const std::byte> colours_of(const Pickle& pickle, const PickleArray& array,
                                      const std::string& name, std::vector<std::byte>* decoded) {
  auto colours = std::as_bytes(std::span(array.data.text));
  if (array.data.kind == Kind::kLatin1) {
    if (!decoded) {
      refuse(name, "data is stored as text, as Python 3 does in protocol 2", "protocol 3 to 5");
    }
    *decoded = latin1_bytes(array.data.text, name);
    colours = *decoded;
  }
  const PickleValues& shape = pickle.containers[array.shape.index];
  const auto num_bytes = static_cast<int64_t>(colours.size());
  if (num_bytes % kColours != 0 || shape[0].kind != Kind::kInt ||
      shape[0].number != num_bytes / kColours) {
    refuse(name,
           "data has the shape " + shape_text(shape) + " and " + thousands(num_bytes) + " bytes",
           "as many bytes as the shape says");
  }
  return colours;
}

}  // namespace

CifarBatch read_cifar_pickle(std::span<const std::byte> bytes, const std::string& name,
                             std::vector<std::byte>* decoded) {
  const Pickle pickle = read_pickle(bytes, name);
  CifarBatch batch{.labels = labels_of(pickle, name),
                   .colours = {},
                   .filenames = texts_of(pickle, "filenames", name),
                   .batch_label = ""};
  if (const PickleValue* label = find_value(pickle, "batch_label", name)) {
    batch.batch_label = std::string(label->text);
  }
  const PickleArray& data = pickle.arrays[find(pickle, "data", Kind::kArray, name).index];
  check_array(pickle, data, name);
  batch.colours = colours_of(pickle, data, name, decoded);
  const size_t num_images = batch.colours.size() / kColours;
  if (num_images != batch.labels.size()) {
    refuse(name,
           "has " + thousands(static_cast<int64_t>(batch.labels.size())) + " labels for " +
               thousands(static_cast<int64_t>(num_images)) + " images",
           "one for each");
  }
  return batch;
}

std::vector<std::string> read_cifar_meta(std::span<const std::byte> bytes,
                                         const std::string& name) {
  return texts_of(read_pickle(bytes, name), "label_names", name);
}

}  // namespace lra::tasks
