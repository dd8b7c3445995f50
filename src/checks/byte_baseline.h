// A classifier that counts bytes and ignores their order: a baseline for models.
#pragma once

#include "checks/baseline.h"
#include "data/dataset.h"

namespace lra::checks {

// Logistic regression for two classes on log(1 + count) of each of the 256 stored bytes within the
// first `length` of each document of an example (`num_towers` of them), standardised on train, with
// a small L2 penalty; trained on `train`, scored on `test`. The result does not depend on the
// number of threads. 0 when a split is empty.
Baseline byte_unigram_baseline(const Split& train, const Split& test, int64_t length,
                               int64_t num_towers = 1);

}  // namespace lra::checks
