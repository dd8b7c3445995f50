// Published results as the commands show them.
#pragma once

#include "report/tables/literature.h"

namespace lra::cli {

// Those of configs/literature.json. If it is not the file that this program was built with, its
// figures are unverified and standard error says so.
report::Literature published_results();

}  // namespace lra::cli
