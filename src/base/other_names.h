// Names that other programs use for settings.
#pragma once

#include <string>

namespace lra {

// The program's spelling of a setting's last word: "learning_rate" for "lr". Any other name is
// returned as it is.
std::string own_name(const std::string& name);

// True if the names differ in '-' and '_' alone: "batch_size" and "batchsize".
bool is_same_name(std::string a, std::string b);

}  // namespace lra
