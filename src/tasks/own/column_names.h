// Refuses columns whose names say that their contents are not what they are read as.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lra::tasks {

// The name as it is compared: in small letters, without spaces around it.
std::string plain_name(std::string_view name);

// Refuses a column that has the name of a mask, an index, a label or a split and would be read as a
// part of the sequence, or else dropped.
void refuse_odd_name(const std::string& name, bool is_input, const std::string& where);

// Refuses, among columns that are numbered, a few with names of their own: ids of persons, folds,
// predictions, other labels.
void refuse_unlike_names(const std::vector<std::string>& inputs, const std::string& where);

// Refuses "f1", "f10", "f11", "f2": the order of a directory or of sorted keys.
void refuse_order_of_words(const std::vector<std::string>& inputs, const std::string& where);

}  // namespace lra::tasks
