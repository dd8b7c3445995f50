// Version and revision of this program.
#pragma once

#include <string>

namespace lra {

// "0.1.0".
std::string lra_version();
// The revision of the sources, 40 hexadecimal digits or "unknown"; a hash of uncommitted changes,
// or "".
std::string git_revision();
std::string git_dirty();
// All three in one line, since another program may compute something else.
std::string program_revision();

}  // namespace lra
