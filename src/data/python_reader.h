// Reads the files of other programs with Python: NumPy, Arrow and the like know their formats.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/frame_file.h"
#include "io/json.h"

namespace lra {
class Progress;
}

namespace lra {

// Columns that the user names; empty: found by their names (docs/data.md).
struct ReadSettings {
  std::string label = {}, split = {}, sequences = {}, ignore = {};
  std::string input = "auto";  // text, tokens or values
};

// Everything that the reader found but the examples.
struct OwnReading {
  std::string input, why;  // text, tokens or values
  int64_t examples = 0, sequences = 1, channels = 1;
  int64_t shortest = 0, longest = 0, largest = 0;  // positions, and the largest token id
  std::vector<std::string> labels, first;          // names, and where each is first
  std::vector<std::string> groups;                 // columns of which Frame::group has values
  std::vector<std::string> files;                  // all that were read
  std::string named_by;                            // "name of the file": what says the splits
  Json columns, ignored;  // [name, type, shape, role, why] each; [what, why] each
};

struct OwnExamples {
  OwnReading reading;
  FrameFile frames;
};

// The interpreter that LRA_INTERPRETER names, else that of tools/setup, else python3.
std::string reader_interpreter();

// Runs python/lra/_reading, which is part of this program, and waits for it. The frames lie in an
// unnamed file in `folder`. Throws lra::Error: what the reader says about the files, a Python that
// lacks a package (with the command that installs it), exit code 3 for a stop.
OwnExamples read_with_python(const std::vector<std::string>& files, const ReadSettings& settings,
                             const std::string& folder, Progress& progress);

// A pickled batch of CIFAR-10: "labels", "filenames", "label_names" and "batch_label" as far as it
// has them, and the bytes of "data" [N, 3072].
struct PickledBatch {
  Json texts;
  std::vector<std::byte> data;
};
// Throws lra::Error, as read_with_python() does. Nothing that the pickle names is run.
PickledBatch read_pickle_with_python(std::span<const std::byte> content, const std::string& name);

// The modules of python/lra/_reading.
struct ReaderModule {
  const char* name;
  const char* text;
};
std::span<const ReaderModule> reader_modules();

}  // namespace lra
