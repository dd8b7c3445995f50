// The paper's Tables 2 to 5 with our figures next to the paper's, and the data of its Figures 2 to
// 5.

#include <algorithm>
#include <set>

#include "base/text_format.h"
#include "report/tables/breakdown.h"
#include "report/tables/trade_off.h"

namespace lra::report {
namespace {

std::string weights_text(const AnalysisRecord& record) {
  return joined({record.preset + " preset",
                 record.checkpoint.empty() ? "" : record.checkpoint + " weights",
                 "step " + thousands(record.step)});
}

std::string percent_text(double share) { return fixed(100 * share, 2); }

// "1K" for 1024.
std::string length_text(int64_t length) {
  return length % 1024 == 0 ? std::to_string(length / 1024) + "K" : thousands(length);
}

TitledCells efficiency_line(const SpeedGrid& grid, const SpeedGridLine& line) {
  const std::string& mode = grid.any->measured.mode;
  TitledCells cells = {{"Model", {line.title}}};
  for (const int64_t length : grid.lengths) {
    const SpeedRow* row = line.find(length);
    const std::string name = length_text(length), mark = row && row->measured.warning ? "!" : "";
    const auto paper = paper_relative_speed(line.model, mode, length);
    cells.push_back({name + " steps/s", {row ? rate_text(row->measured.steps_per_s) + mark : "-"}});
    cells.push_back({name + " ratio", {row ? ratio_text(row->relative) : "-"}});
    cells.push_back({name + " paper", {ratio_text(paper), Emphasis::kQuiet}});
  }
  for (const int64_t length : grid.lengths) {
    const SpeedRow* row = line.find(length);
    const std::string name = length_text(length);
    const auto paper = paper_memory(line.model, length);
    cells.push_back({name + " memory", {row ? memory_text(row->measured.peak_tensor_bytes) : "-"}});
    if (mode != "train") continue;
    cells.push_back({name + " paper", {gigabytes_text(paper), Emphasis::kQuiet}});
  }
  return cells;
}

Table efficiency_table(const SpeedGrid& grid) {
  const bool training = grid.any->measured.mode == "train";
  Table table{
      .title = (training ? "Table 2: training speed and memory, " : "Table 4: inference speed, ") +
               grid.name(),
      .caption =
          std::string("Steps per second and their ratio to the Transformer's, ") +
          "next to it the paper's ratio, by sequence length; then the peak memory of tensors" +
          (training ? " and the paper's per TPU device with one example each; our exact attention "
                      "keeps no weights of L x L, theirs does. "
                    : ". ") +
          "Measured on " + grid.setting() + "; the paper's on 16 TPU v3 chips."};
  for (const SpeedGridLine& line : grid.lines) table.add(efficiency_line(grid, line));
  return table;
}

// The model of the paper whose figure is compared with ours.
const PaperModel* paper_on_image(const AnalysisRecord& record) {
  return paper_task(record.task) == PaperTask::kImage ? paper_model(record.model) : nullptr;
}

std::string steps_text(const ConvergenceResult& result, double accuracy) {
  const Threshold* threshold = result.at(accuracy);
  if (!threshold) return "-";
  if (!threshold->step) return "not in " + thousands(result.last_step);
  std::string text = thousands(*threshold->step);
  if (threshold->seconds) text += " (" + human_duration(*threshold->seconds) + ")";
  return text;
}

std::string numbers_text(const std::vector<double>& values, int decimals) {
  return or_dash(joined(mapped(values, [&](double value) { return fixed(value, decimals); })));
}

// Accuracies above chance that some analysis has a threshold for, in increasing order.
std::set<double> thresholds_of(const AnalysisRecord& record) {
  const auto task = paper_task(record.task);
  const double chance = task ? kPaperChance[static_cast<size_t>(*task)] / 100 : 0;
  std::set<double> above;
  for (const Threshold& threshold : record.convergence->thresholds) {
    if (threshold.accuracy > chance) above.insert(threshold.accuracy);
  }
  return above;
}

// A table of the results of one analysis. Its first columns name the subject.
Table analysis_table(std::string title, std::string caption) {
  return {.title = std::move(title), .caption = std::move(caption), .num_left = 3, .num_keys = 2};
}

void add_row(Table& table, const AnalysisRecord& record, const TitledCells& figures) {
  Marks marks;
  if (const std::string reason = suspicion_of(record.data_checks); !reason.empty()) {
    marks = {{MarkKind::kSuspect, reason}};
    const std::string told = " † " + text_of(marks[0]) + ".";
    if (!table.caption.ends_with(told)) table.caption += told;
  }
  const bool reads_weights = record.kind != "convergence";
  TitledCells cells = {{"Task", {shown_task(record)}},
                       {"Model", {record.model_title, Emphasis::kPlain, marks}},
                       {reads_weights ? "Weights" : "Run", {weights_text(record)}}};
  cells.insert(cells.end(), figures.begin(), figures.end());
  table.add(cells);
}

// The scores on changed inputs, each below the run's own if that comes first.
void add_changed_inputs(Table& table, const AnalysisRecord& record, const std::string& task,
                        const std::vector<ChangedInput>& scores) {
  const Evaluation* own = own_score(scores);
  for (const ChangedInput& c : scores) {
    const bool compares = own && c.score && c.change != "none";
    add_row(
        table, record,
        {{"evaluated on", {task}},
         {"inputs", {c.title()}},
         {"accuracy", {c.score ? percent_text(c.score->accuracy) : "-"}},
         {"difference", {compares ? signed_text(100 * (c.score->accuracy - own->accuracy)) : "-"}},
         {"examples", {c.score ? thousands(c.score->num_examples) : c.refused}}});
  }
}

}  // namespace

std::string analysis_label(const AnalysisRecord& record) {
  return record.model_title + ", " + weights_text(record);
}

std::vector<const AnalysisRecord*> analyses_of(const std::vector<Analysis>& analyses,
                                               std::string_view kind) {
  std::vector<const AnalysisRecord*> found;
  for (const Analysis& analysis : analyses) {
    if (analysis.record.kind == kind) found.push_back(&analysis.record);
  }
  std::ranges::stable_sort(found, {}, [](const AnalysisRecord* record) {
    return std::pair(task_order(record->task), paper_order(record->model));
  });
  return found;
}

std::vector<Table> efficiency_tables(const ReportInput& input, std::string_view mode) {
  std::vector<Table> tables;
  for (const SpeedGrid& grid : input.grids) {
    if (grid.any->measured.mode == mode) tables.push_back(efficiency_table(grid));
  }
  return tables;
}

Table generalization_table(const std::vector<Analysis>& analyses) {
  Table table = analysis_table(
      "Table 3: accuracy on the training and on the test set",
      "Percent, each from a separate pass without dropout; the gap with its standard error. Paper: "
      "only Image; it does not say how its training accuracy was measured.");
  for (const AnalysisRecord* record : analyses_of(analyses, "generalization")) {
    const GeneralizationResult& result = *record->generalization;
    std::optional<double> train, test;
    if (const PaperModel* paper = paper_on_image(*record)) {
      train = paper->image_train_accuracy;
      test = paper_accuracy(*paper, PaperTask::kImage, PaperVersion::kV0);
    }
    add_row(table, *record,
            {{"train", {percent_text(result.train.accuracy)}},
             {"test", {percent_text(result.test.accuracy)}},
             {"gap", {signed_text(100 * result.gap) + " ± " + percent_text(result.gap_error)}},
             {"paper train", {accuracy_text(train), Emphasis::kQuiet}},
             {"paper test", {accuracy_text(test), Emphasis::kQuiet}},
             {"paper gap", {signed_text(difference(train, test)), Emphasis::kQuiet}}});
  }
  return table;
}

Table convergence_table(const std::vector<Analysis>& analyses) {
  const auto records = analyses_of(analyses, "convergence");
  std::set<double> thresholds;
  bool has_paper = false;
  for (const AnalysisRecord* record : records) {
    thresholds.merge(thresholds_of(*record));
    has_paper = has_paper || paper_on_image(*record);
  }
  Table table =
      analysis_table("Table 5: training steps until a validation accuracy",
                     "The first evaluation at or above the accuracy, in parentheses the time in "
                     "training until it; nothing is interpolated. Only accuracies above chance. "
                     "Paper: only Image; the released code evaluates every 175 steps.");
  for (const AnalysisRecord* record : records) {
    const ConvergenceResult& result = *record->convergence;
    const std::set<double> own = thresholds_of(*record);
    if (own.empty()) continue;
    TitledCells cells;
    for (const double accuracy : thresholds) {
      cells.push_back({"to " + fixed(100 * accuracy, 0) + " %",
                       {own.contains(accuracy) ? steps_text(result, accuracy) : "-"}});
    }
    if (has_paper) {
      const PaperModel* paper = paper_on_image(*record);
      const auto steps = [&](int PaperModel::*of) { return paper ? thousands(paper->*of) : "-"; };
      cells.push_back({"paper 30 %", {steps(&PaperModel::steps_to_30), Emphasis::kQuiet}});
      cells.push_back({"paper 35 %", {steps(&PaperModel::steps_to_35), Emphasis::kQuiet}});
    }
    cells.push_back({"steps apart", {thousands(result.eval_every)}});
    cells.push_back({"best, %", {result.best ? percent_text(result.best->accuracy) : "-"}});
    add_row(table, *record, cells);
  }
  return table;
}

Table span_table(const std::vector<Analysis>& analyses) {
  Table table = analysis_table(
      "Figure 2: required attention span",
      "Mean distance in tokens between a query and what it attends to, weighted by attention; s is "
      "over examples. Uniform: the same with equal weights, about a third of the length; a span "
      "near it only shows diffuse attention. The paper gives no figures.");
  for (const AnalysisRecord* record : analyses_of(analyses, "span")) {
    const SpanResult& result = *record->span;
    const SpanFigures& tokens = result.tokens;
    add_row(table, *record,
            {{"span", {fixed(tokens.mean, 1)}},
             {"s", {fixed(tokens.deviation, 1)}},
             {"uniform", {fixed(tokens.uniform, 1)}},
             {"of uniform", {tokens.uniform > 0 ? ratio_text(tokens.mean / tokens.uniform) : "-"}},
             {"length", {fixed(result.mean_length, 1)}},
             {"with CLS", {result.with_cls ? fixed(result.with_cls->mean, 1) : "-"}},
             {"pixels", {result.pixels ? fixed(result.pixels->mean, 1) : "-"}},
             {"uniform pixels", {result.pixels ? fixed(result.pixels->uniform, 1) : "-"}},
             {"by layer", {numbers_text(tokens.layers, 0)}},
             {"examples", {thousands(record->num_examples)}}});
  }
  return table;
}

Table similarity_table(const std::vector<Analysis>& analyses) {
  Table table = analysis_table(
      "Figure 4: similarity of embeddings",
      "Mean cosine similarity of the embeddings of two grays or two positions by how far they are "
      "apart: 1, 2, ... 8. Order: the correlation of similarity and distance of two grays.");
  for (const AnalysisRecord* record : analyses_of(analyses, "embeddings")) {
    const EmbeddingsResult& result = *record->embeddings;
    add_row(table, *record,
            {{"order", {number_text(result.intensity_correlation, 2)}},
             {"grays apart", {numbers_text(result.by_intensity, 2)}},
             {"down a column", {numbers_text(result.vertical, 2)}},
             {"along a row", {numbers_text(result.horizontal, 2)}},
             {"positions apart", {numbers_text(result.by_distance, 2)}}});
  }
  return table;
}

Table rollout_table(const std::vector<Analysis>& analyses) {
  Table table = analysis_table(
      "Figure 5: attention rollout",
      "Entropy is relative to that of equal weights: at 1, nothing is picked out. Bright: the "
      "weight on pixels brighter than the mean, next to their share.");
  for (const AnalysisRecord* record : analyses_of(analyses, "rollout")) {
    for (const RolloutExample& example : record->rollout->examples) {
      add_row(table, *record,
              {{"example", {thousands(example.index)}},
               {"label", {std::to_string(example.label)}},
               {"predicted", {std::to_string(example.prediction)}},
               {"entropy", {fixed(example.entropy, 3)}},
               {"on CLS", {number_text(example.cls_weight, 3)}},
               {"bright weight", {number_text(example.bright_weight, 3)}},
               {"bright pixels", {number_text(example.bright_pixels, 3)}}});
    }
  }
  return table;
}

Table controls_table(const std::vector<Analysis>& analyses) {
  Table table = analysis_table(
      "Controls and transfer",
      "Accuracy in percent with inputs the weights were not trained on: tokens in a random order, "
      "independent blocks, other lengths, another task. The difference is to the run's own score "
      "on the same examples; a baseline needs no model.");
  for (const AnalysisRecord* record : analyses_of(analyses, "controls")) {
    add_changed_inputs(table, *record, shown_task(*record), record->controls->scores);
    for (const auto& [name, accuracy] : record->controls->baselines) {
      add_row(table, *record,
              {{"evaluated on", {shown_task(*record)}},
               {"inputs", {"baseline: " + name}},
               {"accuracy", {percent_text(accuracy)}},
               {"difference", {"-"}},
               {"examples", {"-"}}});
    }
  }
  for (const AnalysisRecord* record : analyses_of(analyses, "transfer")) {
    add_changed_inputs(table, *record, record->transfer->task_title, record->transfer->scores);
  }
  table.num_left = 5;
  return table;
}

Table reach_table(const std::vector<Analysis>& analyses) {
  Table table = analysis_table(
      "Reach",
      "Tokens within which 90 % of the gradient of the predicted score lies, of each layer and of "
      "all; the same if all tokens counted alike; and the smallest window in which a layer may be "
      "without losing more than a point of accuracy, of the windows measured.");
  for (const AnalysisRecord* record : analyses_of(analyses, "reach")) {
    for (const ReachFigures& layer : record->reach->layers) {
      add_row(table, *record,
              {{"layer", {layer.layer}},
               {"90 % of gradients", {thousands(layer.distance)}},
               {"equal ones", {thousands(layer.equal)}},
               {"window", {layer.window ? thousands(*layer.window) : "-"}},
               {"largest window",
                {record->reach->scores.size() > 1 ? record->reach->scores.back().value : "-"}}});
    }
  }
  return table;
}

std::vector<Table> all_tables(const ReportInput& input) {
  std::vector<Table> tables = {best_table(input.board),
                               accuracy_table(input.board),
                               own_data_table(input.own),
                               comparisons_table(input),
                               pretraining_table(input.records),
                               protocol_table(input.board),
                               training_speed_table(input.board),
                               measurement_table(input.board),
                               claims_table(input)};
  for (const char* mode : {"train", "infer"}) {  // Table 2 before Table 4
    for (Table& table : efficiency_tables(input, mode)) tables.push_back(std::move(table));
  }
  tables.push_back(trade_off_table(our_trade_off(input)));
  for (const auto make : {generalization_table, convergence_table, span_table, similarity_table,
                          rollout_table, controls_table, reach_table}) {
    tables.push_back(make(input.options.analyses));
  }
  for (const BreakdownGrid& grid : breakdown_grids(input.options.analyses)) {
    tables.push_back(breakdown_table(grid));
  }
  tables.push_back(class_table(input.options.analyses));
  if (input.options.show_literature) tables.push_back(literature_table(input.options.literature));
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace lra::report
