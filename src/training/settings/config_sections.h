// The sections of a run's settings, [task] [model] [mixer] [train] [groups]: in the files of
// configs/, in suites and in a run's config.toml.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"

namespace lra::training {

// A table of `table`, empty if it has none of this name. Throws lra::Error for another value.
const ConfigTable& section(const ConfigTable& table, std::string_view name);

// Merges the sections of `from`, and nothing else that it has.
void merge_sections(ConfigTable& settings, const ConfigTable& from);

// Throws lra::Error, with a suggestion, for a key that is neither a section nor one of `besides`.
void refuse_unknown_sections(const ConfigTable& settings,
                             const std::vector<std::string>& besides = {});

}  // namespace lra::training
