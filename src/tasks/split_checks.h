// Official files that were read well and cannot be what they are taken for.
#pragma once

#include "tasks/dataset.h"

namespace lra::tasks {

// Throws lra::Error when more than half of a split's examples are also in a split before it (a copy
// under another name), when more than half of one occur in it with several labels (a class that is
// the copy of another), or when all its labels are one while the training split has several. Real
// data has some duplicates and no such split. Splits of less than `kFewestToJudge` examples are not
// judged.
inline constexpr int64_t kFewestToJudge = 20;
void refuse_impossible_splits(const Dataset& dataset);

}  // namespace lra::tasks
