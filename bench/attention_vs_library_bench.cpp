// Attention, forward and backward, against what it is put together from in LibTorch, in float32 on
// all threads. B 4, H 4, E 64, L 4096: the paper's longest text.
//
//   exact: with dropout 0.1, against matmul, softmax, dropout, matmul
//   features: elu(x) + 1 of queries and keys, against elu, two matmuls and a quotient
//
// Time: interleaved, medians. Memory: each side runs once in a process of its own, and the growth
// of its peak resident size over what it holds with the inputs ready is counted. Targets of exact
// attention: 3 times faster in less than a tenth of the memory.
//
//   bench_attention                     both sides of both kinds
//   bench_attention memory exact ours   what the child processes run: prints bytes
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/resources.h"
#include "bench/side_by_side.h"
#include "ops/attention/attention.h"
#include "ops/attention/feature_attention.h"
#include "ops/libtorch.h"

namespace lra {
namespace {

using at::Tensor;

constexpr int64_t kBatch = 4, kLength = 4096, kHeads = 4, kHeadDim = 64;
constexpr double kRate = 0.1, kEps = 1e-6;
constexpr int kRounds = 5;

struct Inputs {
  Tensor qkv = at::randn({kBatch, kLength, 3, kHeads, kHeadDim}).set_requires_grad(true);
  Tensor grad = at::randn({kBatch, kLength, kHeads, kHeadDim});

  void backward(const Tensor& out) const { torch::autograd::grad({out}, {qkv}, {grad}); }
  // Each [B, H, L, E].
  std::vector<Tensor> heads_first() const { return qkv.permute({2, 0, 3, 1, 4}).unbind(0); }
};

Tensor our_exact(const Inputs& in) {
  return ops::packed_attention(in.qkv, {}, {}, {.rate = kRate, .key = 1});
}

Tensor library_exact(const Inputs& in) {
  const auto parts = in.heads_first();
  const Tensor q = parts[0] / std::sqrt(double{kHeadDim});
  const Tensor weights =
      at::dropout(at::matmul(q, parts[1].transpose(2, 3)).softmax(-1), kRate, true);
  return at::matmul(weights, parts[2]).transpose(1, 2);
}

Tensor our_features(const Inputs& in) {
  return ops::packed_feature_attention(in.qkv, {}, {.eps = kEps});
}

Tensor library_features(const Inputs& in) {
  const auto parts = in.heads_first();
  const Tensor q = at::elu(parts[0]) + 1, k = at::elu(parts[1]) + 1;
  const Tensor sums = at::matmul(q, k.sum(2).unsqueeze(-1)) + kEps;
  return (at::matmul(q, at::matmul(k.transpose(2, 3), parts[2])) / sums).transpose(1, 2);
}

struct Kind {
  std::string name;
  Tensor (*ours)(const Inputs&);
  Tensor (*library)(const Inputs&);
};
const Kind kKinds[] = {{"exact", our_exact, library_exact},
                       {"features", our_features, library_features}};

int print_memory(const Kind& kind, const std::string& side) {
  const Inputs in;
  // If the kernel does not allow the reset, the peak so far is still that of the inputs.
  reset_peak_resident_bytes();
  const int64_t before = peak_resident_bytes();
  in.backward(side == "ours" ? kind.ours(in) : kind.library(in));
  std::printf("%ld\n", peak_resident_bytes() - before);
  return 0;
}

double measured_memory(const std::string& program, const Kind& kind, const char* side) {
  const std::string command = "'" + program + "' memory " + kind.name + " " + side;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  LRA_CHECK(pipe != nullptr);
  double bytes = 0;
  LRA_CHECK_EQ(std::fscanf(pipe.get(), "%lf", &bytes), 1);
  return bytes;
}

void compare(const std::string& program, const Kind& kind) {
  std::printf("%s attention, B %ld H %ld E %ld L %ld, float32, %d threads\n", kind.name.c_str(),
              kBatch, kHeads, kHeadDim, kLength, at::get_num_threads());
  const double ours_bytes = measured_memory(program, kind, "ours");
  const double library_bytes = measured_memory(program, kind, "library");
  std::printf("peak memory beyond the inputs: ours %.0f MiB, library %.0f MiB, %.3f of it\n",
              ours_bytes / 1048576, library_bytes / 1048576, ours_bytes / library_bytes);
  const Inputs in;
  const auto times = side_by_side(
      kRounds, [&] { in.backward(kind.ours(in)); }, [&] { in.backward(kind.library(in)); });
  std::printf("forward + backward: ours %.3f s, library %.3f s, %.2fx\n", times.ours_s,
              times.theirs_s, times.ratio());
}

}  // namespace
}  // namespace lra

int main(int argc, char** argv) {
  at::manual_seed(1);
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (const lra::Kind& kind : lra::kKinds) {
    if (words.empty()) lra::compare(argv[0], kind);
    for (const char* side : {"ours", "library"}) {
      if (words == std::vector<std::string>{"memory", kind.name, side}) {
        return lra::print_memory(kind, side);
      }
    }
  }
  return words.empty() ? 0 : 2;
}
