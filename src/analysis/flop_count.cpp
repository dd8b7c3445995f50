#include "analysis/flop_count.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <string_view>
#include <vector>

#include "analysis/operator_calls.h"
#include "ops/convolution_silu.h"

namespace lra::analysis {
namespace {

using Inputs = OperatorInputs;

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
  return 2 * (in[0].toTensor().size(-1) + in[2].toTensor().size(-1)) * stack.at(0).toInt();
}

// Counts, for qkv [..., 3, H, E], for each row of a head: the summary of keys and values, its
// product with the query, and the denominator.
int64_t feature_attention_flops(Inputs in) {
  const at::Tensor& qkv = in[0].toTensor();
  return qkv.numel() / 3 * (4 * qkv.size(-1) + 2);
}

// Counts, for each mode of a channel, the multiply-adds of the state and of its contribution to the
// output: six with complex numbers, two with real ones. a is [planes, modes, D], c [directions,
// ...].
int64_t diagonal_scan_flops(Inputs in) {
  const at::Tensor &a = in[1].toTensor(), &c = in[2].toTensor();
  return in[0].toTensor().numel() * a.size(1) * c.size(0) * (a.size(0) == 2 ? 12 : 4);
}

// A complex multiply-add for each state and direction. in: v [B, L, 2, P], a, bidirectional.
int64_t state_scan_flops(Inputs in) {
  return in[0].toTensor().numel() / 2 * (in[2].toBool() ? 2 : 1) * 8;
}

// For each state, two if it is complex: its step's product with the rate, the state's and the
// output's multiply-adds, the input's product, one for the exponential. in: x, dt, a, b.
int64_t selective_scan_flops(Inputs in) {
  return in[0].toTensor().numel() * in[3].toTensor().size(3) * 7;
}

// For each element of a head's state: its decay, and the multiply-adds of writing and reading, with
// the delta rule those of reading before it is written as well. in: q, k, v, log_decay, beta.
int64_t matrix_scan_flops(Inputs in) {
  const int64_t elements = in[0].toTensor().numel() * in[2].toTensor().size(3);
  return elements * (in[4].isNone() ? 5 : 7);
}

int64_t gated_scan_flops(Inputs in) { return 2 * in[0].toTensor().numel(); }

// A multiply-add for each lag, also where transforms take less. in: x, mask, kernel [D, K].
int64_t convolution_flops(Inputs in) {
  return 2 * in[0].toTensor().numel() * in[2].toTensor().size(1);
}

// A wide one is computed by lra::convolution, which is counted.
int64_t short_convolution_flops(Inputs in) {
  return in[2].toTensor().size(1) > ops::kMostFusedLags ? 0 : convolution_flops(in);
}

struct CountedOperator {
  std::string_view name;
  int64_t (*flops)(Inputs);
};

// All products of all mixers and models are one of these, except the rotations of Reformer's
// hashes, which have no backward pass and are left out.
constexpr std::array kCounted = {
    CountedOperator{"lra::linear", linear_flops},
    CountedOperator{"lra::linear_gelu", linear_flops},
    CountedOperator{"lra::product", product_flops},
    CountedOperator{"lra::sum_of_outer_products", outer_flops},
    CountedOperator{"lra::attention_forward", attention_flops},
    CountedOperator{"lra::diagonal_scan", diagonal_scan_flops},
    CountedOperator{"lra::state_scan", state_scan_flops},
    CountedOperator{"lra::selective_scan", selective_scan_flops},
    CountedOperator{"lra::gated_scan", gated_scan_flops},
    CountedOperator{"lra::matrix_scan", matrix_scan_flops},
    CountedOperator{"lra::convolution", convolution_flops},
    CountedOperator{"lra::convolution_silu", short_convolution_flops},
    CountedOperator{"lra::packed_feature_attention_forward", feature_attention_flops}};

}  // namespace

int64_t forward_flops(const models::SequenceClassifier& model, const models::ModelInput& input) {
  int64_t flops = 0;
  listen_to_operators([&] { (void)model.forward(input, {}); },
                      [&](std::string_view name, Inputs inputs) {
                        for (const CountedOperator& op : kCounted) {
                          if (name == op.name) flops += op.flops(inputs);
                        }
                      });
  return flops;
}

}  // namespace lra::analysis
