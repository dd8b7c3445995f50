#include "report/tables/literature.h"

#include <algorithm>
#include <string_view>

#include "io/json.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

constexpr std::array<std::string_view, kNumPaperTasks> kTaskNames = {
    "listops", "text", "retrieval", "image", "pathfinder", "pathx"};

PublishedResult parse_result(const Json& row, const std::string& path) {
  JsonFields fields(row, path, "results");
  PublishedResult result{.model = fields.get<std::string>("model"),
                         .family = fields.get<std::string>("family"),
                         .source = fields.get<std::string>("source"),
                         .note = fields.find<std::string>("note").value_or(""),
                         .kind = fields.get<std::string>("kind")};
  const Json& accuracy = row.at("accuracy");
  JsonFields by_task = fields.object("accuracy");
  for (size_t task = 0; task < kTaskNames.size(); ++task) {
    const char* name = kTaskNames[task].data();
    result.fail[task] = accuracy.contains(name) && accuracy.at(name) == "FAIL";
    if (result.fail[task]) {
      by_task.get<std::string>(name);
    } else {
      result.accuracy[task] = by_task.find<double>(name);
    }
  }
  by_task.finish();
  fields.finish();
  return result;
}

PublishedResult paper_result(const PaperModel& model, const std::string& family) {
  PublishedResult result{.model = std::string(model.label),
                         .family = family,
                         .source = "Long Range Arena (Tay et al.), Table 6",
                         .kind = "own"};
  for (size_t task = 0; task < kNumScoredTasks; ++task) {
    result.accuracy[task] = paper_accuracy(model, static_cast<PaperTask>(task), PaperVersion::kV1);
  }
  result.fail[static_cast<size_t>(PaperTask::kPathX)] = true;
  return result;
}

}  // namespace

std::string PublishedResult::text_of(PaperTask task) const {
  const auto place = static_cast<size_t>(task);
  return fail[place] ? "FAIL" : accuracy_text(accuracy[place]);
}

std::optional<double> PublishedResult::average(int num_tasks) const {
  double sum = 0;
  for (size_t task = 0; task < static_cast<size_t>(num_tasks); ++task) {
    if (!accuracy[task] && !fail[task]) return std::nullopt;
    sum += fail[task] ? 50 : *accuracy[task];
  }
  return sum / num_tasks;
}

Literature read_literature(const std::string& path, std::map<std::string, std::string> families,
                           const std::string& edited) {
  const Json document = read_json_file(path);
  JsonFields fields(document, path);
  fields.get<std::string>("about");
  Literature literature{.families = std::move(families), .results = {}};
  for (const Json& row : fields.array("results")) {
    PublishedResult& result = literature.results.emplace_back(parse_result(row, path));
    if (edited.empty()) continue;
    result.kind = "unverified";
    result.note = edited;
  }
  fields.finish();
  for (const PaperModel& model : paper_models()) {
    literature.results.push_back(
        paper_result(model, family_of(literature, std::string(model.name))));
  }
  std::ranges::stable_sort(literature.results, std::greater<>(), [](const PublishedResult& result) {
    return std::pair(result.average(kNumPaperTasks).value_or(0),
                     result.average(kNumScoredTasks).value_or(0));
  });
  return literature;
}

std::string family_of(const Literature& literature, const std::string& model) {
  const PaperModel* paper = paper_model(model);
  const auto found = literature.families.find(paper ? std::string(paper->name) : model);
  return found == literature.families.end() ? "" : found->second;
}

Table literature_table(const Literature& literature) {
  Table table{.title = "Published results, percent",
              .caption =
                  "Test accuracy as printed in each source, not ranked with the runs above: "
                  "protocols, model sizes and numbers of seeds differ. Avg 6 counts FAIL as 50. "
                  "Figures are the authors' own, re-run by others, collected by another paper, or "
                  "unverified (collected, origin not traced).",
              .num_left = 2};
  for (const PublishedResult& result : literature.results) {
    TitledCells cells = {{"Model", {result.model}}, {"Family", {result.family}}};
    for (int place = 0; place < kNumPaperTasks; ++place) {
      const auto task = static_cast<PaperTask>(place);
      cells.push_back({std::string(paper_task_title(task)), {result.text_of(task)}});
    }
    cells.insert(cells.end(), {{"Avg 5", {accuracy_text(result.average(kNumScoredTasks))}},
                               {"Avg 6", {accuracy_text(result.average(kNumPaperTasks))}},
                               {"Figures", {or_dash(result.kind)}},
                               {"Source", {or_dash(result.source)}},
                               {"Note", {or_dash(result.note)}}});
    table.add(cells);
  }
  return table;
}

}  // namespace lra::report
