// Commands in messages, which a reader can paste into a shell.
#pragma once

#include <string>
#include <vector>

namespace lra {

// The word for a POSIX shell, in quotes where it needs them.
std::string shell_word(const std::string& word);

// A call of this program with these arguments: "lra train --resume 'runs/my run'". The program is
// named as it was called itself, "build/lra"; a program of another name (a test) is called "lra".
std::string command_text(const std::vector<std::string>& arguments);

}  // namespace lra
