// Arrays that numpy.savez and numpy.savez_compressed wrote.
#pragma once

#include <string>

#include "tasks/own/columns.h"

namespace lra::tasks {

// Gives every example of a .npz file to the sink, in order. Arrays: sequences [N, L], or
// [N, L, C] with the channels of a position, of bools, integers or floats, or texts [N]; labels [N]
// of whole numbers or texts; lengths [N], where given, cut each sequence; split [N] of texts.
// Arrays with the endings _train, _val and _test instead, as x_train and y_train, are those splits.
// Throws lra::Error that names file and array for anything else: objects (pickles), complex
// numbers, arrays of unlike size, an array of another name with an element for each example, an
// archive that is damaged, or whose arrays say that they are larger than free memory.
void read_npz(const std::string& path, Schema& schema, const OwnExampleSink& sink);

}  // namespace lra::tasks
