#include "training/loop/masking.h"

#include "base/rng.h"
#include "training/loop/batches.h"

namespace lra::training {
namespace {

constexpr uint32_t kMaskLayer = 0xFFFE;  // apart from every encoder layer and the embedding

std::vector<int64_t> drawn_positions(uint64_t key, int64_t length, double fraction) {
  RandomStream random(key);
  std::vector<int64_t> drawn;
  for (int64_t position = 0; position < length; ++position) {
    if (random.uniform() < fraction) drawn.push_back(position);
  }
  if (drawn.empty() && length > 0) drawn.push_back(random.below(static_cast<uint32_t>(length)));
  return drawn;
}

// Tokens as they are stored, [B * L]: values go back exactly, since a float32 holds more than the
// integers up to 255.
at::Tensor stored_tokens(const models::ModelInput& input, const TaskShape& shape) {
  if (!shape.values) return input.tokens_BL.flatten();
  const ValueInput& values = *shape.values;
  LRA_CHECK(!values.stored_as_float && values.channels == 1);
  return (input.values_BLC.flatten() / values.scale + values.zero).round();
}

int64_t valid_length(const models::ModelInput& input, int64_t row) {
  return input.lengths_B.defined() ? input.lengths_B.const_data_ptr<int32_t>()[row]
                                   : input.length();
}

void label_places(Batch& batch, const tasks::Task& task) {
  models::ModelInput& input = batch.input;
  std::vector<int64_t> places, labels;
  for (int64_t row = 0; row < input.rows(); ++row) {
    const std::span<const int32_t> tokens(
        input.tokens_BL.const_data_ptr<int32_t>() + row * input.length(),
        static_cast<size_t>(valid_length(input, row)));
    for (const tasks::PlaceLabel& answer : task.place_labels(tokens)) {
      places.push_back(row * input.length() + answer.place);
      labels.push_back(answer.label);
    }
  }
  input.places_M = at::tensor(places, at::kLong);
  batch.labels_B = at::tensor(labels, at::kLong);
}

}  // namespace

void hide_positions(Batch& batch, std::span<const int64_t> examples, const TaskShape& shape,
                    const Masking& masking, int64_t step) {
  if (masking.labeled) return label_places(batch, *masking.labeled);
  models::ModelInput& input = batch.input;
  const uint64_t of_step =
      derive_key(masking.seed, RandomUse::kDropout, static_cast<uint32_t>(step), kMaskLayer);
  std::vector<int64_t> places;
  for (int64_t row = 0; row < input.rows(); ++row) {
    const auto example =
                   static_cast<uint32_t>(examples[static_cast<size_t>(row / shape.num_towers)]),
               tower = static_cast<uint32_t>(row % shape.num_towers);
    const uint64_t key = derive_key(of_step, RandomUse::kDropout, example, tower);
    for (const int64_t position :
         drawn_positions(key, valid_length(input, row), masking.fraction)) {
      places.push_back(row * input.length() + position);
    }
  }
  input.places_M = at::tensor(places, at::kLong);
  batch.labels_B = stored_tokens(input, shape)
                       .index_select(0, input.places_M)
                       .to(masking.as_values ? at::kFloat : at::kLong);
  (shape.values ? input.values_BLC : input.tokens_BL).view(-1).index_fill_(0, input.places_M, 0);
}

}  // namespace lra::training
