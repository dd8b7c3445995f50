// Messages about a command line that is not understood: the exact line to type, where one is known.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace lra::cli {

// The message, without the reference to help.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& argv);

}  // namespace lra::cli
