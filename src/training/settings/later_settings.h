// Settings that were added after the first published runs. They are not written at their defaults,
// so that the hashes of those runs stay valid.
#pragma once

#include <string_view>

#include "base/config.h"

namespace lra::training {

// True for "train.label_smoothing" and "task.tree".
bool is_later_setting(std::string_view key);

// Leaves later settings out of `settings`, a section, if they are as in `usual`, its defaults. `of`
// is the task of "task", the model of "mixer", and empty for "train".
void erase_later_settings(ConfigTable& settings, const ConfigTable& usual, std::string_view section,
                          std::string_view of);

}  // namespace lra::training
