#include "base/revision.h"

// Made by cmake/git_revision.cmake at every build.
#include "lra_git_revision.h"

namespace lra {

std::string lra_version() { return LRA_VERSION; }
std::string git_revision() { return LRA_GIT_REVISION; }
std::string git_dirty() { return LRA_GIT_DIRTY; }
std::string program_revision() { return lra_version() + " " + git_revision() + " " + git_dirty(); }

}  // namespace lra
