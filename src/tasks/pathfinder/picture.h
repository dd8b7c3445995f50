// A Pathfinder image for a terminal.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lra::tasks {

// Draws at most 64 columns of half blocks, a line for every two rows: lit if a pixel has 96 or
// more.
std::string pathfinder_picture(std::span<const uint8_t> pixels, int size);

}  // namespace lra::tasks
