// Long format: one line per figure, so that a spreadsheet or a data frame can pivot it as it likes.
// Columns are fields of the report in JSON.
#include <algorithm>
#include <charconv>

#include "report/formats/formats.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

constexpr std::string_view kHeader =
    "kind,model,preset,checkpoint,settings,task,task_version,percent,seeds,deviation,half_width95,"
    "half_width95_over_seeds,fail,diverged,failed,unfinished,paper_v0,paper_v1,minus_paper_v0,"
    "minus_paper_v1,validation,division,parameters,train_seconds,tokens_per_s,steps_per_s,"
    "relative_speed,peak_memory_bytes,revision,machine,suspect_data,other_settings,"
    "not_above_trivial";

std::string field_text(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return csv(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (!value.is_number_float()) return value.dump();
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value.get<double>()).ptr};
}

// `fields` without a column are left out.
std::string line_of(const std::string& kind, Json fields) {
  fields["kind"] = kind;
  std::string text;
  for (size_t begin = 0, end = 0; end < kHeader.size(); begin = end + 1) {
    end = std::min(kHeader.find(',', begin), kHeader.size());
    const auto found = fields.find(std::string(kHeader.substr(begin, end - begin)));
    text += (begin == 0 ? "" : ",") + (found == fields.end() ? "" : field_text(*found));
  }
  return text + "\n";
}

Json with_row(Json fields, const Row& row) {
  fields.update({{"model", row.model},
                 {"preset", row.preset},
                 {"checkpoint", row.checkpoint},
                 {"revision", row.revisions},
                 {"machine", row.machines}});
  return fields;
}

std::string average_line(const Row& row, const std::string& name, const Average& average) {
  if (!average.ours) return "";
  Json fields = with_row(average_json(average), row);
  fields.update({{"settings", row.settings},
                 {"task", name},
                 {"validation", row.validation},
                 {"division", row.division}});
  return line_of("average", std::move(fields));
}

std::string speed_line(const SpeedRow& row) {
  const Measurement& m = row.measured;
  Json fields = speed_json(row);
  fields["settings"] = m.mode + " " + m.dtype + " length " + std::to_string(m.length) + " batch " +
                       std::to_string(m.batch) + (row.settings.empty() ? "" : ", " + row.settings);
  fields["peak_memory_bytes"] = m.peak_resident_bytes;
  return line_of("speed", std::move(fields));
}

}  // namespace

std::string format_csv(const ReportInput& input) {
  const Leaderboard& board = input.board;
  std::string text = std::string(kHeader) + "\n";
  for (const Row& row : board.rows) {
    for (size_t i = 0; i < board.columns.size(); ++i) {
      if (!row.cells[i].was_run()) continue;
      text += line_of("accuracy", with_row(cell_json(board.columns[i], row.cells[i]), row));
    }
    text += average_line(row, "average_of_five", row.scored);
    text += average_line(row, "average_of_all", row.present);
  }
  for (const BaselineRow& row : board.baselines) {
    for (size_t i = 0; i < board.columns.size(); ++i) {
      if (!row.accuracy[i]) continue;
      text += line_of("baseline", {{"model", row.name},
                                   {"task", board.columns[i].task},
                                   {"task_version", board.columns[i].version},
                                   {"percent", *row.accuracy[i]}});
    }
  }
  for (const SpeedRow& row : board.speeds) text += speed_line(row);
  return text;
}

}  // namespace lra::report
