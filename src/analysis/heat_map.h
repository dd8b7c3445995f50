// Numbers as colors.
//
// The scales are made in OKLab (Ottosson 2020), where equal steps look equally large: `sequential`
// goes from dark blue over green to light yellow with lightness growing evenly, `diverging` from
// blue over near-white in the middle to red with lightness falling evenly to both ends. So both are
// readable in black and white and by color-blind people. Colors that a screen cannot show lose
// chroma, never lightness.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "data/png_image.h"

namespace lra::analysis {

enum class ColourScale { kSequential, kDiverging, kGray };

struct Colours {
  ColourScale scale = ColourScale::kSequential;
  double low = 0, high = 1;  // the numbers at the ends of the scale; others are taken to an end
};

// Red, green, blue of a place on a scale, 0 to 1.
std::array<uint8_t, 3> colour_at(ColourScale scale, double place);

// `values` in lines of `columns` cells (a short last line is filled with mid gray), each cell of
// `cell` x `cell` pixels. At least one value.
ColourImage heat_map(std::span<const double> values, int64_t columns, const Colours& colours,
                     int cell);

// Tiles of side x side values with gray lines between: values[t * side^2 ..] is tile t of side x
// side of them, of which every `step`-th line and column is shown. One pixel per value.
ColourImage tiled_heat_map(std::span<const double> values, int64_t side, int64_t step,
                           const Colours& colours);

// Two pictures of one height with a white gap.
ColourImage side_by_side(const ColourImage& left, const ColourImage& right);

}  // namespace lra::analysis
