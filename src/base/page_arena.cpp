#include "base/page_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

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
  start_ = usable_end_ = highest_end_ = reinterpret_cast<Address>(range);
  capacity_ = bytes;
  add_free(start_, capacity_);
}

PageArena::~PageArena() {
  if (capacity_ > 0) munmap(reinterpret_cast<void*>(start_), capacity_);
}

void* PageArena::allocate(size_t bytes) {
  if (bytes > capacity_) return nullptr;
  bytes = round_up(std::max<size_t>(bytes, 1), page_bytes());
  const std::lock_guard lock(mutex_);
  const auto fit = by_size_.lower_bound({bytes, 0});
  if (fit == by_size_.end()) return nullptr;
  const auto [part_bytes, address] = *fit;
  if (!make_usable(address + bytes)) return nullptr;
  remove_free(free_.find(address));
  if (part_bytes > bytes) add_free(address + bytes, part_bytes - bytes);
  used_[address] = bytes;
  highest_end_ = std::max(highest_end_, address + bytes);
  return reinterpret_cast<void*>(address);
}

bool PageArena::free(void* block) {
  auto address = reinterpret_cast<Address>(block);
  if (address < start_ || address - start_ >= capacity_) return false;
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(address);
  if (found == used_.end()) std::abort();  // freed twice, or a pointer into a block
  size_t bytes = found->second;
  used_.erase(found);
  if (const auto after = free_.find(address + bytes); after != free_.end()) {
    bytes += after->second;
    remove_free(after);
  }
  if (auto before = free_.lower_bound(address); before != free_.begin()) {
    before = std::prev(before);
    if (before->first + before->second == address) {
      address = before->first;
      bytes += before->second;
      remove_free(before);
    }
  }
  add_free(address, bytes);
  return true;
}

void PageArena::give_back() {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, bytes] : free_) {
    if (address >= usable_end_) continue;
    madvise(reinterpret_cast<void*>(address), std::min(bytes, usable_end_ - address),
            MADV_DONTNEED);
  }
}

size_t PageArena::most_bytes() const {
  const std::lock_guard lock(mutex_);
  return highest_end_ - start_;
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

void PageArena::add_free(Address address, size_t bytes) {
  free_[address] = bytes;
  by_size_.insert({bytes, address});
}

void PageArena::remove_free(std::map<Address, size_t>::iterator part) {
  by_size_.erase({part->second, part->first});
  free_.erase(part);
}

}  // namespace lra
