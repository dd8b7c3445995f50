// Checks of imported texts: how they were written, and whether they are texts at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lra::tasks {

// True for texts of the benchmark: only they are stored as bytes, one below their ids.
bool is_text(const Manifest& manifest);

// Number of examples of a split with a document without a character, or an image of one color: a
// model learns nothing from them but which class has more of them.
int64_t count_blank(const Split& split, const Manifest& manifest);

// Throws lra::Error if texts of one class or split are formatted differently (white space at their
// ends, line ends, tabs): a trait of only one class tells a model the label. Adds a doubt for each
// split whose texts are very short, have hardly any white space (base64, names of files) or letters
// (ids of words) or no capital, begin alike (error pages), or, unless they are pairs, often have
// one and the same length (cut by another program).
void judge_texts(const Dataset& dataset, std::vector<std::string>& doubts);

// Adds a doubt for each split of own texts (custom/custom.h) that are encoded, cut, padded or
// numbers, or that begin alike.
void doubt_own_texts(const Dataset& dataset, std::vector<std::string>& doubts);

}  // namespace lra::tasks
