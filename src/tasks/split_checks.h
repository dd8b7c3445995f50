// Judges imported data: examples that were read without an error but cannot be, or may not be, what
// they seem. A model trained on them would get a plausible accuracy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace lra::tasks {

class Task;

// Splits of fewer examples are not judged by shares of them.
inline constexpr int64_t kFewestToJudge = 20;

// Begins a note of an import that is a doubt: judge_data() gives it back without these words.
inline constexpr std::string_view kDoubtNote = "in doubt: ";

// Every check of the table in split_checks.cpp, those of texts (text_checks.h), Task::judge() and
// the notes of the import: doubts, one sentence each. Reads every example once, so an import stores
// the answer in the manifest. Throws lra::Error for impossible data: a split that is the copy of
// another, a class that is the copy of another, a single label.
//
// A share of copied or contradictory examples is a doubt above 1 %, and refused above 5 % or, among
// examples of fewer than 100 tokens, which may be equal by chance, above 50 %. The largest share in
// real data is that of IMDb: 0.5 % of its test is also in train, 0.8 % of it comes twice.
std::vector<std::string> judge_data(const Task& task, const Dataset& dataset);

}  // namespace lra::tasks
