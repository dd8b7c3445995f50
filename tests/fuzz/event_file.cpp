// TensorBoard events: whatever tags and values are, the file is whole records with right checksums.
// Covers: src/io/event_file.cpp Without: sync latest_time_in make_crc_table
#include "io/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "base/scratch_folder.h"
#include "fuzz_target.h"
#include "io/atomic_file.h"
#include "io/byte_reader.h"

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

float odd_number(size_t seed) {
  return std::bit_cast<float>(static_cast<uint32_t>(seed * 2654435761u));
}

lra::Histogram histogram_of(const lra::fuzz::Input& input) {
  lra::Histogram histogram{.min = -1,
                           .max = odd_number(input.text().size()),
                           .count = 2,
                           .sum = 0,
                           .sum_squares = 1,
                           .limits = {},
                           .counts = {}};
  for (const std::byte byte : input.bytes().first(std::min<size_t>(input.bytes().size(), 40))) {
    histogram.limits.push_back(std::to_integer<int>(byte) - 128.0);
    histogram.counts.push_back(odd_number(std::to_integer<size_t>(byte)));
  }
  return histogram;
}

// NAME zero KIND TEXT zero, as often as there are.
std::vector<lra::HParam> parameters_of(lra::fuzz::Input input) {
  std::vector<lra::HParam> parameters;
  while (!input.text().empty()) {
    lra::HParam& parameter = parameters.emplace_back();
    parameter.name = input.until('\0');
    const uint8_t kind = input.byte();
    const std::string_view text = input.until('\0');
    if (kind % 3 == 0) parameter.value = std::string(text);
    if (kind % 3 == 1) parameter.value = double{odd_number(text.size())};
    if (kind % 3 == 2) parameter.value = text.empty();
  }
  return parameters;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const lra::ScratchFolder folder;
  lra::fuzz::Input input(data, size);
  const int64_t step = static_cast<int8_t>(input.byte());
  const std::string tag(input.until('\0'));
  const std::vector<lra::HParam> parameters = parameters_of(input);
  const std::string metrics[] = {tag, std::string(input.text())};
  std::string path;
  {
    lra::EventFile file(folder.path(), step % 2 ? std::optional(step) : std::nullopt);
    path = file.path();
    file.session_start(parameters, metrics);
    file.histogram(tag, histogram_of(input), step);
    file.session_end(size % 2 == 0);
    file.scalar(tag, odd_number(size), step);
  }
  const std::vector<std::string> records = records_of(lra::read_file(path, 1 << 20));
  LRA_CHECK_EQ(::unlink(path.c_str()), 0);
  LRA_CHECK_EQ(records.size(), step % 2 ? 7u : 6u);
  LRA_CHECK(records.back().find(tag) != std::string::npos);
  const std::string& start = records[records.size() - 4];
  for (const lra::HParam& parameter : parameters) {
    LRA_CHECK(start.find(parameter.name) != std::string::npos);
  }
  return 0;
}
