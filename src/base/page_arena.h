// Large blocks of memory without holes between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

namespace lra {

// One range of addresses that blocks of whole pages are cut from: the smallest free part that is
// large enough, at its lower end; neighbours that are free are one part again. Pages once used stay
// resident for the next block. Every function may be called by any thread.
class PageArena {
 public:
  // Reserves addresses, no memory: at most `bytes`, and half of what the limit on a process's
  // addresses (ulimit -v) leaves; none when the system refuses. Blocks beyond are refused.
  explicit PageArena(size_t bytes);
  ~PageArena();
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  // At least `bytes`, from the start of a page; contents are whatever was there. nullptr when no
  // free part is large enough, or the system has no memory for it.
  void* allocate(size_t bytes);
  // False when `block` is not one of this arena.
  bool free(void* block);
  // Hands the pages of free parts back to the system. Slow: the next blocks fault them in again.
  void give_back();

  size_t capacity() const { return capacity_; }
  // From the arena's start to the end of the highest block ever: what it can have made resident.
  size_t most_bytes() const;

 private:
  using Address = uintptr_t;

  bool make_usable(Address end);
  void add_free(Address address, size_t bytes);
  void remove_free(std::map<Address, size_t>::iterator part);

  mutable std::mutex mutex_;
  Address start_ = 0;
  size_t capacity_ = 0;
  Address usable_end_ = 0, highest_end_ = 0;
  std::map<Address, size_t> free_, used_;         // bytes at an address
  std::set<std::pair<size_t, Address>> by_size_;  // of free_
};

}  // namespace lra
