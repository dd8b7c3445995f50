// Messages about a command line that is not understood.
#pragma once

#include <string>

#include "cli/command.h"

namespace lra::cli {

// The message, without the reference to help.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lra::cli
