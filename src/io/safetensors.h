// The safetensors file format (github.com/huggingface/safetensors), without torch.
//
//   8 bytes little-endian N | N bytes of JSON header | tensor data
//   header: {"__metadata__": {"k": "v"}, "name": {"dtype": "F32", "shape": [2, 3],
//            "data_offsets": [begin, end]}, ...}
//
// We write the header padded with spaces to a multiple of 8, and the tensors without holes in the
// order given. The reader is stricter than the official one: it refuses duplicate keys, unknown
// fields, holes, overlaps, trailing bytes, headers over 100 MB, data that does not start on a
// multiple of 8, unknown dtypes, shapes whose product overflows, and sizes that do not fit the
// shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lra {

enum class Dtype { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };
std::string to_string(Dtype dtype);  // "F32", "BF16", "BOOL": the names in the format
int64_t size_in_bytes(Dtype dtype);

struct TensorView {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;       // empty: a scalar
  std::span<const std::byte> data;  // row-major, little-endian; size = product of shape * size
};

// Writes atomically (exit code 74 when the disk fails). Repeated or empty names, the name
// "__metadata__" and data that does not fit the shape are failed checks.
void write_safetensors(const std::string& path, const std::vector<TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

// A file in memory. The views point into it: they are valid as long as this object (or the one it
// was moved to) lives. It is read, not mapped, so that a failing device causes an error, not a
// signal.
class SafetensorsFile {
 public:
  // Throws lra::Error naming file and tensor.
  static SafetensorsFile open(const std::string& path);

  // Tensors in the order of their data. Data is aligned for its dtype only if the size of every
  // tensor before it preserves alignment, so copy with memcpy.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  // nullptr when there is none.
  const TensorView* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

 private:
  SafetensorsFile(std::string path, std::string content)
      : path_(std::move(path)), content_(std::move(content)) {}

  // Moving it moves no bytes: a file with a tensor in it is too long for a string's own buffer.
  std::string path_, content_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string, size_t> index_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace lra
