#include <cerrno>
#include <sstream>

#include "base/clock.h"
#include "base/error.h"
#include "cli/child_process.h"
#include "cli/slurm.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace lra::cli {
namespace {

constexpr std::string_view kJobStart = "job-", kJobEnd = ".json";

std::string file_of(const std::string& out, const std::string& id) {
  return slurm_folder(out).append("/").append(kJobStart).append(id).append(kJobEnd);
}

// "17_3" for every task that SLURM still knows of this user.
std::set<std::string> tasks_in_queue() {
  const ProgramEnd end = run_program({"squeue", "--me", "--noheader", "--array", "--format=%F_%K"});
  if (end.exit_code != 0) {
    throw Error({.where = "squeue", .what = end.errors});
  }
  std::set<std::string> tasks;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) tasks.insert(line);
  return tasks;
}

}  // namespace

void write_array(const std::string& out, const SlurmArray& array) {
  const Json json = {{"job", array.id}, {"submitted_utc", utc_now()}, {"runs", array.runs}};
  write_file_atomically(file_of(out, array.id), json_text(json, 2) + "\n");
}

std::vector<SlurmArray> written_arrays(const std::string& out) {
  std::vector<SlurmArray> arrays;
  for (const std::string& name : names_in(slurm_folder(out))) {
    if (!name.starts_with(kJobStart) || !name.ends_with(kJobEnd)) continue;
    const std::string path = slurm_folder(out) + "/" + name;
    const Json json = read_json_file(path);
    JsonFields fields(json, path);
    arrays.push_back({.id = fields.get<std::string>("job"),
                      .runs = fields.get<std::vector<std::string>>("runs")});
  }
  return arrays;
}

std::set<std::string> submitted_runs(const std::string& out) {
  std::set<std::string> runs;
  for (const SlurmArray& array : written_arrays(out)) {
    runs.insert(array.runs.begin(), array.runs.end());
  }
  return runs;
}

std::set<std::string> runs_in_queue(const std::string& out) {
  const std::vector<SlurmArray> arrays = written_arrays(out);
  std::set<std::string> runs;
  if (arrays.empty()) return runs;
  const std::set<std::string> tasks = tasks_in_queue();
  for (const SlurmArray& array : arrays) {
    bool is_known = false;
    for (size_t i = 0; i < array.runs.size(); ++i) {
      if (!tasks.contains(array.id + "_" + std::to_string(i))) continue;
      is_known = true;
      runs.insert(array.runs[i]);
    }
    if (is_known) continue;
    const std::string path = file_of(out, array.id);
    if (const int problem = remove_tree(path)) throw io_error(path, "cannot be removed", problem);
  }
  return runs;
}

}  // namespace lra::cli
