// The style sheets and scripts of the HTML page. Their sources are the files of tools/web, which
// the build turns into the definitions of these functions.
#pragma once

#include <string_view>

namespace lra::report {

inline constexpr int kNumCurveColors = 8;  // classes c0 .. c7; dashes d0 .. d2 tell more apart
inline constexpr int kNumCurveDashes = 3;

std::string_view page_style();
std::string_view page_script();
// Of the charts that need a script: only pages that have some carry them.
std::string_view charts_style();
std::string_view charts_script();

}  // namespace lra::report
