// Remarks about labels and channels: notes of the check `remarks`.
#pragma once

#include <string>
#include <vector>

#include "checks/statistics.h"

namespace lra::checks {

// Classes of which one has over ten times as many training examples as another; labels that mark
// what is missing or differ only in letter case. `names` of the labels may be empty.
void remark_labels(const SplitStats& train, const std::vector<std::string>& names,
                   std::vector<std::string>& found);

// Channels that never vary.
void remark_channels(const SplitStats& train, std::vector<std::string>& found);

}  // namespace lra::checks
