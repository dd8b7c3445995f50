#include "model_results.h"

#include "base/error.h"

namespace lra {
namespace {

using at::Tensor;

constexpr int64_t kExamples = 4, kLength = 40, kVocabulary = 11;

models::ModelConfig small(const char* pooling, int64_t receptive_field = 0) {
  models::ModelConfig config{.layers = 2, .heads = 2, .embed_dim = 12, .qkv_dim = 8, .mlp_dim = 20};
  config.pooling = pooling;
  config.receptive_field = receptive_field;
  return config;
}

// On the CPU: rows of different lengths, the last one of a single token.
models::ModelInput tokens_of(const Setting& s) {
  const int64_t rows = kExamples * s.num_towers;
  const Tensor places = at::arange(rows * kLength, at::kInt).view({rows, kLength});
  models::ModelInput batch{.tokens_BL = (places * 7 + places.bitwise_right_shift(3))
                                            .remainder(kVocabulary - 1)
                                            .add(1)
                                            .to(at::kInt),
                           .lengths_B = {}};
  if (!s.padded) return batch;
  batch.lengths_B = (kLength - at::arange(rows, at::kInt) * 5).clamp_min(1).to(at::kInt);
  batch.lengths_B[rows - 1] = 1;
  const Tensor valid = at::arange(kLength).unsqueeze(0).lt(batch.lengths_B.unsqueeze(1));
  batch.tokens_BL.masked_fill_(valid.logical_not(), 0);
  return batch;
}

}  // namespace

const std::vector<Setting>& model_settings() {
  static const std::vector<Setting> all = {
      {.name = "float32 with CLS", .model = small("cls")},
      {.name = "without padding and dropout",
       .model = small("mean"),
       .padded = false,
       .training = false},
      {.name = "bfloat16", .model = small("mean"), .execution = {.activations = at::kBFloat16}},
      {.name = "groups of rows",
       .model = small("cls"),
       .execution = {.group_cost = 10},
       .num_towers = 2},
      {.name = "recomputed", .model = small("cls"), .execution = {.recompute = true}},
      {.name = "two towers", .model = small("first"), .num_towers = 2},
      {.name = "bounded receptive field", .model = small("cls", 16)},
      {.name = "bounded receptive field, mean", .model = small("mean", 16), .padded = false},
  };
  return all;
}

std::vector<const char*> mixer_settings(const mixers::LayerSpec& mixer) {
  static const std::map<std::string_view, std::vector<const char*>> all = {
      {"transformer", {"", "causal = true"}},
      {"local", {"block = 8", "block = 8\ngroups = 'strided'"}},
      {"sparse_transformer",
       {"stride = 8\nsummary = 3", "stride = 8\nsummary = 3\ncausal = true\nglobal_first = true",
        "pattern = 'strided'\nstride = 5", "pattern = 'strided'\nstride = 5\ncausal = true"}},
      {"longformer",
       {"window = 6\nglobal_tokens = 2", "window = 6\ncausal = true",
        "window = 6\nglobal_tokens = 0"}},
      {"linformer", {"rank = 5"}},
      {"reformer", {"chunk = 4\nbuckets = 6", "chunk = 4\nrounds = 1\ncausal = true"}},
      {"sinkhorn", {"block = 8\niterations = 3"}},
      {"synthesizer",
       {"rank = 3", "variant = 'random'", "variant = 'dense'\ncausal = true",
        "variant = 'factorized_dense'\ncausal = true",
        "variant = 'factorized_dense'\ndot_product = true",
        "variant = 'random'\ndot_product = true"}},
      {"bigbird", {"block = 4\nrandom_blocks = 2", "block = 4\nrandom_range = 'first_1024'"}},
      {"linear_transformer", {"", "causal = true"}},
      {"performer",
       {"num_features = 7", "num_features = 7\nredraw = 1\nnorms = 'fixed'", "features = 'relu'"}},
      {"s4d",
       {"states = 6", "init = 'real'\nstates = 3\nbidirectional = false\noutput = 'half_glu1'"}},
      {"s5", {"states = 8\nblocks = 2", "states = 4\nbidirectional = false\noutput = 'half_glu2'"}},
      {"mega",
       {"ema_dim = 2\nz_dim = 3\nv_dim = 5",
        "ema_dim = 1\nz_dim = 4\nv_dim = 3\nchunk = 8\nattention = 'laplace'"}},
      {"linoss", {"states = 5", "discretization = 'imex'\nbidirectional = false\noutput = 'none'"}},
      {"lru", {"states = 5", "states = 3\nbidirectional = false\noutput = 'none'"}},
      {"mamba",
       {"states = 3\nbidirectional = false", "states = 2\nblocks = 2\nchannel_bias = true",
        "states = 2\nchannel_bias = true\ncomplex_states = true"}},
      {"mamba2",
       {"states = 3\nhead_channels = 4\nbidirectional = false",
        "states = 16\nhead_channels = 6\nexpand = 1"}},
      {"min_gru", {"", "bidirectional = false\ncandidate = 'linear'", "forget_gate = true"}},
      {"retnet",
       {"num_heads = 2\nkey_dim = 4", "num_heads = 3\nkey_dim = 2\nbidirectional = false"}},
      {"hgrn2",
       {"head_channels = 2", "head_channels = 6\nlower_bound = 0.5\nbidirectional = false"}},
      {"mlstm",
       {"num_heads = 2\nblock = 2", "num_heads = 4\nexpand = 1\nblock = 1\nbidirectional = false"}},
      {"gla", {"num_heads = 2\nrank = 3", "num_heads = 3\nbidirectional = false"}},
      {"rg_lru", {"blocks = 2", "blocks = 3\nbidirectional = false"}},
      {"gated_deltanet",
       {"num_heads = 2\nkey_dim = 16\nvalue_dim = 16",
        "decay = false\ngate = false\nbidirectional = false\nnum_heads = 3\nkey_dim = 16"}},
      {"long_conv",
       {"kernel_dropout = 0.2", "bidirectional = false\nsquash = 0.0", "width = 5",
        "kind = 'sgconv'\nscale_dim = 3"}},
      {"chordmixer", {"", "hidden = 7"}},
  };
  const auto found = all.find(mixer.name);
  return found == all.end() ? std::vector{""} : found->second;
}

std::vector<std::pair<std::string, Tensor>> results(const Setting& s,
                                                    const mixers::LayerSpec& mixer,
                                                    const ConfigTable& config, at::Device device) {
  const TaskShape shape{
      .length = kLength, .vocabulary = kVocabulary, .num_classes = 3, .num_towers = s.num_towers};
  models::Execution execution = s.execution;
  execution.device = device;
  const models::SequenceClassifier model(shape, s.model, mixer, config, 1, execution);
  models::ModelInput batch = tokens_of(s);
  batch.tokens_BL = batch.tokens_BL.to(device);
  const models::StepRandom random{.training = s.training, .seed = 5, .step = 3, .part = 0};
  const Tensor logits = model.forward(batch, random);
  const Tensor labels = at::arange(kExamples, at::kLong).remainder(3).to(device);
  const Tensor loss = at::cross_entropy_loss(logits, labels);
  loss.backward();
  LRA_CHECK(logits.device() == device);
  std::vector<std::pair<std::string, Tensor>> all = {{"logits", logits.detach().cpu()},
                                                     {"loss", loss.detach().cpu()}};
  for (const auto& [name, parameter, group] : model.parameter_list()) {
    if (!parameter.grad().defined()) continue;
    LRA_CHECK(parameter.grad().device() == device);
    all.emplace_back(name, parameter.grad().cpu());
  }
  return all;
}

}  // namespace lra
