#include "io/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "io/input_file.h"

namespace lra {

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const InputFile file(path);
  const auto size = static_cast<size_t>(file.size());
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (address == MAP_FAILED) throw io_error(path, "cannot be mapped into memory", errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

void MappedFile::release(std::span<const std::byte> part) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = begin / page * page;
  // Advice: whatever comes of it, reading gives the same bytes.
  (void)::madvise(reinterpret_cast<void*>(first), begin + part.size() - first, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace lra
