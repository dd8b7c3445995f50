#include "kernels/attention/attention.h"

#include <type_traits>

#include "base/error.h"
#include "kernels/choice.h"

namespace lra::kernels {
namespace {

// Checks the arguments of a bias and of weights without a softmax.
template <typename Args>
void check_scores(const AttentionProblem& problem, const Args& args) {
  if (args.bias.data == nullptr && problem.weights == AttentionWeights::kSoftmax) return;
  LRA_CHECK(problem.visible.runs == nullptr);
  LRA_CHECK(problem.scale > 0);
}

}  // namespace

template <typename T>
void attention_forward(const AttentionProblem& problem, const AttentionForward<T>& args) {
  check_scores(problem, args);
  if constexpr (std::is_same_v<T, float>) {
    LRA_RETURN_CALL(choose(Op::kAttentionForward), attention_forward(problem, args));
  } else if constexpr (std::is_same_v<T, Bf16>) {
    const Isa isa = choose(Op::kAttentionForwardBf16);
    LRA_RETURN_PAIRS_CALL(isa, attention_forward(problem, args));
  } else {
    ref::attention_forward(problem, args);
  }
}

template <typename T>
void attention_backward(const AttentionProblem& problem, const AttentionBackward<T>& args) {
  LRA_CHECK_EQ(args.bias.data != nullptr, args.grad_bias.data != nullptr);
  LRA_CHECK_EQ(args.bias.is_relative(), args.grad_bias.is_relative());
  LRA_CHECK(problem.weights == AttentionWeights::kSoftmax || args.grad_logsumexp == nullptr);
  check_scores(problem, args);
  if constexpr (std::is_same_v<T, float>) {
    LRA_RETURN_CALL(choose(Op::kAttentionBackward), attention_backward(problem, args));
  } else if constexpr (std::is_same_v<T, Bf16>) {
    const Isa isa = choose(Op::kAttentionBackwardBf16);
    LRA_RETURN_PAIRS_CALL(isa, attention_backward(problem, args));
  } else {
    ref::attention_backward(problem, args);
  }
}

template void attention_forward<float>(const AttentionProblem&, const AttentionForward<float>&);
template void attention_forward<Bf16>(const AttentionProblem&, const AttentionForward<Bf16>&);
template void attention_forward<double>(const AttentionProblem&, const AttentionForward<double>&);
template void attention_backward<float>(const AttentionProblem&, const AttentionBackward<float>&);
template void attention_backward<Bf16>(const AttentionProblem&, const AttentionBackward<Bf16>&);
template void attention_backward<double>(const AttentionProblem&, const AttentionBackward<double>&);

}  // namespace lra::kernels
