#include "tasks/pathfinder/picture.h"

#include <algorithm>

namespace lra::tasks {
namespace {

constexpr int kColumns = 64;
constexpr uint8_t kLit = 96;

}  // namespace

std::string pathfinder_picture(std::span<const uint8_t> pixels, int size) {
  const int shrink = std::max(1, size / kColumns), side = size / shrink;
  const auto is_lit = [&](int y, int x) {
    for (int dy = 0; dy < shrink; ++dy) {
      const uint8_t* begin = &pixels[static_cast<size_t>((y * shrink + dy) * size + x * shrink)];
      if (std::any_of(begin, begin + shrink, [](uint8_t pixel) { return pixel >= kLit; })) {
        return true;
      }
    }
    return false;
  };
  std::string text;
  for (int y = 0; y < side; y += 2) {
    for (int x = 0; x < side; ++x) {
      const bool above = is_lit(y, x), below = is_lit(y + 1, x);
      text += above ? (below ? "█" : "▀") : (below ? "▄" : " ");
    }
    text += "\n";
  }
  return text;
}

}  // namespace lra::tasks
