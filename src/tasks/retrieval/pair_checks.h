// Checks of imported pairs by the ids of their papers, which a model never reads.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace lra::tasks {

// Checks that a file of ids next to the file `pairs` agrees with `ids`, the lines label TAB id1 TAB
// id2 of these pairs. Throws an lra::Error that names the first different line; passes if there is
// no file `ids_name`.
void refuse_other_ids(const std::string& pairs, const std::string& ids_name, std::string_view ids);

}  // namespace lra::tasks
