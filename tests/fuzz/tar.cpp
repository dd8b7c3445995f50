// Archives. The checksums of the headers are put right first, as an attacker would.
// Covers: src/data/tar_archive.cpp src/data/archive_stream.cpp
// Without: write_to
#include <cstdio>
#include <cstring>

#include "data/tar_archive.h"
#include "fuzz_target.h"
#include "memory_file.h"

namespace {

constexpr size_t kBlock = 512, kChecksumAt = 148, kChecksumSize = 8, kMagicAt = 257;

void mend_checksums(std::string& file) {
  for (size_t at = 0; at + kBlock <= file.size(); at += kBlock) {
    char* block = &file[at];
    if (std::memcmp(block + kMagicAt, "ustar", 5) != 0) continue;
    std::memset(block + kChecksumAt, ' ', kChecksumSize);
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(block[i]);
    std::snprintf(block + kChecksumAt, kChecksumSize, "%06o", sum);
  }
}

void read(const std::string& path) {
  constexpr lra::TarArchive::Limits kLimits = {
      .entries = 5, .entry_bytes = 1 << 16, .total_bytes = 1 << 17};
  lra::TarArchive archive(path, "an archive", kLimits);
  while (archive.next()) {
    LRA_CHECK(!archive.name().starts_with('/'));
    if (archive.is_file() && archive.name().size() % 2 == 0) archive.content(1 << 20);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  mend_checksums(file);
  lra::fuzz::MemoryFile memory;
  memory.set(std::as_bytes(std::span(file)));
  lra::fuzz::accepts([&] { read(memory.path()); });
  return 0;
}
