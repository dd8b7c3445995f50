#include "kernels/pointwise/rotation.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"

namespace lra::kernels {
namespace {

// memcpy for the few bytes of a track, which a call would take longer for: in words, the last of
// which may overlap the one before.
template <typename T>
void copy_track(const T* from, T* to, int64_t count) {
  constexpr int64_t kWord = 16 / static_cast<int64_t>(sizeof(T));
  if (count < kWord) {
    for (int64_t n = 0; n < count; ++n) to[n] = from[n];
    return;
  }
  for (int64_t n = 0; n < count - kWord; n += kWord) std::memcpy(to + n, from + n, 16);
  std::memcpy(to + count - kWord, from + count - kWord, 16);
}

// The source of each track of a position.
class Sources {
 public:
  Sources(const Rotation& p, int64_t place, int64_t tokens)
      : places_(p.offsets), place_(place), tokens_(tokens) {
    for (int64_t& source : places_) {
      if (place < tokens) source = ((place + source) % tokens + tokens) % tokens;
    }
  }
  int64_t of(size_t track) const { return place_ < tokens_ ? places_[track] : place_; }
  // The next position; without a division.
  void advance() {
    ++place_;
    for (int64_t& source : places_) source = source + 1 == tokens_ ? 0 : source + 1;
  }

 private:
  std::vector<int64_t> places_;
  int64_t place_, tokens_;
};

// Positions [begin, end) of an example.
template <typename T>
void rotate_example(const Rotation& p, int64_t example, int64_t begin, int64_t end, const T* from,
                    T* to) {
  const int64_t width = p.first.back(), first_row = example * p.length;
  Sources sources(p, begin, p.lengths == nullptr ? p.length : p.lengths[example]);
  for (int64_t place = begin; place < end; ++place, sources.advance()) {
    for (size_t m = 0; m < p.offsets.size(); ++m) {
      copy_track(from + (first_row + sources.of(m)) * width + p.first[m],
                 to + (first_row + place) * width + p.first[m], p.first[m + 1] - p.first[m]);
    }
  }
}

}  // namespace

template <typename T>
void rotate(const Rotation& p, const T* from, T* to) {
  parallel_ranges(p.batch * p.length, 256, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t example = begin / p.length, first = example * p.length;
      const int64_t stop = std::min(end, first + p.length);
      rotate_example(p, example, begin - first, stop - first, from, to);
      begin = stop;
    }
  });
}

template void rotate(const Rotation&, const uint16_t*, uint16_t*);
template void rotate(const Rotation&, const uint32_t*, uint32_t*);
template void rotate(const Rotation&, const uint64_t*, uint64_t*);

}  // namespace lra::kernels
