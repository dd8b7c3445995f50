#include "io/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "base/scratch_folder.h"
#include "io/atomic_file.h"
#include "io/byte_reader.h"

namespace lra {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms.
TEST(Crc32c, GivesThePublishedAnswers) {
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62a8ab43u);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  falling.assign(rising.rbegin(), rising.rend());
  EXPECT_EQ(crc32c(bytes_of(rising)), 0x46dd794eu);
  EXPECT_EQ(crc32c(bytes_of(falling)), 0x113fdb5cu);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, MaskRotatesAndAdds) {
  // crc32c("") is 0, so the mask is its constant alone.
  EXPECT_EQ(masked_crc32c({}), 0xa282ead8u);
  const uint32_t crc = 0xe3069283u;
  EXPECT_EQ(masked_crc32c(bytes_of("123456789")), ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

// The records of a file without their 9 bytes of wall time; checks lengths and checksums.
std::vector<std::string> events_in(const std::string& path) {
  const std::string content = read_file(path, 1 << 20);
  ByteReader reader(bytes_of(content), path);
  std::vector<std::string> events;
  while (!reader.at_end()) {
    const auto length_bytes = reader.bytes(8, "length");
    uint64_t length;
    std::memcpy(&length, length_bytes.data(), 8);
    EXPECT_EQ(reader.u32("checksum"), masked_crc32c(length_bytes));
    const std::string_view data = reader.text(length, "event");
    EXPECT_EQ(reader.u32("checksum"), masked_crc32c(bytes_of(data)));
    EXPECT_EQ(data[0], '\x09');  // field 1, fixed64
    double wall_time;
    std::memcpy(&wall_time, data.data() + 1, 8);
    EXPECT_NEAR(wall_time, unix_seconds(), 60);
    events.emplace_back(data.substr(9));
  }
  return events;
}

TEST(EventFile, WritesTheVersionThenScalars) {
  const ScratchFolder folder;
  std::string path;
  {
    EventFile file(folder.path());
    path = file.path();
    file.scalar("loss", 0.5f, 300);
    file.scalar("a", -1.0f, 0);
  }
  const std::vector<std::string> events = events_in(path);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0],
            "\x1a\x0d"
            "brain.Event:2");
  // step 300 as a varint; summary { value { tag "loss", simple_value 0.5 } }
  EXPECT_EQ(events[1], std::string("\x10\xac\x02"
                                   "\x2a\x0d"
                                   "\x0a\x0b"
                                   "\x0a\x04loss"
                                   "\x15\0\0\0\x3f",
                                   18));
  EXPECT_EQ(events[2], std::string("\x2a\x0a"
                                   "\x0a\x08"
                                   "\x0a\x01"
                                   "a"
                                   "\x15\0\0\x80\xbf",
                                   12));
}

TEST(EventFile, AfterAResumePurgesLaterSteps) {
  const ScratchFolder folder;
  EventFile file(folder.path(), 200);
  const std::vector<std::string> events = events_in(file.path());
  ASSERT_EQ(events.size(), 2u);
  // step 200; session_log { status START }
  EXPECT_EQ(events[1],
            "\x10\xc8\x01"
            "\x3a\x02"
            "\x08\x01");
}

// TensorBoard reads them in the order of names, also when a run is resumed twice within a second.
TEST(EventFile, ComesAfterTheFilesThatAreThere) {
  const ScratchFolder folder;
  std::string before = folder.file("events.out.tfevents.");
  for (int i = 0; i < 3; ++i) {
    const EventFile file(folder.path());
    EXPECT_LT(before, file.path());
    EXPECT_TRUE(file.path().starts_with(folder.file("events.out.tfevents.")));
    before = file.path();
  }
  // A file from a machine whose clock is ahead.
  write_file_atomically(folder.file("events.out.tfevents.9999999990.other.1"), "");
  EXPECT_THAT(EventFile(folder.path()).path(), HasSubstr("tfevents.9999999991."));
}

TEST(EventFile, FlushesByItself) {
  const ScratchFolder folder;
  EventFile file(folder.path());
  for (int step = 0; step < 2000; ++step) file.scalar("loss", 1, step);
  EXPECT_GT(std::filesystem::file_size(file.path()), 65536u);
}

TEST(EventFile, WithoutAFolderIsAnError) {
  EXPECT_THAT(error_of([] { EventFile("/no/such/folder"); }), HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace lra
