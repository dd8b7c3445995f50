#include "tasks/occupancy.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace lra::tasks {
namespace {

constexpr int kTooMuch = 459;  // 1.8 * 255: a sum from here on is a collision
constexpr int kTaken = 77;     // the least value above 0.3 * 255

// Word `w` of a row of bits moved `shift` places toward bit 0 (negative: away from it).
uint64_t shifted_word(const uint64_t* row, int words, int w, int shift) {
  const int by = shift < 0 ? -shift : shift;
  if (by == 0) return row[w];
  if (shift > 0) return row[w] >> by | (w + 1 < words ? row[w + 1] << (64 - by) : 0);
  return row[w] << by | (w > 0 ? row[w - 1] >> (64 - by) : 0);
}

}  // namespace

Occupancy::Occupancy(int size, int padding)
    : size_(size),
      words_((size + 63) / 64),
      values_(static_cast<size_t>(size) * static_cast<size_t>(size)),
      taken_(static_cast<size_t>(size) * static_cast<size_t>(words_)),
      free_(taken_.size()),
      row_(static_cast<size_t>(words_)) {
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x) {
      const bool inside = std::min({y, x, size - 1 - y, size - 1 - x}) >= padding;
      if (!inside) set(index({y, x}), 255);
    }
  }
  commit();
}

int Occupancy::largest(Point centre, const std::vector<Point>& disc) const {
  int most = 0;
  for (const Point offset : disc) {
    const Point p = centre + offset;
    if (contains(p)) most = std::max<int>(most, values_[index(p)]);
  }
  return most;
}

bool Occupancy::has_room(const Dash& dash, Point start) const {
  for (const Dash::Cell& cell : dash.cells) {
    const Point p = start + cell.at;
    if (contains(p) && values_[index(p)] + cell.occupied >= kTooMuch) return false;
  }
  return true;
}

void Occupancy::set(size_t at, uint8_t value) {
  pending_.push_back({.index = at, .before = values_[at]});
  values_[at] = value;
  const size_t y = at / static_cast<size_t>(size_), x = at % static_cast<size_t>(size_);
  uint64_t& word = taken_[y * static_cast<size_t>(words_) + x / 64];
  const uint64_t bit = uint64_t{1} << (x % 64);
  word = value >= kTaken ? word | bit : word & ~bit;
}

void Occupancy::add(const Dash& dash, Point start) {
  for (const Dash::Cell& cell : dash.cells) {
    const Point p = start + cell.at;
    if (contains(p) && values_[index(p)] < cell.occupied) set(index(p), cell.occupied);
  }
}

void Occupancy::roll_back() {
  std::vector<Change> changes = std::move(pending_);
  pending_.clear();
  for (size_t i = changes.size(); i-- > 0;) set(changes[i].index, changes[i].before);
  pending_ = std::move(changes);  // keeps its memory
  pending_.clear();
}

void Occupancy::find_free(const std::vector<Point>& kernel) {
  const uint64_t last = size_ % 64 == 0 ? ~uint64_t{0} : (uint64_t{1} << (size_ % 64)) - 1;
  num_free_ = 0;
  for (int y = 0; y < size_; ++y) {
    std::fill(row_.begin(), row_.end(), 0);
    for (const Point offset : kernel) {
      const int from = y + offset.y;
      if (from < 0 || from >= size_) continue;
      const uint64_t* row = &taken_[static_cast<size_t>(from * words_)];
      for (int w = 0; w < words_; ++w) {
        row_[static_cast<size_t>(w)] |= shifted_word(row, words_, w, offset.x);
      }
    }
    for (int w = 0; w < words_; ++w) {
      const uint64_t free = ~row_[static_cast<size_t>(w)] & (w + 1 == words_ ? last : ~uint64_t{0});
      free_[static_cast<size_t>(y * words_ + w)] = free;
      num_free_ += std::popcount(free);
    }
  }
}

Point Occupancy::free_pixel(int64_t i) const {
  LRA_CHECK_LT(i, num_free_);
  size_t at = 0;
  while (i >= std::popcount(free_[at])) i -= std::popcount(free_[at++]);
  uint64_t word = free_[at];
  for (; i > 0; --i) word &= word - 1;
  const int row = static_cast<int>(at) / words_;
  return {row, static_cast<int>(at) % words_ * 64 + std::countr_zero(word)};
}

int64_t Occupancy::num_untaken() const {
  int64_t taken = 0;
  for (const uint64_t word : taken_) taken += std::popcount(word);
  return int64_t{size_} * size_ - taken;
}

}  // namespace lra::tasks
