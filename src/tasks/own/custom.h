// The user's own data: classification of one or two sequences of bytes, tokens or numbers, whose
// length, vocabulary, classes and channels come from the data.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

extern const TaskSpec kCustomTask;

// True for data of this task, of which only the user knows what is odd.
inline bool is_own(const Manifest& manifest) { return manifest.task == kCustomTask.name; }

// True if the words of its tokens are real values.
inline bool has_own_values(const Manifest& manifest) {
  return is_own(manifest) && manifest.token_offset == 0;
}

// True if its tokens are the bytes of texts.
inline bool is_own_text(const Manifest& manifest) {
  const auto input = manifest.settings.find("input");
  return is_own(manifest) && input != manifest.settings.end() && input->second == "text";
}

}  // namespace lra::tasks
