#include "training/flat_parameters.h"

#include "base/error.h"

namespace lra::training {

FlatParameters::FlatParameters(std::vector<std::pair<std::string, at::Tensor>> parameters,
                               FlatUse use)
    : parameters_(std::move(parameters)) {
  LRA_CHECK(!parameters_.empty());
  int64_t total = 0;
  for (const auto& [name, tensor] : parameters_) {
    parts_.push_back({name, tensor.sizes().vec(), total, tensor.numel()});
    total += tensor.numel();
  }
  const auto options = parameters_[0].second.options().requires_grad(false);
  values = at::empty({total}, options);
  if (use == FlatUse::kTraining) {
    for (at::Tensor* flat : {&gradients, &m, &v}) *flat = at::zeros({total}, options);
  }
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    at::Tensor& tensor = parameters_[i].second;
    at::Tensor view = values.narrow(0, part.offset, part.count).view(part.shape);
    view.copy_(tensor);
    tensor.set_data(view);
    if (use == FlatUse::kInference) continue;
    tensor.mutable_grad() = gradients.narrow(0, part.offset, part.count).view(part.shape);
  }
}

void FlatParameters::zero_gradients() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    LRA_CHECK_EQ(
        parameters_[i].second.grad().data_ptr(),
        static_cast<char*>(gradients.data_ptr()) + parts_[i].offset * gradients.element_size());
  }
  gradients.zero_();
}

}  // namespace lra::training
