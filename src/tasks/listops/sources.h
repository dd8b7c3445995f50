// Finds the official ListOps files: those that a user names, and those in a data root.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace lra::tasks {

// The arguments of an import, a folder with the three files or the files, as the paths of train,
// val and test. Throws lra::Error for anything else.
std::array<std::string, 3> listops_source_files(const std::vector<std::string>& sources);

// The paths of train, val and test under a root: in the root itself or in listops-1000, alone or in
// lra_release; none when there are none. Throws lra::Error for a folder that has some of them:
// generated data must not take their place unnoticed.
std::vector<std::string> find_listops_files(const std::string& root);

}  // namespace lra::tasks
