// TensorBoard events: whatever tags and values are, the file is whole records with right checksums.
// Covers: src/base/event_file.cpp Without: sync latest_time_in
#include "base/event_file.h"

#include <unistd.h>

#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/byte_reader.h"
#include "base/scratch_folder.h"
#include "fuzz_target.h"

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The data of every record.
std::vector<std::string> records_of(const std::string& content) {
  lra::ByteReader reader(bytes_of(content), "events");
  std::vector<std::string> records;
  while (!reader.at_end()) {
    const std::span<const std::byte> length = reader.bytes(8, "length");
    LRA_CHECK_EQ(reader.u32("checksum"), lra::masked_crc32c(length));
    uint64_t size = 0;
    for (size_t i = 0; i < 8; ++i) size |= std::to_integer<uint64_t>(length[i]) << (8 * i);
    const std::string_view data = reader.text(size, "event");
    LRA_CHECK_EQ(reader.u32("checksum"), lra::masked_crc32c(bytes_of(data)));
    records.emplace_back(data);
  }
  return records;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const lra::ScratchFolder folder;
  lra::fuzz::Input input(data, size);
  const int64_t step = static_cast<int8_t>(input.byte());
  const std::string tag(input.text());
  std::string path;
  {
    lra::EventFile file(folder.path(), step % 2 ? std::optional(step) : std::nullopt);
    path = file.path();
    file.scalar(tag, std::bit_cast<float>(static_cast<uint32_t>(size * 2654435761u)), step);
  }
  const std::vector<std::string> records = records_of(lra::read_file(path, 1 << 20));
  LRA_CHECK_EQ(::unlink(path.c_str()), 0);
  LRA_CHECK_EQ(records.size(), step % 2 ? 3u : 2u);
  LRA_CHECK(records.back().find(tag) != std::string::npos);
  return 0;
}
