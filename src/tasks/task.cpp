#include "tasks/task.h"

#include "base/error.h"

namespace lra::tasks {

int64_t Task::num_to_make(const MakeOptions&) const { return 0; }

void Task::make(const MakeOptions&, Progress&) const {
  throw Error({.where = "lra data make",
               .what = "this task cannot be generated: its data is collected, not drawn",
               .expected = "",
               .advice = "use lra data fetch or lra data import"});
}

}  // namespace lra::tasks
