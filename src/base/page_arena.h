// Large blocks of memory without holes between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

namespace lra {

// One range of addresses from which blocks of whole pages are cut: from the lower end of the
// smallest free block that is large enough; adjacent free blocks are merged. Pages once used stay
// resident for the next block. Every function is thread-safe.
class PageArena {
 public:
  // Reserves addresses, not memory: at most `bytes`, and half of what the limit on a process's
  // addresses (ulimit -v) leaves; none if the system refuses. Blocks beyond them are refused.
  explicit PageArena(size_t bytes);
  ~PageArena();
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  // Returns at least `bytes`, from the start of a page, with unspecified contents. nullptr if no
  // free block is large enough, or the system has no memory for it.
  void* allocate(size_t bytes);
  // False if `block` is not one of this arena. Allocates nothing.
  bool free(void* block) noexcept;
  // Hands the pages of free parts back to the system. Slow: the next blocks fault them in again.
  void give_back();

  size_t capacity() const { return capacity_; }

 private:
  using Address = uintptr_t;
  using Sizes = std::set<std::pair<size_t, Address>>;
  struct Part {
    size_t bytes = 0;
    Sizes::node_type size;  // while used: the node for free_sizes_ once it is free
    bool is_free() const { return size.empty(); }
  };
  using Parts = std::map<Address, Part>;

  bool make_usable(Address end);
  void forget_size(Parts::const_iterator part);

  std::mutex mutex_;
  Address start_ = 0;
  size_t capacity_ = 0;
  Address usable_end_ = 0;
  Parts parts_;  // used and free, without gaps; no two neighbors are free
  Sizes free_sizes_;
};

}  // namespace lra
