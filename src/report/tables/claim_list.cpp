// The sentences of the paper, as comparisons. "Above" means the higher figure: for claims that
// something is small or slow, the sides are swapped.
#include <algorithm>
#include <functional>
#include <initializer_list>

#include "report/tables/claims.h"

namespace lra::report {
namespace {

using Names = std::vector<std::string_view>;
using Comparisons = std::vector<Comparison>;

Names all_models() { return mapped(paper_models(), &PaperModel::name); }

// The models of Tables 2 and 4.
Names timed_models() {
  Names names;
  for (const PaperModel& model : paper_models()) {
    if (model.speeds) names.push_back(model.name);
  }
  return names;
}

Names without(Names names, std::initializer_list<std::string_view> left_out) {
  std::erase_if(names, [&](std::string_view name) {
    return std::find(left_out.begin(), left_out.end(), name) != left_out.end();
  });
  return names;
}

std::string label(std::string_view model) { return std::string(paper_model(model)->label); }

// A figure of each model.
struct Metric {
  std::function<Finding(std::string_view model)> of;
  std::string unit;
};

// Every one of `above` against every one of `below`.
Comparisons pairs(const Names& above, const Names& below, const Metric& metric) {
  Comparisons comparisons;
  for (const std::string_view left : above) {
    for (const std::string_view right : below) {
      comparisons.push_back(
          {metric.of(left), metric.of(right), label(left), label(right), metric.unit});
    }
  }
  return comparisons;
}

Comparisons all_above(const Names& models, double limit, const Metric& metric) {
  return mapped(models, [&](std::string_view model) {
    return Comparison{metric.of(model), limit, label(model), "limit", metric.unit};
  });
}

// One above all others, and one below them.
Comparisons best(std::string_view model, const Names& models, const Metric& metric) {
  return pairs({model}, without(models, {model}), metric);
}
Comparisons worst(std::string_view model, const Names& models, const Metric& metric) {
  return pairs(without(models, {model}), {model}, metric);
}

Comparisons swapped(Comparisons comparisons) {
  for (Comparison& c : comparisons) {
    std::swap(c.left, c.right);
    std::swap(c.left_name, c.right_name);
  }
  return comparisons;
}

Comparisons operator+(Comparisons a, const Comparisons& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Metric average(const Evidence& e) {
  return {[&e](std::string_view model) { return e.average(model); }, "%"};
}
Metric accuracy(const Evidence& e, PaperTask task) {
  return {[&e, task](std::string_view model) { return e.accuracy(model, task); }, "%"};
}
Metric speed(const Evidence& e, std::string_view mode, int64_t length) {
  return {[&e, mode, length](std::string_view model) { return e.speed(model, mode, length); }, "x"};
}
Metric memory(const Evidence& e, int64_t length) {
  return {[&e, length](std::string_view model) { return e.memory(model, length); }, "GB"};
}
Metric on_image(const Evidence& e, Analysed figure, const char* unit) {
  return {[&e, figure](std::string_view m) { return e.analysed(figure, m, PaperTask::kImage); },
          unit};
}
// The figure of the model of Figures 2 and 4.
Finding of_transformer(const Evidence& e, Analysed figure, PaperTask task = PaperTask::kImage) {
  return e.analysed(figure, "transformer", task);
}

Finding scaled(Finding finding, double factor) {
  if (!finding) return finding;
  return Measured{finding->value * factor, finding->noise * factor};
}

// The best and the second on a task: each above all that come behind it.
Comparisons leaders(const Evidence& e, PaperTask task, std::string_view first,
                    std::string_view second) {
  return best(first, all_models(), accuracy(e, task)) +
         pairs({second}, without(all_models(), {first, second}), accuracy(e, task));
}

// 50 % and three standard errors of 20,000 images.
double chance_limit() { return two_class_chance_limit(20000); }

constexpr int64_t k1K = 1024, k2K = 2048, k3K = 3072, k4K = 4096;

// A model is on the front when no other leads in both: its larger lead over each, in parts of the
// other's figure, is above zero.
Comparisons pareto_front(const Evidence& e) {
  Comparisons comparisons;
  for (const std::string_view model : {"bigbird", "performer"}) {
    for (const std::string_view other : without(timed_models(), {model})) {
      const Finding quality = e.average(model), other_quality = e.average(other);
      const Finding pace = e.speed(model, "train", k4K), other_pace = e.speed(other, "train", k4K);
      Finding lead;
      if (quality && other_quality && pace && other_pace) {
        lead =
            100 * std::max(quality->value / other_quality->value, pace->value / other_pace->value) -
            100;
      }
      comparisons.push_back(
          {lead, 0.0, label(model) + " leads " + label(other) + " by", "limit", "%"});
    }
  }
  return comparisons;
}

constinit const Claim kClaims[] = {
    {"3.5, Table 1", "BigBird has the best average.",
     [](auto& e) { return best("bigbird", all_models(), average(e)); }},
    {"3.5, Figure 3",
     "BigBird and Performer lie on the Pareto front of average and training speed (at 4K).",
     pareto_front},
    {"3.3", "The best models reach 37 % on ListOps (judged: none reaches 38 %).",
     [](auto& e) {
       return swapped(all_above(all_models(), 38, accuracy(e, PaperTask::kListops)));
     }},
    {"3.3",
     "Kernel-based models do worse on ListOps (judged: Linear Transformer and Performer are below "
     "the Transformer).",
     [](auto& e) {
       return pairs({"transformer"}, {"linear_transformer", "performer"},
                    accuracy(e, PaperTask::kListops));
     }},
    {"3.3", "On Text the Linear Transformer is best, the Performer second.",
     [](auto& e) { return leaders(e, PaperTask::kText, "linear_transformer", "performer"); }},
    {"3.3", "On Retrieval the Sparse Transformer is best, BigBird second.",
     [](auto& e) { return leaders(e, PaperTask::kRetrieval, "sparse_transformer", "bigbird"); }},
    {"3.3", "On Image the Sparse Transformer is best, the Performer second.",
     [](auto& e) { return leaders(e, PaperTask::kImage, "sparse_transformer", "performer"); }},
    {"3.3", "On Image Linformer and Reformer do not do well (judged: they are the last two).",
     [](auto& e) {
       return pairs(without(all_models(), {"linformer", "reformer"}), {"linformer", "reformer"},
                    accuracy(e, PaperTask::kImage));
     }},
    {"3.3", "All models learn Pathfinder (judged: above chance by three standard errors).",
     [](auto& e) {
       return all_above(all_models(), chance_limit(), accuracy(e, PaperTask::kPathfinder));
     }},
    {"3.3", "On Pathfinder the Performer is best and Local Attention worst.",
     [](auto& e) {
       const auto metric = accuracy(e, PaperTask::kPathfinder);
       return best("performer", all_models(), metric) + worst("local", all_models(), metric);
     }},
    {"3.3, Table 1",
     "No model learns Path-X (judged: none is above chance by three standard errors).",
     [](auto& e) {
       return swapped(all_above(all_models(), chance_limit(), accuracy(e, PaperTask::kPathX)));
     }},
    {"3.4, Table 2", "Performer is the fastest in training at 4K.",
     [](auto& e) { return best("performer", timed_models(), speed(e, "train", k4K)); }},
    {"3.4, Table 2",
     "Low-rank and kernel-based models are the fastest in training at 4K (judged: Local Attention, "
     "which is called fast too, is behind them).",
     [](auto& e) {
       return pairs({"performer", "linformer", "linear_transformer"},
                    {"transformer", "local", "reformer", "sinkhorn", "synthesizer", "bigbird"},
                    speed(e, "train", k4K));
     }},
    {"3.4, Table 2", "Reformer trains more slowly than the Transformer at all lengths.",
     [](auto& e) {
       Comparisons comparisons;
       for (const int64_t length : kPaperLengths) {
         comparisons = std::move(comparisons) +
                       pairs({"transformer"}, {"reformer"}, speed(e, "train", length));
       }
       return comparisons;
     }},
    {"3.5, Table 2", "BigBird trains slightly more slowly than the Transformer at 1K and 2K.",
     [](auto& e) {
       return pairs({"transformer"}, {"bigbird"}, speed(e, "train", k1K)) +
              pairs({"transformer"}, {"bigbird"}, speed(e, "train", k2K));
     }},
    {"3.4, Table 2", "Linformer needs the least training memory at 4K.",
     [](auto& e) { return worst("linformer", timed_models(), memory(e, k4K)); }},
    {"3.4, Table 2",
     "Linformer needs about a tenth of the Transformer's memory at 4K (judged: under 15 %).",
     [](auto& e) {
       return Comparisons{{scaled(e.memory("transformer", k4K), 0.15), e.memory("linformer", k4K),
                           "15 % of the Transformer's", "Linformer", "GB"}};
     }},
    {"3.4, Table 2", "Every other model needs less memory than the Transformer at 4K.",
     [](auto& e) { return best("transformer", timed_models(), memory(e, k4K)); }},
    {"3.4, Table 2",
     "Linformer and Performer need about the same memory at 3K and 4K (judged: within a tenth).",
     [](auto& e) {
       Comparisons comparisons;
       for (const std::string_view model : {"linformer", "performer"}) {
         comparisons.push_back({scaled(e.memory(model, k3K), 1.1), e.memory(model, k4K),
                                label(model) + " at 3K, and a tenth more,", "at 4K", "GB"});
       }
       return comparisons;
     }},
    {"C, Table 4", "In inference all models are slower than the Transformer at 1K.",
     [](auto& e) { return best("transformer", timed_models(), speed(e, "infer", k1K)); }},
    {"C, Table 4",
     "In inference at 4K Performer, Linear Transformer, Linformer and Local Attention are the "
     "fastest.",
     [](auto& e) {
       return pairs({"performer", "linear_transformer", "linformer", "local"},
                    {"transformer", "reformer", "sinkhorn", "synthesizer", "bigbird"},
                    speed(e, "infer", k4K));
     }},
    {"3.3, Table 3",
     "On Image most models overfit (judged: training accuracy is 20 points above test, for all).",
     [](auto& e) { return all_above(all_models(), 20, on_image(e, Analysed::kGap, "points")); }},
    {"D, Table 5", "Linformer converges the fastest on Image (judged at 35 %).",
     [](auto& e) {
       return worst("linformer", all_models(), on_image(e, Analysed::kStepsTo35, "steps"));
     }},
    {"D, Table 5", "Longformer, Sinkhorn and BigBird follow it (judged at 35 %).",
     [](auto& e) {
       return pairs(without(all_models(), {"linformer", "longformer", "sinkhorn", "bigbird"}),
                    {"longformer", "sinkhorn", "bigbird"},
                    on_image(e, Analysed::kStepsTo35, "steps"));
     }},
    {"D, Table 5", "Reformer is the slowest to converge on Image (judged at 35 %).",
     [](auto& e) {
       return best("reformer", all_models(), on_image(e, Analysed::kStepsTo35, "steps"));
     }},
    {"2.3, Figure 2",
     "The required attention span is rather high on all tasks (judged: above a tenth of the "
     "length; a uniform one is a third).",
     [](auto& e) {
       Comparisons comparisons;
       for (int i = 0; i < kNumScoredTasks; ++i) {
         const auto task = static_cast<PaperTask>(i);
         comparisons.push_back({of_transformer(e, Analysed::kSpan, task), 0.1,
                                std::string(paper_task_title(task)), "limit", "of the length"});
       }
       return comparisons;
     }},
    {"A.2, Figure 4",
     "Grays that are nearer have more similar embeddings (judged: similarity falls with distance).",
     [](auto& e) {
       return Comparisons{
           {0.0, of_transformer(e, Analysed::kGrayCorrelation), "limit", "correlation", ""}};
     }},
    {"A.2, Figure 4",
     "Closeness in a column of the image is kept better by the position embeddings than closeness "
     "in a row.",
     [](auto& e) {
       return Comparisons{
           {of_transformer(e, Analysed::kVerticalLead), 0.0, "column less row", "limit", ""}};
     }},
};

}  // namespace

std::span<const Claim> paper_claims() { return kClaims; }

}  // namespace lra::report
