#include "analysis/flop_count.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <array>
#include <memory>
#include <string_view>
#include <vector>

namespace lra::analysis {
namespace {

const c10::DebugInfoKind kSlot = c10::DebugInfoKind::PRODUCER_INFO;

struct Count : c10::DebugInfoBase {
  int64_t flops = 0;
};

using Inputs = c10::ArrayRef<const c10::IValue>;

// x [..., K] times weight [N, K].
int64_t linear_flops(Inputs in) { return 2 * in[0].toTensor().numel() * in[1].toTensor().size(0); }

// a [..., M, K] times b [..., K, N], leading sizes broadcast.
int64_t product_flops(Inputs in) {
  const at::Tensor &a = in[0].toTensor(), &b = in[1].toTensor();
  const auto items =
      at::infer_size(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
  return 2 * c10::multiply_integers(items) * a.size(-2) * a.size(-1) * b.size(-1);
}

// The sum over m of a[m] b[m]^T.
int64_t outer_flops(Inputs in) { return 2 * in[0].toTensor().numel() * in[1].toTensor().size(-1); }

int64_t attention_flops(Inputs in) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("lra::attention_pairs", "");
  std::vector<c10::IValue> stack(in.begin(), in.end());
  op.callBoxed(&stack);
  return 4 * in[0].toTensor().size(-1) * stack.at(0).toInt();
}

struct CountedOperator {
  std::string_view name;
  int64_t (*flops)(Inputs);
};

// All products of all mixers and models are one of these.
constexpr std::array kCounted = {CountedOperator{"lra::linear", linear_flops},
                                 CountedOperator{"lra::linear_gelu", linear_flops},
                                 CountedOperator{"lra::product", product_flops},
                                 CountedOperator{"lra::sum_of_outer_products", outer_flops},
                                 CountedOperator{"lra::attention_forward", attention_flops}};

std::unique_ptr<at::ObserverContext> count_call(const at::RecordFunction& call) {
  auto* count = static_cast<Count*>(c10::ThreadLocalDebugInfo::get(kSlot));
  const std::string_view name = call.name();
  for (const CountedOperator& op : kCounted) {
    if (count && name == op.name) count->flops += op.flops(call.inputs());
  }
  return nullptr;
}

// Listens to this thread's operators while it lives.
class Listener {
 public:
  Listener()
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(count_call)
                                               .needsInputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {}
  ~Listener() { at::removeCallback(handle_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace

int64_t forward_flops(const models::SequenceClassifier& model, const models::TokenBatch& input) {
  const auto count = std::make_shared<Count>();
  const c10::DebugInfoGuard slot(kSlot, count);
  // With its gradient an operator would be heard twice, from outside and from within.
  const at::AutoDispatchBelowADInplaceOrView below;
  const Listener listener;
  (void)model.forward(input, {});
  return count->flops;
}

}  // namespace lra::analysis
