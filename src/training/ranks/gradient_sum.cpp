#include "training/ranks/gradient_sum.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace lra::training {

struct GradientSum::Hook : torch::autograd::PostAccumulateGradHook {
  Hook(GradientSum& owner, size_t part) : owner(owner), part(part) {}
  void operator()(const at::Tensor&) override { owner.complete(part); }
  GradientSum& owner;
  const size_t part;
};

GradientSum::GradientSum(FlatParameters& parameters, Ranks& ranks, int64_t piece_bytes)
    : parameters_(parameters),
      ranks_(ranks),
      piece_numbers_(piece_bytes / static_cast<int64_t>(parameters.gradients.element_size())) {
  LRA_CHECK_GT(piece_numbers_, 0);
  if (ranks.count() == 1) return;
  for (int64_t end = parameters.gradients.numel(); end > 0; end -= piece_numbers_) {
    const int64_t begin = std::max<int64_t>(0, end - piece_numbers_);
    pieces_.push_back(parameters.gradients.narrow(0, begin, end - begin));
  }
  parts_of_piece_.resize(pieces_.size());
  const auto& parts = parameters.parts();
  part_is_complete_.resize(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t piece = first_piece(i); piece <= last_piece(i); ++piece) ++parts_of_piece_[piece];
    torch::autograd::impl::set_post_acc_grad_hooks(parameters.tensor(i),
                                                   std::make_unique<Hook>(*this, i));
  }
}

GradientSum::~GradientSum() {
  if (ranks_.count() == 1) return;
  for (size_t i = 0; i < parameters_.parts().size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_.tensor(i), nullptr);
  }
}

size_t GradientSum::piece_of(int64_t number) const {
  return static_cast<size_t>((parameters_.gradients.numel() - 1 - number) / piece_numbers_);
}

size_t GradientSum::first_piece(size_t part) const {
  const FlatParameters::Part& p = parameters_.parts()[part];
  return piece_of(p.offset + p.count - 1);
}

size_t GradientSum::last_piece(size_t part) const {
  return piece_of(parameters_.parts()[part].offset);
}

void GradientSum::begin() {
  if (ranks_.count() == 1) return;
  incomplete_ = parts_of_piece_;
  std::fill(part_is_complete_.begin(), part_is_complete_.end(), false);
  num_sent_ = 0;
  is_watching_ = true;
}

void GradientSum::complete(size_t part) {
  if (!is_watching_) return;
  // A gradient that grows after it was sent would be wrong on all ranks, and alike.
  LRA_CHECK(!part_is_complete_[part]);
  part_is_complete_[part] = true;
  for (size_t piece = first_piece(part); piece <= last_piece(part); ++piece) --incomplete_[piece];
  while (num_sent_ < pieces_.size() && incomplete_[num_sent_] == 0) send_next();
}

void GradientSum::end() {
  if (ranks_.count() == 1) return;
  is_watching_ = false;
  while (num_sent_ < pieces_.size()) send_next();  // of parameters without a gradient in this step
}

void GradientSum::send_next() { ranks_.begin_sum(pieces_[num_sent_++]); }

}  // namespace lra::training
