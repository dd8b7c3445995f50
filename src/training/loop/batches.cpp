#include "training/loop/batches.h"

#include <algorithm>
#include <numeric>

#include "layers/on_device.h"

namespace lra::training {
namespace {

constexpr int64_t kTrimMultiple = 32;

// Valid positions of each row, and the positions that all rows get.
struct RowLengths {
  std::vector<int32_t> valid;
  int64_t length = 0;

  at::Tensor tensor_B() const { return at::tensor(valid, at::kInt); }
};

RowLengths row_lengths(const Split& split, std::span<const int64_t> indices, const TaskShape& shape,
                       bool trim) {
  RowLengths rows;
  for (const int64_t example : indices) {
    for (int64_t tower = 0; tower < shape.num_towers; ++tower) {
      rows.valid.push_back(
          static_cast<int32_t>(std::min(split.sequence_length(example, tower), shape.length)));
    }
  }
  const int64_t longest = *std::max_element(rows.valid.begin(), rows.valid.end());
  const int64_t rounded =
      std::max<int64_t>(1, (longest + kTrimMultiple - 1) / kTrimMultiple) * kTrimMultiple;
  rows.length = trim ? std::min(shape.length, rounded) : shape.length;
  return rows;
}

// Places of a batch that one position takes.
int64_t words_of(const TaskShape& shape) { return shape.values ? shape.values->channels : 1; }

}  // namespace

models::ModelInput input_of(const at::Tensor& tokens_BL, const at::Tensor& lengths_B,
                            const TaskShape& shape) {
  if (!shape.values) return {.tokens_BL = tokens_BL, .lengths_B = lengths_B};
  const ValueInput& input = *shape.values;
  const at::Tensor values = input.stored_as_float
                                ? tokens_BL.view(at::kFloat)  // their bits
                                : (tokens_BL.to(at::kFloat) - input.zero) * input.scale;
  return {.lengths_B = lengths_B, .values_BLC = values.unflatten(1, {-1, input.channels})};
}

Batch make_batch(const Split& split, std::span<const int64_t> indices, const TaskShape& shape,
                 bool trim) {
  const auto batch_size = static_cast<int64_t>(indices.size());
  const RowLengths rows = row_lengths(split, indices, shape, trim);
  const int64_t words = words_of(shape), places = rows.length * words;

  Batch batch;
  batch.input.tokens_BL = at::empty({batch_size * shape.num_towers, places}, at::kInt);
  batch.labels_B = at::empty({batch_size}, at::kLong);
  auto* tokens = batch.input.tokens_BL.mutable_data_ptr<int32_t>();
  auto* labels = batch.labels_B.mutable_data_ptr<int64_t>();
  for (int64_t b = 0; b < batch_size; ++b) {
    const int64_t example = indices[static_cast<size_t>(b)];
    labels[b] = split.label(example);
    for (int64_t tower = 0; tower < shape.num_towers; ++tower) {
      const int64_t row = b * shape.num_towers + tower;
      const std::span<int32_t> out(tokens + row * places, static_cast<size_t>(places));
      const int64_t stored = split.read_tokens(example, tower, out);
      std::fill(out.begin() + std::min(stored * words, places), out.end(), 0);
    }
  }
  if (shape.has_padding) batch.input.lengths_B = rows.tensor_B();
  batch.num_tokens = std::accumulate(rows.valid.begin(), rows.valid.end(), int64_t{0});
  batch.input = input_of(batch.input.tokens_BL, batch.input.lengths_B, shape);
  return batch;
}

models::ModelInput input_shape(const Split& split, std::span<const int64_t> indices,
                               const TaskShape& shape, bool trim) {
  const RowLengths rows = row_lengths(split, indices, shape, trim);
  const at::Tensor tokens_BL =
      at::empty({static_cast<int64_t>(rows.valid.size()), rows.length * words_of(shape)},
                at::TensorOptions(at::kInt).device(at::kMeta));
  return input_of(tokens_BL, shape.has_padding ? rows.tensor_B() : at::Tensor(), shape);
}

Batch to_device(const Batch& batch, at::Device device) {
  const auto sent = [&](const at::Tensor& t) {
    return !t.defined() || t.device() == device ? t : layers::on_device(t, device);
  };
  return {.input = {.tokens_BL = sent(batch.input.tokens_BL),
                    .lengths_B = batch.input.lengths_B,
                    .values_BLC = sent(batch.input.values_BLC),
                    .places_M = sent(batch.input.places_M)},
          .labels_B = sent(batch.labels_B),
          .num_tokens = batch.num_tokens};
}

BatchLoader::BatchLoader(Split split, TaskShape shape, BatchOrder order, int64_t first_step,
                         const LoaderSettings& settings)
    : split_(std::move(split)),
      shape_(shape),
      order_(order),
      settings_(settings),
      wanted_step_(first_step),
      next_step_(first_step) {
  const StepParts& parts = settings.parts;
  LRA_CHECK(0 <= parts.first && 1 <= parts.count && parts.first + parts.count <= parts.of);
  LRA_CHECK_LE(parts.of, order.batch());
  LRA_CHECK_GE(settings.threads, 1);
  for (int64_t i = 0; i < std::min(settings.threads, settings.prefetch); ++i) {
    workers_.emplace_back([this] { run(); });
  }
}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

std::vector<std::vector<int64_t>> micro_batches(const BatchOrder& order, int64_t step,
                                                const StepParts& parts) {
  std::vector<int64_t> indices(static_cast<size_t>(order.batch()));
  order.fill(step, indices);
  std::vector<std::vector<int64_t>> batches;
  for (int64_t part = parts.first; part < parts.first + parts.count; ++part) {
    batches.emplace_back(indices.begin() + part * order.batch() / parts.of,
                         indices.begin() + (part + 1) * order.batch() / parts.of);
  }
  return batches;
}

std::vector<Batch> BatchLoader::load(int64_t step) const {
  std::vector<Batch> batches;
  for (const auto& indices : micro_batches(order_, step, settings_.parts)) {
    Batch& batch = batches.emplace_back(make_batch(split_, indices, shape_, settings_.trim));
    if (settings_.masking) hide_positions(batch, indices, shape_, *settings_.masking, step);
  }
  return batches;
}

void BatchLoader::run() {
  for (;;) {
    int64_t step;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock,
                    [&] { return stopping_ || next_step_ < wanted_step_ + settings_.prefetch; });
      if (stopping_) return;
      step = next_step_++;
    }
    try {
      std::vector<Batch> batches = load(step);
      const std::lock_guard lock(mutex_);
      ready_.emplace(step, std::move(batches));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      stopping_ = true;
    }
    changed_.notify_all();
  }
}

std::vector<Batch> BatchLoader::next() {
  if (settings_.prefetch == 0) return load(wanted_step_++);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_.contains(wanted_step_) || failure_; });
  if (!ready_.contains(wanted_step_)) std::rethrow_exception(failure_);
  std::vector<Batch> batches = std::move(ready_.extract(wanted_step_++).mapped());
  changed_.notify_all();
  return batches;
}

}  // namespace lra::training
