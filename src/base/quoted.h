// Foreign text in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lra {

// "'text'" for a message that quotes what a file or a user gave: at most `most` characters, with
// invisible ones written as escapes: "\t", "\x1b", "\ufeff" (a byte order mark), "\xff" (a byte
// that is not UTF-8).
std::string in_quotes(std::string_view text, int most = 40);

// "'a', 'b', 'c' and 3 more", or "nothing": at most `most` names, quoted.
std::string quoted_list(const std::vector<std::string>& names, size_t most = 3);

}  // namespace lra
