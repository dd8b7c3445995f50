#include "base/page_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/resources.h"

namespace lra {
namespace {

// Memory becomes usable in parts of this size, so that a system that counts promised memory counts
// no more than is needed.
constexpr size_t kUsableStep = 64 << 20;

size_t page_bytes() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

PageArena::PageArena(size_t bytes) {
  const auto half = static_cast<size_t>(available_address_bytes() / 2);
  bytes = std::min(bytes, half) / page_bytes() * page_bytes();
  if (bytes == 0) return;
  void* range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return;
  start_ = usable_end_ = reinterpret_cast<Address>(range);
  capacity_ = bytes;
  free_sizes_.insert({capacity_, start_});
  parts_[start_].bytes = capacity_;
}

PageArena::~PageArena() {
  if (capacity_ > 0) munmap(reinterpret_cast<void*>(start_), capacity_);
}

void* PageArena::allocate(size_t bytes) {
  if (bytes > capacity_) return nullptr;
  bytes = round_up(std::max<size_t>(bytes, 1), page_bytes());
  const std::lock_guard lock(mutex_);
  const auto fit = free_sizes_.lower_bound({bytes, 0});
  if (fit == free_sizes_.end()) return nullptr;
  const auto [part_bytes, address] = *fit;
  if (!make_usable(address + bytes)) return nullptr;
  if (part_bytes > bytes) {
    // Everything that may throw comes first.
    Parts rest;
    rest[address + bytes].bytes = part_bytes - bytes;
    free_sizes_.insert({part_bytes - bytes, address + bytes});
    parts_.merge(rest);
  }
  Part& part = parts_.find(address)->second;
  part.bytes = bytes;
  part.size = free_sizes_.extract(fit);
  return reinterpret_cast<void*>(address);
}

bool PageArena::free(void* block) noexcept {
  const auto address = reinterpret_cast<Address>(block);
  if (address < start_ || address - start_ >= capacity_) return false;
  const std::lock_guard lock(mutex_);
  auto part = parts_.find(address);
  if (part == parts_.end() || part->second.is_free()) {
    std::fputs("page arena: the freed address is not a block in use\n", stderr);
    std::abort();
  }
  auto size = std::move(part->second.size);
  if (const auto next = std::next(part); next != parts_.end() && next->second.is_free()) {
    forget_size(next);
    part->second.bytes += next->second.bytes;
    parts_.erase(next);
  }
  if (part != parts_.begin() && std::prev(part)->second.is_free()) {
    const auto joined = part--;
    forget_size(part);
    part->second.bytes += joined->second.bytes;
    parts_.erase(joined);
  }
  size.value() = {part->second.bytes, part->first};
  free_sizes_.insert(std::move(size));
  return true;
}

void PageArena::give_back() {
  const std::lock_guard lock(mutex_);
  for (const auto& [bytes, address] : free_sizes_) {
    if (address >= usable_end_) continue;
    madvise(reinterpret_cast<void*>(address), std::min(bytes, usable_end_ - address),
            MADV_DONTNEED);
  }
}

bool PageArena::make_usable(Address end) {
  if (end <= usable_end_) return true;
  const auto extend = [&](Address to) {
    if (mprotect(reinterpret_cast<void*>(usable_end_), to - usable_end_, PROT_READ | PROT_WRITE) !=
        0) {
      return false;
    }
    usable_end_ = to;
    return true;
  };
  const Address ahead =
      std::min(start_ + capacity_, usable_end_ + round_up(end - usable_end_, kUsableStep));
  return extend(ahead) || extend(end);
}

void PageArena::forget_size(Parts::const_iterator part) {
  free_sizes_.erase({part->second.bytes, part->first});
}

}  // namespace lra
