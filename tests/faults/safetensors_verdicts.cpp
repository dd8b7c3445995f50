// Our reader's verdict on safetensors files, for safetensors_mutations.py.
//
// Reads paths from standard input. Answers each with one line: "accepted" and, for every tensor in
// the order of the data, " NAME|DTYPE|SHAPE|HASH" (SHAPE as 2x3, the name in hex, SHA-256 of the
// data), then " KEY=VALUE" of the metadata, both in hex; or "refused: " and the message.
#include <iostream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "io/digest.h"
#include "io/safetensors.h"

namespace {

std::string hex(const std::string& text) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string description(const lra::SafetensorsFile& file) {
  std::string text = "accepted";
  for (const lra::TensorView& tensor : file.tensors()) {
    std::string shape;
    for (const int64_t size : tensor.shape) {
      shape += (shape.empty() ? "" : "x") + std::to_string(size);
    }
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.data.data()),
                                 tensor.data.size());
    text += " " + hex(tensor.name) + "|" + lra::to_string(tensor.dtype) + "|" + shape + "|" +
            lra::digest(lra::DigestKind::kSha256, bytes);
  }
  for (const auto& [key, value] : file.metadata()) text += " " + hex(key) + "=" + hex(value);
  return text;
}

}  // namespace

int main() {
  for (std::string path; std::getline(std::cin, path);) {
    try {
      std::cout << description(lra::SafetensorsFile::open(path)) << std::endl;
    } catch (const lra::Error& error) {
      std::cout << "refused: " << error.what() << std::endl;
    }
  }
}
