// Finds positions of sequences that only count the examples.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lra::tasks {

class RowCounter {
 public:
  // The numbers of the next example of `file`, in which counting may start again.
  void add(std::span<const float> numbers, const std::string& file) {
    if (num_seen_++ == 0) {
      places_.resize(numbers.size());
      std::iota(places_.begin(), places_.end(), size_t{0});
    }
    const bool may_restart = file != file_;
    std::erase_if(places_, [&](size_t place) {
      return place >= numbers.size() || (!may_restart && numbers[place] != last_[place] + 1);
    });
    if (may_restart) file_ = file;
    if (!places_.empty()) last_.assign(numbers.begin(), numbers.end());
  }
  // The first position whose number grew by one from each example to the next.
  std::optional<size_t> place() const {
    constexpr int64_t kFewest = 20;
    if (num_seen_ < kFewest || places_.empty()) return std::nullopt;
    return places_.front();
  }

 private:
  std::string file_;
  int64_t num_seen_ = 0;
  std::vector<size_t> places_;
  std::vector<float> last_;
};

}  // namespace lra::tasks
