// Every mixer learns, and comes back from a file by the names of its tensors.
#include <cstring>

#include "io/safetensors.h"
#include "io/toml.h"
#include "mixers/every_mixer_test.h"
#include "ops/adam.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// Adam over parameters that are moved into one flat array.
class FlatAdam {
 public:
  FlatAdam(const std::vector<Tensor>& parameters, double learning_rate)
      : learning_rate_(learning_rate) {
    const at::NoGradGuard no_grad;
    std::vector<Tensor> flattened;
    for (const Tensor& p : parameters) flattened.push_back(p.detach().flatten());
    flat_ = at::cat(flattened);
    for (Tensor* t : {&gradients_, &m_, &v_}) *t = at::zeros_like(flat_);
    int64_t offset = 0;
    for (Tensor p : parameters) {
      p.set_data(flat_.narrow(0, offset, p.numel()).view(p.sizes()));
      p.mutable_grad() = gradients_.narrow(0, offset, p.numel()).view(p.sizes());
      offset += p.numel();
    }
  }
  void step() {
    ops::adam_step(flat_, gradients_, m_, v_, {.learning_rate = learning_rate_}, steps_++, 1);
    gradients_.zero_();
  }

 private:
  double learning_rate_;
  int64_t steps_ = 0;
  Tensor flat_, gradients_, m_, v_;
};

// Embedding, only the mixer (no residual around it), mean over tokens, linear classifier.
class TinyModel : public torch::nn::Module {
 public:
  static constexpr int64_t kVocabulary = 10, kLength = 20, kClasses = 4;

  TinyModel(const LayerSpec& spec, const ConfigTable& config) {
    const LayerShape shape{
        .model_dim = 16, .attention = {.heads = 2, .head_dim = 8}, .max_length = kLength};
    const layers::Initializer init(3);
    embedding_ = register_parameter("embedding",
                                    init.of("embedding").normal({kVocabulary, shape.model_dim}, 1));
    position_ =
        register_parameter("position", init.of("position").normal({kLength, shape.model_dim}, 0.1));
    mixer_ = register_module("mixer", spec.make(init.of("mixer"), config, shape));
    head_ = register_parameter("head", init.of("head").lecun(kClasses, shape.model_dim));
  }
  Tensor forward(const Tensor& tokens_BL) const {
    const Tensor x_BLD = at::embedding(embedding_, tokens_BL) + position_;
    return at::linear(mixer_->forward(x_BLD, {}).mean(1), head_);
  }

 private:
  Tensor embedding_, position_, head_;
  std::shared_ptr<SequenceLayer> mixer_;
};

TEST_P(EveryMixer, LearnsEightExamplesByHeart) {
  constexpr int64_t kExamples = 8, kMaxSteps = 400;
  Tensor tokens = at::empty({kExamples, TinyModel::kLength}, at::kLong);
  RandomStream stream(11);
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.mutable_data_ptr<int64_t>()[i] = stream.below(TinyModel::kVocabulary);
  }
  const Tensor labels = at::arange(kExamples, at::kLong) % TinyModel::kClasses;
  TinyModel model(*GetParam(), parse_toml(conformance_.config, "test settings"));
  FlatAdam adam(model.parameters(), 0.01);
  double loss = 1;
  for (int64_t step = 0; step < kMaxSteps && loss >= 0.05; ++step) {
    const Tensor value = at::cross_entropy_loss(model.forward(tokens), labels);
    loss = value.item<double>();
    value.backward();
    adam.step();
  }
  EXPECT_LT(loss, 0.05);
}

std::vector<std::pair<std::string, Tensor>> state_of(const SequenceLayer& mixer) {
  std::vector<std::pair<std::string, Tensor>> state;
  for (const auto& item : mixer.named_parameters()) state.emplace_back(item.key(), item.value());
  for (const auto& item : mixer.named_buffers()) state.emplace_back(item.key(), item.value());
  return state;
}

void save(const SequenceLayer& mixer, const std::string& path) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : state_of(mixer)) {
    LRA_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat);
    views.push_back({.name = name,
                     .dtype = Dtype::kF32,
                     .shape = tensor.sizes().vec(),
                     .data = {static_cast<const std::byte*>(tensor.const_data_ptr()),
                              static_cast<size_t>(tensor.nbytes())}});
  }
  write_safetensors(path, views);
}

void load(const SequenceLayer& mixer, const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  for (const auto& [name, tensor] : state_of(mixer)) {
    const TensorView* view = file.find(name);
    LRA_CHECK(view != nullptr && view->data.size() == tensor.nbytes());
    std::memcpy(tensor.mutable_data_ptr(), view->data.data(), view->data.size());
  }
}

TEST_P(EveryMixer, ComesBackFromAFileByName) {
  const std::string path =
      testing::TempDir() + "mixer_" + std::string(GetParam()->name) + ".safetensors";
  const at::NoGradGuard no_grad;
  const auto first = tested(17).make(at::kFloat, 1), second = tested(17).make(at::kFloat, 2);
  if (state_of(*first).empty()) GTEST_SKIP() << "has no tensors";
  const Tensor x = ops::random_tensor({3, 17, 6}, 5, at::kFloat);
  const Tensor expected = first->forward(x, {});
  EXPECT_FALSE(at::equal(second->forward(x, {}), expected));
  save(*first, path);
  load(*second, path);
  EXPECT_TRUE(at::equal(second->forward(x, {}), expected));
  std::remove(path.c_str());
}

TEST_P(EveryMixer, IsMadeFromItsSeed) {
  const auto state = [&](uint64_t seed) { return state_of(*tested(17).make(at::kFloat, seed)); };
  const auto first = state(1), again = state(1), other = state(2);
  if (first.empty()) GTEST_SKIP() << "has no tensors";
  size_t same = 0;  // some tensors are not drawn
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(at::equal(first[i].second, again[i].second)) << first[i].first;
    same += at::equal(first[i].second, other[i].second);
  }
  EXPECT_LT(same, first.size());
}

}  // namespace
}  // namespace lra::mixers
