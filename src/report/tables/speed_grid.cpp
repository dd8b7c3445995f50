#include "report/tables/speed.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "report/tables/paper_tables.h"

namespace lra::report {
namespace {

auto setting_of(const SpeedRow& row) {
  return std::tuple(row.task, row.preset, row.measured.mode, row.measured.dtype, row.measured.batch,
                    row.revision, row.machine);
}

void sort_lines(std::vector<SpeedGridLine>& lines) {
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return std::pair(paper_order(a.model), a.title) < std::pair(paper_order(b.model), b.title);
  });
}

int num_comparable(const SpeedGrid& grid) {
  int count = 0;
  for (const SpeedGridLine& line : grid.lines) {
    for (const auto& [length, row] : line.at) count += row->relative && row->paper_relative;
  }
  return count;
}

}  // namespace

std::string SpeedGrid::setting() const {
  return task + (preset.empty() ? "" : ", " + preset + " preset") + ", " + dtype + ", batch " +
         std::to_string(batch) + ", revision " + revision + ", " + machine;
}

std::string SpeedGrid::name() const {
  return device + ", " + dtype + ", batch " + std::to_string(batch);
}

const SpeedRow* SpeedGrid::find(std::string_view model, int64_t length) const {
  const SpeedRow* any = nullptr;
  for (const SpeedGridLine& line : lines) {
    const auto found = line.at.find(length);
    if (!same_paper_model(line.model, model) || found == line.at.end()) continue;
    if (found->second->settings.empty()) return found->second;
    if (!any) any = found->second;
  }
  return any;
}

std::vector<SpeedGrid> speed_grids(const std::vector<SpeedRow>& rows) {
  using Setting = decltype(setting_of(rows[0]));
  std::map<Setting, std::map<std::string, SpeedGridLine>> settings;
  for (const SpeedRow& row : rows) {
    const std::string title = row.title + (row.settings.empty() ? "" : " (" + row.settings + ")");
    SpeedGridLine& line = settings[setting_of(row)][title];
    line.model = row.model;
    line.title = title;
    line.at[row.measured.length] = &row;
  }
  std::vector<SpeedGrid> grids;
  for (const auto& [setting, lines] : settings) {
    SpeedGrid grid;
    std::tie(grid.task, grid.preset, grid.mode, grid.dtype, grid.batch, grid.revision,
             grid.machine) = setting;
    std::set<int64_t> lengths;
    for (const auto& [title, line] : lines) {
      for (const auto& [length, row] : line.at) {
        lengths.insert(length);
        grid.device = row->device;
      }
      grid.lines.push_back(line);
    }
    grid.lengths.assign(lengths.begin(), lengths.end());
    sort_lines(grid.lines);
    grids.push_back(std::move(grid));
  }
  return grids;
}

const SpeedGrid* paper_grid(const std::vector<SpeedGrid>& grids, std::string_view mode) {
  const SpeedGrid* best = nullptr;
  for (const SpeedGrid& grid : grids) {
    if (grid.mode != mode || num_comparable(grid) == 0) continue;
    if (!best || num_comparable(grid) > num_comparable(*best)) best = &grid;
  }
  return best;
}

}  // namespace lra::report
