#include "analysis/adapted_model.h"

#include <cmath>
#include <map>

#include "analysis/examples.h"
#include "data/contact_sheet.h"
#include "layers/on_device.h"
#include "training/run/make_model.h"

namespace lra::analysis {
namespace {

using training::LoadedRun;

constexpr const char* kPositions = "embedding.position";
constexpr const char* kStepSizes = ".mixer.dt";  // logarithms, of S4D and S5

[[noreturn]] void refuse_length(const LoadedRun& run, const std::string& name,
                                const std::string& advice) {
  throw BoundToLength({.where = run.folder,
                       .what = name + " belongs to sequences of " +
                               std::to_string(run.task->shape().length) + " tokens",
                       .expected = "a model whose parameters do not depend on the length",
                       .advice = advice});
}

// Maps each position of the longer sequence to the one in proportion; CLS stays in front.
at::Tensor stretched_places(const TaskShape& from, const TaskShape& to, int64_t cls) {
  const int64_t side_from = image_side(from), side = image_side(to);
  const bool by_pixel = side_from > 0 && side > 0;
  at::Tensor places = at::empty({cls + to.length}, at::kLong);
  auto place = places.accessor<int64_t, 1>();
  for (int64_t i = 0; i < cls; ++i) place[i] = i;
  for (int64_t i = 0; i < to.length; ++i) {
    place[cls + i] =
        cls + (by_pixel ? i / side * side_from / side * side_from + i % side * side_from / side
                        : i * from.length / to.length);
  }
  return places;
}

// The step of a state space on the larger input, relative to that on the run's own: an image of
// four times as many pixels in a row is the same image, read at a quarter of the step.
double relative_step(const TaskShape& from, const TaskShape& to) {
  const int64_t side_from = image_side(from), side = image_side(to);
  const bool by_row = side_from > 0 && side > 0;
  return by_row ? static_cast<double>(side_from) / static_cast<double>(side)
                : static_cast<double>(from.length) / static_cast<double>(to.length);
}

// Parameters and buffers by name.
std::map<std::string, at::Tensor> state_of(const models::Model& model) {
  std::map<std::string, at::Tensor> state;
  for (const auto& list : {model.parameter_list(), model.buffer_list()}) {
    for (const models::Parameter& p : list) state[p.name] = p.tensor;
  }
  return state;
}

}  // namespace

void refuse_other_examples(const LoadedRun& run, const TaskShape& shape) {
  const TaskShape own = run.task->shape();
  const auto same = [&](const char* what, int64_t wanted, int64_t has) {
    if (wanted == has) return;
    throw Error({.where = run.folder,
                 .what = "was trained with " + std::to_string(has) + " " + what,
                 .expected = std::to_string(wanted),
                 .advice = "use a run of a task with the same kind of examples"});
  };
  same("token ids", shape.vocabulary, own.vocabulary);
  same("classes", shape.num_classes, own.num_classes);
  same("sequences per example", shape.num_towers, own.num_towers);
  same("real values per position", shape.values ? shape.values->channels : 0,
       own.values ? own.values->channels : 0);
}

models::SequenceClassifier adapted_model(const LoadedRun& run, const Adaptation& to) {
  training::RunConfig config = run.stored.config;
  const bool is_as_long = to.shape.length == run.task->shape().length &&
                          to.receptive_field == config.model_config.receptive_field;
  if (!is_as_long && !config.is_whole_model() && config.mixer_spec().facts.bound_to_length) {
    refuse_length(run, "what " + config.model_title() + " computes", "");
  }
  config.model_config.receptive_field = to.receptive_field;
  models::SequenceClassifier model = training::make_model(config, to.shape, run.model->device());
  const std::map<std::string, at::Tensor> weights = state_of(*run.model);
  const bool stretched = to.positions == "stretched";
  const double finer = relative_step(run.task->shape(), to.shape);
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : state_of(model)) {
    const at::Tensor& weight = weights.at(name);
    if (stretched && name.ends_with(kStepSizes)) {
      at::Tensor(parameter).copy_(weight + std::log(finer));
    } else if (weight.sizes() == parameter.sizes()) {
      at::Tensor(parameter).copy_(weight);
    } else if (name == kPositions && !stretched && parameter.size(0) < weight.size(0)) {
      at::Tensor(parameter).copy_(weight.narrow(0, 0, parameter.size(0)));
    } else if (name != kPositions) {
      refuse_length(run, name, "");
    } else if (!stretched) {
      refuse_length(run, name, "its learned positions can be stretched, not continued");
    }
  }
  const at::Tensor& positions = run.encoder().embedding().positions();
  if (stretched && positions.defined()) {
    const int64_t cls = config.model_config.pooling == "cls" ? 1 : 0;
    const at::Tensor places = stretched_places(run.task->shape(), to.shape, cls);
    model.set_positions(positions.index_select(0, layers::on_device(places, model.device())));
  }
  return model;
}

}  // namespace lra::analysis
