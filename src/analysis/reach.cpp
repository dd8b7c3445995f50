#include "analysis/reach.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lra::analysis {
namespace {

// Norm over channels of each position, float64 on the CPU: [B, L, D] -> [B L].
at::Tensor norms_of(const at::Tensor& t_BLD) {
  return t_BLD.detach().flatten(0, 1).to(at::kCPU, at::kDouble).square().sum(1).sqrt();
}

// A place of the sequence with a probability proportional to its norm; nothing if all are 0.
std::optional<int64_t> drawn_place(const double* norms, int64_t count, RandomStream& random) {
  double rest = random.uniform() * std::accumulate(norms, norms + count, 0.0);
  std::optional<int64_t> last;
  for (int64_t i = 0; i < count; ++i) {
    if (norms[i] == 0) continue;
    last = i;
    rest -= norms[i];
    if (rest < 0) break;
  }
  return last;
}

// The least distance within which kReachShare of the sum lies.
int64_t distance_within(const std::vector<double>& by_distance) {
  const double wanted = kReachShare * std::accumulate(by_distance.begin(), by_distance.end(), 0.0);
  double sum = 0;
  for (size_t d = 0; d < by_distance.size(); ++d) {
    sum += by_distance[d];
    // Equal shares sum to the threshold up to rounding.
    if (sum >= wanted * (1 - 1e-12)) return static_cast<int64_t>(d);
  }
  return 0;
}

// Shares of the sum at the distances 0, 1, 2 to 3, 4 to 7, ...
std::vector<double> in_octaves(const std::vector<double>& by_distance) {
  std::vector<double> shares;
  const double total = std::accumulate(by_distance.begin(), by_distance.end(), 0.0);
  for (size_t d = 0; d < by_distance.size(); ++d) {
    const size_t octave = d == 0 ? 0 : 1 + static_cast<size_t>(std::log2(d));
    shares.resize(octave + 1);
    shares[octave] += by_distance[d] / total;
  }
  return shares;
}

}  // namespace

ReachSums::ReachSums(const models::SequenceClassifier& model, const models::ModelConfig& config,
                     const std::string& name)
    : model_(model) {
  if (config.receptive_field > 0) {
    throw Error({.where = name,
                 .what = "sees blocks of " + std::to_string(config.receptive_field) + " tokens",
                 .expected = "model.receptive_field = 0",
                 .advice = "use a run that sees all tokens at once"});
  }
  layers_.resize(model_.encoder().blocks().size() + 1);
}

int64_t ReachSums::append_stretches(std::vector<Stretch>& to, int64_t first, int64_t rows,
                                    int64_t length, const at::Tensor& lengths_B) {
  for (int64_t row = 0; row < rows; ++row, first += length) {
    to.push_back({first, lengths_B.defined() ? lengths_B[row].item<int64_t>() : length});
  }
  return first;
}

void ReachSums::add(const models::ModelInput& input, int64_t example) {
  const at::AutoGradMode with_gradients(true);
  std::vector<std::vector<LayerCall>> calls(layers_.size() - 1);
  const ReplacedLayers guard(
      model_, [&](SequenceLayerPtr layer, size_t n) { return noted(std::move(layer), calls[n]); });
  const models::Layout layout = model_.layout(input);
  const at::Tensor x = model_.embedding().forward(input, {}, at::kFloat, layout).detach();
  x.requires_grad_(true);
  const at::Tensor y = model_.encoder().forward(x, layout, {});
  const at::Tensor scores = model_.read(y, layout, input);
  const at::Tensor f = scores.gather(1, scores.argmax(1, true)).sum();

  std::vector<at::Tensor> outputs = {y};
  for (const auto& of_layer : calls) {
    for (const LayerCall& call : of_layer) outputs.push_back(call.out_BLD);
  }
  const auto asked = torch::autograd::grad({f}, outputs, {}, /*retain_graph=*/true);
  const auto stream = [&](size_t layer) {
    return RandomStream(derive_key(0, RandomUse::kAnalysis, static_cast<uint32_t>(example),
                                   static_cast<uint32_t>(layer)));
  };
  size_t output = 1;
  for (size_t n = 0; n < calls.size(); ++n) {
    RandomStream random = stream(n);
    for (const LayerCall& call : calls[n]) {
      std::vector<Stretch> rows;
      append_stretches(rows, 0, call.in_BLD.size(0), call.in_BLD.size(1), call.lengths_B);
      add_passage(call.in_BLD, call.out_BLD, asked[output++], rows, random, layers_[n]);
    }
  }
  std::vector<Stretch> rows;
  if (layout.groups.empty()) {
    append_stretches(rows, 0, x.size(0), x.size(1), layout.padding.lengths_B);
  }
  int64_t first = 0;
  for (const models::RowGroup& group : layout.groups) {
    first = append_stretches(rows, first, group.rows, group.length, group.padding.lengths_B);
  }
  RandomStream random = stream(calls.size());
  add_passage(x, y, asked[0], rows, random, layers_.back());
}

void ReachSums::add_passage(const at::Tensor& in, const at::Tensor& out, const at::Tensor& asked,
                            const std::vector<Stretch>& sequences, RandomStream& random,
                            Histogram& to) {
  const at::Tensor norms = norms_of(asked);
  for (const Stretch& sequence : sequences) {
    for (int64_t n = 0; n < kReachPlaces; ++n) {
      const auto place =
          drawn_place(norms.const_data_ptr<double>() + sequence.first, sequence.count, random);
      if (!place) break;
      const at::Tensor of_place = at::zeros(asked.sizes(), asked.options());
      const int64_t row = sequence.first + *place;
      of_place.view({-1, asked.size(2)})[row].copy_(asked.reshape({-1, asked.size(2)})[row]);
      const auto gradient =
          torch::autograd::grad({out}, {in}, {of_place}, /*retain_graph=*/true)[0];
      add_place(norms_of(gradient), sequence, *place, to);
    }
  }
}

void ReachSums::add_place(const at::Tensor& norms, const Stretch& sequence, int64_t place,
                          Histogram& to) {
  const double* norm = norms.const_data_ptr<double>() + sequence.first;
  const double total = std::accumulate(norm, norm + sequence.count, 0.0);
  if (total == 0 || !std::isfinite(total)) return;
  const size_t most = static_cast<size_t>(sequence.count);
  if (to.gradient.size() < most) {
    to.gradient.resize(most);
    to.equal.resize(most);
  }
  for (int64_t j = 0; j < sequence.count; ++j) {
    const auto distance = static_cast<size_t>(std::abs(place - j));
    to.gradient[distance] += norm[j] / total;
    to.equal[distance] += 1 / static_cast<double>(sequence.count);
  }
}

std::vector<ReachFigures> ReachSums::figures() const {
  std::vector<ReachFigures> all;
  for (size_t n = 0; n < layers_.size(); ++n) {
    const Histogram& sums = layers_[n];
    if (sums.gradient.empty()) {
      throw Error({.where = "the gradients",
                   .what = "are 0 or not finite at all places of the examples",
                   .expected = "weights that a training has changed"});
    }
    const bool is_all = n + 1 == layers_.size();
    all.push_back({.layer = is_all ? "all layers" : "layer " + std::to_string(n),
                   .distance = distance_within(sums.gradient),
                   .equal = distance_within(sums.equal),
                   .shares = in_octaves(sums.gradient),
                   .window = {}});
  }
  return all;
}

std::string window_change(const std::string& layer) { return layer + " in windows of"; }

void set_windows(const std::vector<ChangedInput>& scores, std::vector<ReachFigures>& layers) {
  const Evaluation* own = own_score(scores);
  for (ReachFigures& layer : layers) {
    std::vector<std::pair<int64_t, double>> measured;  // tokens, accuracy
    for (const ChangedInput& c : scores) {
      if (c.change != window_change(layer.layer) || !c.score) continue;
      measured.emplace_back(std::stoll(c.value), c.score->accuracy);
    }
    std::ranges::sort(measured, std::greater<>());
    for (const auto& [tokens, accuracy] : measured) {
      if (!own || accuracy < own->accuracy - kPointLost - 1e-9) break;
      layer.window = tokens;
    }
  }
}

std::string bound_by(const training::RunConfig& run, const models::SequenceClassifier& model,
                     int64_t width) {
  if (run.mixer_spec().facts.bound_to_length) return "what " + run.model_title() + " computes";
  const models::ModelConfig& config = run.model_config;
  const auto shorter = run.mixer_spec().make(
      layers::Initializer(0, at::kMeta), run.mixer_settings,
      {.model_dim = config.embed_dim,
       .attention = {.heads = config.heads, .head_dim = config.qkv_dim / config.heads},
       .max_length = width + (config.pooling == "cls" ? 1 : 0)});
  const auto own = model.encoder().blocks()[0]->mixer().named_parameters();
  for (const auto& item : shorter->named_parameters()) {
    if (item.value().sizes() != own[item.key()].sizes()) return item.key();
  }
  return "";
}

}  // namespace lra::analysis
