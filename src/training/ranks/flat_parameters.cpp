#include "training/ranks/flat_parameters.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/adam.h"

namespace lra::training {

FlatParameters::FlatParameters(std::vector<models::Parameter> parameters,
                               const std::vector<models::Parameter>& buffers, FlatUse use)
    : tensors_(std::move(parameters)), num_parameters_(tensors_.size()) {
  LRA_CHECK(!tensors_.empty());
  std::ranges::stable_sort(tensors_, {}, &models::Parameter::group);
  for (const models::Parameter& buffer : buffers) {
    const bool fits = buffer.tensor.scalar_type() == tensors_[0].tensor.scalar_type();
    (fits ? tensors_ : other_buffers_).push_back(buffer);
  }
  lay_out();
  const int64_t trained = segments_.back().offset + segments_.back().count;
  const auto options = tensors_[0].tensor.options().requires_grad(false);
  values = at::empty({parts_.back().offset + parts_.back().count}, options);
  if (use == FlatUse::kTraining) {
    for (at::Tensor* flat : {&gradients, &m, &v}) *flat = at::zeros({trained}, options);
  }
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    at::Tensor& tensor = tensors_[i].tensor;
    const at::Tensor view = values.narrow(0, part.offset, part.count).view(part.shape);
    view.copy_(tensor);
    tensor.set_data(view);
    if (use == FlatUse::kInference || i >= num_parameters_) continue;
    tensor.mutable_grad() = gradient_view(i);
  }
}

void FlatParameters::lay_out() {
  int64_t total = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto& [name, tensor, group] = tensors_[i];
    parts_.push_back({name, tensor.sizes().vec(), total, tensor.numel()});
    if (i < num_parameters_) {
      if (segments_.empty() || segments_.back().group != group) {
        segments_.push_back({group, total, 0});
      }
      segments_.back().count += tensor.numel();
    }
    total += tensor.numel();
  }
}

std::vector<models::Parameter> FlatParameters::saved() const {
  std::vector<models::Parameter> all = tensors_;
  all.insert(all.end(), other_buffers_.begin(), other_buffers_.end());
  return all;
}

std::vector<at::Tensor> FlatParameters::state() const {
  std::vector<at::Tensor> all = {values, m, v};
  for (const models::Parameter& buffer : other_buffers_) all.push_back(buffer.tensor);
  return all;
}

// A sum over all weights and buffers is finite only when every one of them is.
bool FlatParameters::weights_are_finite() const {
  return std::isfinite(ops::gradient_norm(values));
}

void FlatParameters::copy_weights(const FlatParameters& from) {
  LRA_CHECK_EQ(other_buffers_.size(), from.other_buffers_.size());
  values.copy_(from.values);
  for (size_t i = 0; i < other_buffers_.size(); ++i) {
    other_buffers_[i].tensor.copy_(from.other_buffers_[i].tensor);
  }
}

void FlatParameters::zero_gradients() {
  for (size_t i = 0; i < num_parameters_; ++i) {
    if (parts_[i].count == 0) continue;  // an empty tensor has no address
    LRA_CHECK_EQ(
        tensors_[i].tensor.grad().data_ptr(),
        static_cast<char*>(gradients.data_ptr()) + parts_[i].offset * gradients.element_size());
  }
  gradients.zero_();
}

at::Tensor FlatParameters::gradient_view(size_t part) const {
  return gradients.narrow(0, parts_[part].offset, parts_[part].count).view(parts_[part].shape);
}

void FlatParameters::release_gradients() {
  for (size_t i = 0; i < num_parameters_; ++i) tensors_[i].tensor.mutable_grad().reset();
}

void FlatParameters::gather_gradients() {
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < num_parameters_; ++i) {
    at::Tensor& gradient = tensors_[i].tensor.mutable_grad();
    all.push_back(gradient.defined() ? gradient.flatten()
                                     : at::zeros({parts_[i].count}, gradients.options()));
    gradient = gradient_view(i);
  }
  at::cat_out(gradients, all);
}

}  // namespace lra::training
