// Official files that were read well and cannot be what they are taken for.
#pragma once

#include <cstdint>

#include "tasks/dataset.h"

namespace lra::tasks {

// Throws lra::Error when more than half of a split's examples are also in a split before it (a copy
// under another name) or come again in it, when more than half of one occur in it with several
// labels (a class that is the copy of another), or when all its labels are one while the training
// split has several. Real data has some duplicates and no such split. The same when more than one
// in a hundred of a split's examples are blank, and when texts of one class or split were written
// another way (white space at their ends, line ends, tabs). Splits of less than `kFewestToJudge`
// examples are not judged.
inline constexpr int64_t kFewestToJudge = 20;
void refuse_impossible_splits(const Dataset& dataset);

// How many examples of a split have a document without a character, or an image of one color: a
// model learns nothing from them but which class has more of them.
int64_t count_blank(const Split& split, const Manifest& manifest);

}  // namespace lra::tasks
