// The tables of lra analyze.
#include "base/text_format.h"
#include "cli/compute.h"
#include "report/tables/statistics.h"

namespace lra::cli {
namespace {

constexpr size_t kMaxMatrix = 12;  // classes

std::string share_text(std::optional<double> share, int decimals = 2) {
  return share ? percent(*share, decimals) : "-";
}

// Rows are the true labels, columns the predictions.
std::string classes_text(const BreakdownResult& b) {
  const bool has_matrix = b.confusion.size() == b.classes.size() && b.classes.size() <= kMaxMatrix;
  std::vector<std::string> header = {"label", "examples"};
  if (has_matrix) {
    for (const BreakdownClass& c : b.classes) header.push_back("as " + c.name);
  } else {
    header.emplace_back("predicted");
  }
  header.insert(header.end(), {"recall", "precision"});
  TextTable table(header);
  for (size_t label = 0; label < b.classes.size(); ++label) {
    const BreakdownClass& c = b.classes[label];
    std::vector<std::string> row = {c.name, thousands(c.num_examples)};
    if (has_matrix) {
      for (const int64_t count : b.confusion[label]) row.push_back(thousands(count));
    } else {
      row.push_back(thousands(c.num_predicted));
    }
    row.insert(row.end(), {share_text(c.recall()), share_text(c.precision())});
    table.add_row(row);
  }
  return table.text();
}

std::string factor_text(const BreakdownFactor& factor) {
  TextTable table({factor.name, "examples", "accuracy", "95 % interval"});
  for (const BreakdownGroup& group : factor.groups) {
    const auto n = static_cast<double>(group.num_examples);
    const double accuracy = static_cast<double>(group.num_correct) / n;
    table.add_row(
        {group.name, thousands(group.num_examples), percent(accuracy),
         "± " + fixed(report::binomial_half_width95(100 * accuracy, group.num_examples), 2)});
  }
  return table.text();
}

std::string span_text(const SpanResult& span) {
  TextTable table({"distance", "mean", "deviation", "uniform", "of uniform"});
  const auto row = [&](const std::string& name, const SpanFigures& f) {
    const double share = f.uniform > 0 ? f.mean / f.uniform : 0;
    table.add_row(
        {name, fixed(f.mean, 2), fixed(f.deviation, 2), fixed(f.uniform, 2), percent(share, 1)});
  };
  row("tokens", span.tokens);
  if (span.with_cls) row("tokens, CLS counted", *span.with_cls);
  if (span.pixels) row("pixels", *span.pixels);
  std::vector<std::string> header = {"layer", "mean"};
  for (size_t h = 0; h < span.tokens.heads[0].size(); ++h) {
    header.push_back("head " + std::to_string(h));
  }
  TextTable heads(header);
  for (size_t layer = 0; layer < span.tokens.layers.size(); ++layer) {
    std::vector<std::string> cells = {std::to_string(layer), fixed(span.tokens.layers[layer], 2)};
    for (const double value : span.tokens.heads[layer]) cells.push_back(fixed(value, 2));
    heads.add_row(cells);
  }
  return table.text() + "\n" + heads.text();
}

std::string generalization_text(const GeneralizationResult& g) {
  TextTable table({"split", "accuracy", "loss", "examples"});
  const auto row = [&](const std::string& name, const Evaluation& e) {
    table.add_row({name, percent(e.accuracy), fixed(e.loss, 4), thousands(e.num_examples)});
  };
  row("train", g.train);
  row("test", g.test);
  return table.text() + "gap " + fixed(100 * g.gap, 2) + " points, standard error " +
         fixed(100 * g.gap_error, 2) + "\n";
}

std::string convergence_text(const ConvergenceResult& c) {
  TextTable table({"accuracy", "step", "time"});
  for (const Threshold& t : c.thresholds) {
    table.add_row({percent(t.accuracy, 1), t.step ? thousands(*t.step) : "never",
                   t.seconds ? human_duration(*t.seconds) : "-"});
  }
  std::string text = table.text() + "evaluated every " + thousands(c.eval_every) + " steps up to " +
                     thousands(c.last_step);
  if (c.best) text += "; best " + percent(c.best->accuracy) + " at " + thousands(c.best->step);
  return text + "\n";
}

std::string rollout_text(const RolloutResult& rollout) {
  TextTable table({"example", "label", "predicted", "entropy", "on bright", "bright pixels",
                   "most weight on", "picture"});
  for (const RolloutExample& e : rollout.examples) {
    const RolloutToken& most = e.top.at(0);
    table.add_row({thousands(e.index), std::to_string(e.label), std::to_string(e.prediction),
                   fixed(e.entropy, 3), share_text(e.bright_weight, 1),
                   share_text(e.bright_pixels, 1),
                   std::to_string(most.position) + " '" + most.text + "' " + percent(most.weight),
                   e.picture});
  }
  return table.text();
}

std::string embeddings_text(const EmbeddingsResult& e) {
  TextTable table({"mean cosine of", "1 apart", "2", "4", "8"});
  const auto row = [&](const std::string& name, const std::vector<double>& by_distance) {
    if (by_distance.empty()) return;
    std::vector<std::string> cells = {name};
    for (const size_t apart : {1, 2, 4, 8}) {
      cells.push_back(apart <= by_distance.size() ? fixed(by_distance[apart - 1], 3) : "-");
    }
    table.add_row(cells);
  };
  row("grays", e.by_intensity);
  row("positions in the sequence", e.by_distance);
  row("positions, vertical", e.vertical);
  row("positions, horizontal", e.horizontal);
  std::string text = table.text();
  if (e.intensity_correlation) {
    text += "correlation of similarity and difference of grays " +
            fixed(*e.intensity_correlation, 3) + "\n";
  }
  return text + "pictures " + e.token_picture + ", " + e.position_picture + "; matrices " +
         e.matrices + "\n";
}

std::string changed_inputs_text(const std::vector<ChangedInput>& scores) {
  TextTable table({"inputs", "accuracy", "less", "loss", "examples"});
  const Evaluation* own = own_score(scores);
  for (const ChangedInput& c : scores) {
    if (!c.score) {
      table.add_row({c.title(), "-", "-", "-", "-"});
      continue;
    }
    table.add_row({c.title(), percent(c.score->accuracy),
                   own ? fixed(100 * (own->accuracy - c.score->accuracy), 2) : "-",
                   fixed(c.score->loss, 4), thousands(c.score->num_examples)});
  }
  std::string text = table.text();
  for (const ChangedInput& c : scores) {
    if (!c.refused.empty()) text += "not measured: " + c.refused + "\n";
  }
  return text;
}

std::string controls_text(const ControlsResult& controls) {
  std::string text = changed_inputs_text(controls.scores);
  for (const auto& [name, accuracy] : controls.baselines) {
    text += "without a model, " + name + ": " + percent(accuracy) + "\n";
  }
  return text;
}

std::string reach_text(const ReachResult& reach) {
  TextTable table({"reach of", "90 % of gradients", "equal ones", "window"});
  for (const ReachFigures& layer : reach.layers) {
    table.add_row({layer.layer, thousands(layer.distance), thousands(layer.equal),
                   layer.window ? thousands(*layer.window) : "-"});
  }
  return table.text() + "distances in tokens; window: the smallest that costs at most a point\n\n" +
         changed_inputs_text(reach.scores);
}

std::string transfer_text(const TransferResult& transfer) {
  std::string text = "on " + transfer.task_title + "\n" + changed_inputs_text(transfer.scores);
  for (const ChangedInput& c : transfer.scores) {
    if (!c.score) continue;
    const double limit = two_class_chance_limit(c.score->num_examples);
    if (limit >= 100) {
      text += c.title() + ": too few examples to tell it from chance\n";
      continue;
    }
    const bool fail = 100 * c.score->accuracy <= limit;
    text += c.title() + ": " + (fail ? "FAIL, not above " : "above ") + fixed(limit, 2) +
            " %, three standard errors from chance\n";
  }
  return text;
}

}  // namespace

std::string breakdown_text(const BreakdownResult& breakdown) {
  std::string text = classes_text(breakdown);
  for (const BreakdownFactor& factor : breakdown.factors) text += "\n" + factor_text(factor);
  return text;
}

std::string analysis_text(const AnalysisRecord& r, const std::string& folder) {
  std::string text = folder + ": " + r.kind + ", " + r.task_title + ", " + r.model_title;
  if (!r.checkpoint.empty()) text += ", weights of step " + thousands(r.step);
  if (r.foreign_weights) text += " of ANOTHER RUN (" + printable(*r.foreign_weights) + ")";
  if (r.other_data) text += ", on OTHER DATA (hash " + printable(*r.other_data) + ")";
  if (!r.split.empty()) {
    text += ", " + thousands(r.num_examples) + " examples of " + r.split;
  }
  text += "\n";
  if (r.span) text += span_text(*r.span);
  if (r.generalization) text += generalization_text(*r.generalization);
  if (r.convergence) text += convergence_text(*r.convergence);
  if (r.rollout) text += rollout_text(*r.rollout);
  if (r.embeddings) text += embeddings_text(*r.embeddings);
  if (r.controls) text += controls_text(*r.controls);
  if (r.transfer) text += transfer_text(*r.transfer);
  if (r.reach) text += reach_text(*r.reach);
  if (r.breakdown) text += breakdown_text(*r.breakdown);
  for (const std::string& warning : items_of(r.warnings)) {
    text += "warning: " + printable(warning) + "\n";
  }
  return text;
}

}  // namespace lra::cli
