#include "tasks/pathfinder/occupancy.h"

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

// One row of a footprint. Of a fixed width and without overlap, so that it is two vector
// operations.
void raise(uint8_t* __restrict row, const uint8_t* __restrict to) {
  for (int i = 0; i < Footprint::kWidth; ++i) row[i] = std::max(row[i], to[i]);
}

}  // namespace

Footprint Occupancy::footprint(const Dash& dash, int margin, int size) {
  const int reach = dash.half + margin;
  LRA_CHECK(2 * reach + 1 <= Footprint::kWidth && reach < kBorder);
  Footprint print{.first = {reach, -reach}, .rows = 0, .values = {}, .dilated = {}, .core = {}};
  int last = -reach;
  for (const Dash::Cell& cell : dash.cells) {
    print.first.y = std::min(print.first.y, cell.at.y - margin);
    last = std::max(last, cell.at.y + margin);
  }
  print.rows = last - print.first.y + 1;
  const auto bytes = static_cast<size_t>(print.rows) * Footprint::kWidth;
  print.values.resize(bytes);
  print.dilated.resize(bytes);
  const auto at = [&](Point p) {
    return static_cast<size_t>((p.y - print.first.y) * Footprint::kWidth + p.x + reach);
  };
  for (const Dash::Cell& cell : dash.cells) {
    print.values[at(cell.at)] = cell.occupied;
    if (cell.occupied >= kTooMuch - 255) {
      print.core.push_back({.offset = cell.at.y * stride(size) + cell.at.x,
                            .least = static_cast<uint8_t>(kTooMuch - cell.occupied)});
    }
    for (int y = -margin; y <= margin; ++y) {
      for (int x = -margin; x <= margin; ++x) {
        if (y * y + x * x > margin * margin) continue;
        uint8_t& value = print.dilated[at(cell.at + Point{y, x})];
        value = std::max(value, cell.occupied);
      }
    }
  }
  return print;
}

Occupancy::Occupancy(int size, int padding, int margin)
    : size_(size),
      words_((size + 63) / 64),
      taken_(static_cast<size_t>(size) * static_cast<size_t>(words_)),
      free_(taken_.size()),
      row_(static_cast<size_t>(words_)),
      first_changed_(size),
      last_changed_(-1) {
  LRA_CHECK_GE(padding, 1);
  const auto pixels = static_cast<size_t>(stride(size)) * static_cast<size_t>(stride(size));
  values_.now.assign(pixels, 255);
  dilated_.now.assign(pixels, 255);
  const auto clear = [&](std::vector<uint8_t>& map, int frame) {
    for (int y = frame; y < size - frame; ++y) {
      std::fill_n(&map[index({y, frame})], size - 2 * frame, uint8_t{0});
    }
  };
  if (2 * padding < size) clear(values_.now, padding);
  if (2 * (padding + margin) < size) clear(dilated_.now, padding + margin);
  values_.committed = values_.now;
  dilated_.committed = dilated_.now;
  for (int y = 0; y < size; ++y) mark_taken(y);
}

bool Occupancy::has_room(const Footprint& dash, Point start) const {
  const uint8_t* at = &values_.now[index(start)];
  return std::none_of(dash.core.begin(), dash.core.end(),
                      [&](Footprint::Core core) { return at[core.offset] >= core.least; });
}

void Occupancy::add(const Footprint& dash, Point start) {
  LRA_CHECK(contains(start));
  const Point first = start + dash.first;
  size_t at = index(first);
  for (size_t i = 0; i < dash.values.size(); i += Footprint::kWidth) {
    raise(&values_.now[at], &dash.values[i]);
    raise(&dilated_.now[at], &dash.dilated[i]);
    at += static_cast<size_t>(stride(size_));
  }
  first_changed_ = std::min(first_changed_, first.y);
  last_changed_ = std::max(last_changed_, first.y + dash.rows - 1);
}

void Occupancy::commit() {
  for (int y = std::max(0, first_changed_); y <= std::min(size_ - 1, last_changed_); ++y) {
    mark_taken(y);
  }
  std::swap(values_.now, values_.committed);
  std::swap(dilated_.now, dilated_.committed);
  roll_back();
}

void Occupancy::roll_back() {
  if (last_changed_ < first_changed_) return;
  const size_t begin = index({first_changed_, -kBorder});
  const size_t end = index({last_changed_ + 1, -kBorder});
  for (Map* map : {&values_, &dilated_}) {
    std::copy(&map->committed[begin], &map->committed[end], &map->now[begin]);
  }
  first_changed_ = size_;
  last_changed_ = -1;
}

void Occupancy::mark_taken(int row) {
  const uint8_t* values = &values_.now[index({row, 0})];
  for (int w = 0; w < words_; ++w) {
    uint64_t word = 0;
    for (int x = 64 * w; x < std::min(size_, 64 * (w + 1)); ++x) {
      word |= uint64_t{values[x] >= kTaken} << (x % 64);
    }
    taken_[static_cast<size_t>(row * words_ + w)] = word;
  }
}

void Occupancy::find_free(const std::vector<Point>& kernel) {
  LRA_CHECK_LT(last_changed_, first_changed_);
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
