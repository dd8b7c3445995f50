#include "tasks/task.h"

#include "base/error.h"

namespace lra::tasks {

ImportedData completed(DatasetWriter writer, std::vector<checks::SharedGroup> groups) {
  writer.complete();
  return {std::move(writer), std::move(groups)};
}

int64_t Task::num_to_make(const MakeOptions&) const { return 0; }

void Task::make(const MakeOptions&, Progress&) const {
  throw Error({.where = "lra data make",
               .what = "this task cannot be generated: its data is collected, not drawn",
               .advice = "use 'lra data fetch' or 'lra data import'"});
}

std::vector<std::string> Task::find_sources(const std::string& root) const {
  auto copies = find_copies(root);
  return copies.empty() ? std::vector<std::string>() : std::move(copies.front());
}

checks::DataFacts Task::data_facts(const Dataset& dataset) const {
  const TaskShape task = shape();
  return {.stats = {.input = input(),
                    .num_classes = task.num_classes,
                    .num_towers = task.num_towers,
                    .length = task.length},
          .label_names = label_names(dataset),
          .scaling = scaling_of(dataset)};
}

std::string byte_token_text(int32_t token) {
  if (token == 0) return "";
  const int byte = token - 1;
  if (byte >= 0x20 && byte < 0x7F) return {static_cast<char>(byte)};
  constexpr const char* kDigits = "0123456789abcdef";
  return std::string("\\x") + kDigits[byte >> 4 & 15] + kDigits[byte & 15];
}

}  // namespace lra::tasks
