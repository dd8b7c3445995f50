// The sentences of the paper, as comparisons. "Above" means the higher figure: of a claim about
// what is small or slow the sides are swapped.
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "report/claims.h"

namespace lra::report {
namespace {

using Names = std::vector<std::string_view>;
using Comparisons = std::vector<Comparison>;

Names all_models() {
  Names names;
  for (const PaperModel& model : paper_models()) names.push_back(model.name);
  return names;
}

// Those of Tables 2 and 4.
Names timed_models() {
  Names names;
  for (const PaperTraining& model : paper_training()) names.push_back(model.name);
  return names;
}

Names without(Names names, std::initializer_list<std::string_view> left_out) {
  std::erase_if(names, [&](std::string_view name) {
    return std::find(left_out.begin(), left_out.end(), name) != left_out.end();
  });
  return names;
}

std::string label(std::string_view model) { return std::string(paper_model(model)->label); }

// Every one of `above` against every one of `below`.
template <typename Metric>
Comparisons pairs(const Names& above, const Names& below, const Metric& metric,
                  const std::string& unit) {
  Comparisons comparisons;
  for (const std::string_view left : above) {
    for (const std::string_view right : below) {
      comparisons.push_back({metric(left), metric(right), label(left), label(right), unit});
    }
  }
  return comparisons;
}

template <typename Metric>
Comparisons all_above(const Names& models, double limit, const Metric& metric,
                      const std::string& unit) {
  Comparisons comparisons;
  for (const std::string_view model : models) {
    comparisons.push_back({metric(model), Measured{limit, 0}, label(model), "limit", unit});
  }
  return comparisons;
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

auto accuracy(const Evidence& e, PaperTask task) {
  return [&e, task](std::string_view model) { return e.accuracy(model, task); };
}
auto speed(const Evidence& e, std::string_view mode, int64_t length) {
  return [&e, mode, length](std::string_view model) { return e.speed(model, mode, length); };
}
auto memory(const Evidence& e, int64_t length) {
  return [&e, length](std::string_view model) { return e.memory(model, length); };
}

Finding scaled(Finding finding, double factor) {
  if (!finding) return finding;
  return Measured{finding->value * factor, finding->noise * factor};
}

// The best and the second on a task: each above all that come behind it.
Comparisons leaders(const Evidence& e, PaperTask task, std::string_view first,
                    std::string_view second) {
  return pairs({first}, without(all_models(), {first}), accuracy(e, task), "%") +
         pairs({second}, without(all_models(), {first, second}), accuracy(e, task), "%");
}

constexpr int64_t k1K = 1024, k2K = 2048, k3K = 3072, k4K = 4096;

Comparisons best_average(const Evidence& e) {
  return pairs({"bigbird"}, without(all_models(), {"bigbird"}), e.average, "%");
}

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
        lead = Measured{
            100 * std::max(quality->value / other_quality->value, pace->value / other_pace->value) -
                100,
            0};
      }
      comparisons.push_back(
          {lead, Measured{0, 0}, label(model) + " leads " + label(other) + " by", "limit", "%"});
    }
  }
  return comparisons;
}

Comparisons listops_ceiling(const Evidence& e) {
  return swapped(all_above(all_models(), 38, accuracy(e, PaperTask::kListops), "%"));
}
Comparisons listops_kernels(const Evidence& e) {
  return pairs({"transformer"}, {"linear_transformer", "performer"},
               accuracy(e, PaperTask::kListops), "%");
}
Comparisons text_kernels(const Evidence& e) {
  return leaders(e, PaperTask::kText, "linear_transformer", "performer");
}
Comparisons retrieval_leaders(const Evidence& e) {
  return leaders(e, PaperTask::kRetrieval, "sparse_transformer", "bigbird");
}
Comparisons image_leaders(const Evidence& e) {
  return leaders(e, PaperTask::kImage, "sparse_transformer", "performer");
}
Comparisons image_last(const Evidence& e) {
  const Names last = {"linformer", "reformer"};
  return pairs(without(all_models(), {"linformer", "reformer"}), last,
               accuracy(e, PaperTask::kImage), "%");
}
// 50 % and three standard errors of 20,000 images.
Comparisons pathfinder_learned(const Evidence& e) {
  return all_above(all_models(), two_class_chance_limit(20000), accuracy(e, PaperTask::kPathfinder),
                   "%");
}
Comparisons pathfinder_ends(const Evidence& e) {
  const auto metric = accuracy(e, PaperTask::kPathfinder);
  return pairs({"performer"}, without(all_models(), {"performer"}), metric, "%") +
         pairs(without(all_models(), {"local"}), {"local"}, metric, "%");
}
Comparisons pathx_failed(const Evidence& e) {
  return swapped(
      all_above(all_models(), two_class_chance_limit(20000), accuracy(e, PaperTask::kPathX), "%"));
}

Comparisons performer_fastest(const Evidence& e) {
  return pairs({"performer"}, without(timed_models(), {"performer"}), speed(e, "train", k4K), "x");
}
Comparisons low_rank_fast(const Evidence& e) {
  return pairs({"performer", "linformer", "linear_transformer"},
               {"transformer", "local", "reformer", "sinkhorn", "synthesizer", "bigbird"},
               speed(e, "train", k4K), "x");
}
Comparisons reformer_slow(const Evidence& e) {
  Comparisons comparisons;
  for (const int64_t length : kPaperLengths) {
    comparisons = std::move(comparisons) +
                  pairs({"transformer"}, {"reformer"}, speed(e, "train", length), "x");
  }
  return comparisons;
}
Comparisons bigbird_slow(const Evidence& e) {
  return pairs({"transformer"}, {"bigbird"}, speed(e, "train", k1K), "x") +
         pairs({"transformer"}, {"bigbird"}, speed(e, "train", k2K), "x");
}
Comparisons linformer_smallest(const Evidence& e) {
  return pairs(without(timed_models(), {"linformer"}), {"linformer"}, memory(e, k4K), "GB");
}
Comparisons linformer_tenth(const Evidence& e) {
  return {{scaled(e.memory("transformer", k4K), 0.15), e.memory("linformer", k4K),
           "15 % of the Transformer's", "Linformer", "GB"}};
}
Comparisons transformer_largest(const Evidence& e) {
  return pairs({"transformer"}, without(timed_models(), {"transformer"}), memory(e, k4K), "GB");
}
Comparisons flat_memory(const Evidence& e) {
  Comparisons comparisons;
  for (const std::string_view model : {"linformer", "performer"}) {
    comparisons.push_back({scaled(e.memory(model, k3K), 1.1), e.memory(model, k4K),
                           label(model) + " at 3K, and a tenth more,", "at 4K", "GB"});
  }
  return comparisons;
}
Comparisons slower_inference(const Evidence& e) {
  return pairs({"transformer"}, without(timed_models(), {"transformer"}), speed(e, "infer", k1K),
               "x");
}
Comparisons fast_inference(const Evidence& e) {
  return pairs({"performer", "linear_transformer", "linformer", "local"},
               {"transformer", "reformer", "sinkhorn", "synthesizer", "bigbird"},
               speed(e, "infer", k4K), "x");
}

Comparisons overfitting(const Evidence& e) { return all_above(all_models(), 20, e.gap, "points"); }
Comparisons linformer_converges(const Evidence& e) {
  return pairs(without(all_models(), {"linformer"}), {"linformer"}, e.steps_to_35, "steps");
}
Comparisons followers_converge(const Evidence& e) {
  return pairs(without(all_models(), {"linformer", "longformer", "sinkhorn", "bigbird"}),
               {"longformer", "sinkhorn", "bigbird"}, e.steps_to_35, "steps");
}
Comparisons reformer_converges(const Evidence& e) {
  return pairs({"reformer"}, without(all_models(), {"reformer"}), e.steps_to_35, "steps");
}

Comparisons wide_spans(const Evidence& e) {
  Comparisons comparisons;
  for (int i = 0; i < kNumScoredTasks; ++i) {
    const auto task = static_cast<PaperTask>(i);
    comparisons.push_back({e.span(task), Measured{0.1, 0}, std::string(paper_task_title(task)),
                           "limit", "of the length"});
  }
  return comparisons;
}
Comparisons gray_order(const Evidence& e) {
  return {{Measured{0, 0}, e.gray_correlation(), "limit", "correlation", ""}};
}
Comparisons vertical_positions(const Evidence& e) {
  return {{e.vertical_lead(), Measured{0, 0}, "column less row", "limit", ""}};
}

constinit const Claim kClaims[] = {
    {"3.5, Table 1", "BigBird has the best average.", best_average},
    {"3.5, Figure 3",
     "BigBird and Performer lie on the Pareto front of average and training speed (at 4K).",
     pareto_front},
    {"3.3", "The best models reach 37 % on ListOps (judged: none reaches 38 %).", listops_ceiling},
    {"3.3",
     "Kernel-based models do worse on ListOps (judged: Linear Transformer and Performer "
     "are below the Transformer).",
     listops_kernels},
    {"3.3", "On Text the Linear Transformer is best, the Performer second.", text_kernels},
    {"3.3", "On Retrieval the Sparse Transformer is best, BigBird second.", retrieval_leaders},
    {"3.3", "On Image the Sparse Transformer is best, the Performer second.", image_leaders},
    {"3.3", "On Image Linformer and Reformer do not do well (judged: they are the last two).",
     image_last},
    {"3.3", "All models learn Pathfinder (judged: above chance by three standard errors).",
     pathfinder_learned},
    {"3.3", "On Pathfinder the Performer is best and Local Attention worst.", pathfinder_ends},
    {"3.3, Table 1",
     "No model learns Path-X (judged: none is above chance by three standard errors).",
     pathx_failed},
    {"3.4, Table 2", "Performer is the fastest in training at 4K.", performer_fastest},
    {"3.4, Table 2",
     "Low-rank and kernel-based models are the fastest in training at 4K (judged: "
     "Local Attention, which is called fast too, is behind them).",
     low_rank_fast},
    {"3.4, Table 2", "Reformer trains more slowly than the Transformer at all lengths.",
     reformer_slow},
    {"3.5, Table 2", "BigBird trains slightly more slowly than the Transformer at 1K and 2K.",
     bigbird_slow},
    {"3.4, Table 2", "Linformer needs the least training memory at 4K.", linformer_smallest},
    {"3.4, Table 2",
     "Linformer needs about a tenth of the Transformer's memory at 4K (judged: under 15 %).",
     linformer_tenth},
    {"3.4, Table 2", "Every other model needs less memory than the Transformer at 4K.",
     transformer_largest},
    {"3.4, Table 2",
     "Linformer and Performer need about the same memory at 3K and 4K (judged: within a tenth).",
     flat_memory},
    {"C, Table 4", "In inference all models are slower than the Transformer at 1K.",
     slower_inference},
    {"C, Table 4",
     "In inference at 4K Performer, Linear Transformer, Linformer and Local Attention are the "
     "fastest.",
     fast_inference},
    {"3.3, Table 3",
     "On Image most models overfit (judged: training accuracy is 20 points above test, for all).",
     overfitting},
    {"D, Table 5", "Linformer converges the fastest on Image (judged at 35 %).",
     linformer_converges},
    {"D, Table 5", "Longformer, Sinkhorn and BigBird follow it (judged at 35 %).",
     followers_converge},
    {"D, Table 5", "Reformer is the slowest to converge on Image (judged at 35 %).",
     reformer_converges},
    {"2.3, Figure 2",
     "The required attention span is rather high on all tasks (judged: above a tenth of the "
     "length; a uniform one is a third).",
     wide_spans},
    {"A.2, Figure 4",
     "Grays that are nearer have more similar embeddings (judged: similarity "
     "falls with distance).",
     gray_order},
    {"A.2, Figure 4",
     "Closeness in a column of the image is kept better by the position "
     "embeddings than closeness in a row.",
     vertical_positions},
};

}  // namespace

std::span<const Claim> paper_claims() { return kClaims; }

}  // namespace lra::report
