// The style sheet and the script of the HTML page.
#pragma once

#include <string_view>

namespace lra::report {

inline constexpr int kNumCurveColors = 8;  // classes c0 .. c7; dashes d0 .. d2 tell more apart
inline constexpr int kNumCurveDashes = 3;

std::string_view page_style();
std::string_view page_script();

}  // namespace lra::report
