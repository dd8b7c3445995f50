// lra info: the program's version and build, and the hardware of this machine.
#include <cstdio>

#include "base/default_threads.h"
#include "base/resources.h"
#include "base/text_format.h"
#include "cli/compute.h"

namespace lra::cli {
ExitCode info(const Program& program) {
  const Provenance p = program_provenance(program.common);
  const Json facts = {
      {"version", p.lra_version},
      {"revision", p.git_revision + (p.git_dirty.empty() ? "" : " with changes " + p.git_dirty)},
      {"compiler", p.compiler},
      {"torch", p.torch_version},
      {"system", p.host_os},
      {"processor", p.processor},
      {"isa", p.isa},
      {"threads", p.threads},
      {"threads_by", program.common.threads > 0 ? "--threads" : default_threads().limit},
      {"memory", human_bytes(static_cast<uint64_t>(total_memory_bytes()))},
      {"gpu", gpus_found()},
      {"kernels", p.kernels}};
  if (program.common.json) {
    print_json(facts);
    return ExitCode::kDone;
  }
  for (const auto& [key, value] : facts.items()) {
    if (value.is_object()) continue;
    std::printf("%-10s %s\n", key.c_str(),
                value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
  }
  TextTable table({"operator", "float32 runs"});
  for (const auto& [op, implementation] : p.kernels) table.add_row({op, implementation});
  std::printf("\n%s", table.text().c_str());
  return ExitCode::kDone;
}

}  // namespace lra::cli
