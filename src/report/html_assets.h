// The style sheet and the script of the HTML page. Their sources are the files of tools/web, which
// the build turns into the definitions of these functions.
#pragma once

#include <string_view>

namespace lra::report {

std::string_view page_style();
std::string_view page_script();

}  // namespace lra::report
