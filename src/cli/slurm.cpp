#include "cli/slurm.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/clock.h"
#include "base/command_text.h"
#include "base/parsed_number.h"
#include "cli/child_process.h"
#include "cli/command.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace lra::cli {
namespace {

// The value of an option on an #SBATCH line. sbatch knows quotes and backslashes there, and no
// variables or commands; a line cannot be continued.
std::string sbatch_word(const std::string& word, const std::string& where) {
  if (std::ranges::any_of(word, [](unsigned char c) { return std::iscntrl(c) != 0; })) {
    refuse(where, "'" + word + "' has a control character, which sbatch does not accept", "",
           "choose another name");
  }
  if (shell_word(word) == word) return word;
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// SLURM's own names for job and task follow %, as in `name`, and a backslash switches them off.
std::string log_pattern(const std::string& out, const std::string& name) {
  if (out.find('\\') != std::string::npos) {
    refuse("--out",
           "'" + out + "' has a backslash, which SLURM does not accept in the name of a log", "",
           "choose another folder");
  }
  std::string pattern;
  for (const char c : slurm_folder(out))
    pattern += c == '%' ? std::string("%%") : std::string(1, c);
  return pattern + "/" + name + ".log";
}

// The numbers of "1:02:03"; none of other text.
std::vector<int64_t> clock_numbers(std::string_view text) {
  std::vector<int64_t> numbers;
  for (;;) {
    const size_t end = std::min(text.find(':'), text.size());
    const auto number = parsed_number<uint32_t>(text.substr(0, end));
    if (!number) return {};
    numbers.push_back(*number);
    if (end == text.size()) return numbers;
    text.remove_prefix(end + 1);
  }
}

// Seconds of a time limit as sbatch takes it: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S. Nothing for
// other text and for 0, which means no limit.
std::optional<int64_t> slurm_seconds(std::string_view limit) {
  const size_t dash = limit.find('-');
  const auto days = parsed_number<uint32_t>(dash == limit.npos ? "0" : limit.substr(0, dash));
  std::vector<int64_t> numbers = clock_numbers(limit.substr(dash + 1));  // all without a dash
  if (!days || numbers.empty() || numbers.size() > 3) return std::nullopt;
  // After days the first number is hours; else one or two numbers begin with minutes.
  numbers.insert(numbers.begin(), dash != limit.npos || numbers.size() == 3 ? 0 : 1, 0);
  numbers.resize(3);
  const int64_t seconds = ((int64_t{*days} * 24 + numbers[0]) * 60 + numbers[1]) * 60 + numbers[2];
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

// A task that is signalled at once would save nothing and queue itself again for ever.
void refuse_short_limit(const SlurmJob& job) {
  const std::optional<int64_t> limit = slurm_seconds(job.time);
  if (!limit || *limit > job.signal_seconds) return;
  refuse("--time", "a limit of " + std::to_string(*limit) + " s",
         "more than the " + std::to_string(job.signal_seconds) +
             " s of --signal-seconds, before which a run saves",
         "give more time");
}

// `where` the value is from, if that is no flag of the same name.
void add_option(std::string& lines, const std::string& option, const std::string& value,
                const std::string& where = "") {
  if (value.empty()) return;
  lines += "#SBATCH " + option + "=" + sbatch_word(value, where.empty() ? option : where) + "\n";
}

// The options that say where a job runs, and who pays for it.
std::string shared_options(const SlurmJob& job) {
  std::string lines;
  add_option(lines, "--open-mode", "append");
  add_option(lines, "--partition", job.partition);
  add_option(lines, "--account", job.account);
  for (const std::string& option : job.more_options) {
    lines += "#SBATCH " + sbatch_word(option, "--sbatch-arg") + "\n";
  }
  return lines;
}

std::string array_options(const SlurmJob& job, size_t num_runs) {
  std::string lines;
  const std::string limit = job.array_limit > 0 ? "%" + std::to_string(job.array_limit) : "";
  add_option(lines, "--job-name", "lra-" + job.name, "the suite's name");
  add_option(lines, "--array", "0-" + std::to_string(num_runs - 1) + limit);
  add_option(lines, "--output", log_pattern(job.out, "%A_%a"), "--out");
  add_option(lines, "--cpus-per-task", std::to_string(job.cpus));
  add_option(lines, "--gres", job.gres);
  add_option(lines, "--time", job.time);
  lines += "#SBATCH --requeue\n";
  add_option(lines, "--signal", "B:USR2@" + std::to_string(job.signal_seconds));
  return lines + shared_options(job);
}

// SLURM signals this shell, and at the end of a job every process of it.
constexpr std::string_view kSignals = R"(
# Signals that reach this shell are handed on: USR1 saves; USR2, which SLURM sends before the time is
# over, saves, stops and queues the task again; TERM saves and stops.
lra='' signal='' requeue=no
hand_on() {
  signal=$1
  if [[ $1 == USR2 ]]; then requeue=yes; fi
  if [[ -n $lra ]]; then kill "-$1" "$lra" 2>/dev/null; fi
}
for name in USR2 TERM; do trap "hand_on $name" "$name"; done
# The program is started deaf to USR1: before it listens there is nothing to save.
trap '' USR1

)";

// A signal ends `wait` before the program has ended. 140 is the program ended by USR2, before it
// could listen.
constexpr std::string_view kEnd = R"(lra=$!
trap 'hand_on USR1' USR1
if [[ -n $signal ]]; then kill "-$signal" "$lra"; fi
signal=first
while [[ -n $signal ]]; do
  signal=''
  wait "$lra"
  code=$?
done

if [[ $requeue == yes && ($code == 3 || $code == 140) ]]; then
  echo "$run is saved; its task is queued again"
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
)";

constexpr std::string_view kJobStart = "job-", kJobEnd = ".json";

std::string file_of(const std::string& out, const std::string& id) {
  return slurm_folder(out).append("/").append(kJobStart).append(id).append(kJobEnd);
}

// Every array that was written and not forgotten.
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

// "17_3" for every task that SLURM still knows of this user.
std::set<std::string> tasks_in_queue() {
  const ChildResult end =
      run_program({"squeue", "--me", "--noheader", "--array", "--format=%F_%K"});
  if (end.exit_code != 0) {
    refuse("squeue", end.error);
  }
  std::set<std::string> tasks;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) tasks.insert(line);
  return tasks;
}

}  // namespace

std::string slurm_folder(const std::string& out) { return out + "/slurm"; }

std::string slurm_script(const SlurmJob& job, const std::vector<std::string>& runs) {
  LRA_CHECK(!runs.empty());
  refuse_short_limit(job);
  std::string script =
      "#!/usr/bin/env bash\n"
      "# One run of a suite in each task. Written by 'lra suite submit', and ready for "
      "'sbatch'.\n" +
      array_options(job, runs.size()) + "\nruns=(\n";
  for (const std::string& run : runs) script += "  " + shell_word(run) + "\n";
  script += ")\nrun=${runs[SLURM_ARRAY_TASK_ID]}\n";
  script += kSignals;
  for (const std::string& word : job.program) script += shell_word(word) + " ";
  script += "suite run " + shell_word(job.suite) + " --only \"$run\" \\\n";
  script += "  --out " + shell_word(job.out) + " --data " + shell_word(job.data) + " --threads " +
            std::to_string(job.threads) + " --device " + shell_word(job.device) + " &\n";
  script += kEnd;
  return script;
}

std::string next_round_script(const SlurmJob& job, const std::vector<std::string>& words) {
  std::string lines =
      "#!/usr/bin/env bash\n"
      "# Submits the next round of a sweep, when every run of this one has been compared.\n";
  add_option(lines, "--job-name", "lra-" + job.name + " next round", "the suite's name");
  add_option(lines, "--output", log_pattern(job.out, "next-round-%j"), "--out");
  lines += shared_options(job) + "\nexec";
  for (const std::string& word : words) lines += " " + shell_word(word);
  return lines + "\n";
}

void write_array(const std::string& out, const SlurmArray& array) {
  const Json json = {{"job", array.id}, {"submitted_utc", utc_now()}, {"runs", array.runs}};
  write_file_atomically(file_of(out, array.id), json_text(json, 2) + "\n");
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
