// Every setting that a run may have, by its full name: for help, and for those who mistype one.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace lra::training {

struct Setting {
  std::string name;  // "train.steps"
  // Tasks or models that have it, with commas between; empty: every run has it.
  std::string owners;
  FieldInfo field;
};

// Settings with this full name ("train.steps"), this last word ("steps"; or "batch-size", or "lr",
// as other programs call them) or in this section ("train"). One that several tasks or models share
// is there once if it is the same for all.
std::vector<Setting> find_settings(const std::string& name);

// "did you mean 'train.steps'?" for a name that may lack its section and may be mistyped; empty
// when no setting is near.
std::string setting_suggestion(const std::string& name);

// The setting of a section that is nearest to `name`, both with the section in front; empty when
// none is near.
std::string nearest_setting(const std::string& section, const std::string& name);

}  // namespace lra::training
