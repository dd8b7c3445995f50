// Exact attention with dropout 0.1, forward and backward, against matmul, softmax, dropout, matmul
// in LibTorch, in float32 on all threads. B 4, H 4, E 64, L 4096: the paper's longest text.
//
// Time: interleaved, medians. Memory: each side runs once in a process of its own, and the growth
// of its peak resident size over what it holds with the inputs ready is counted. Targets: 3 times
// faster in less than a tenth of the memory.
//
//   bench_attention               both
//   bench_attention memory ours   what the child processes run: prints bytes
#include <torch/torch.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/resources.h"
#include "bench/side_by_side.h"
#include "ops/attention.h"

namespace lra {
namespace {

using at::Tensor;

constexpr int64_t kBatch = 4, kLength = 4096, kHeads = 4, kHeadDim = 64;
constexpr double kRate = 0.1;
constexpr int kRounds = 5;

struct Inputs {
  Tensor q = make(), k = make(), v = make();
  Tensor grad = at::randn({kBatch, kLength, kHeads, kHeadDim});

  static Tensor make() {
    return at::randn({kBatch, kLength, kHeads, kHeadDim}).set_requires_grad(true);
  }
  void backward(const Tensor& out) const { torch::autograd::grad({out}, {q, k, v}, {grad}); }
};

void run_ours(const Inputs& in) {
  in.backward(ops::attention(in.q, in.k, in.v, {}, {}, {.rate = kRate, .key = 1}));
}

void run_library(const Inputs& in) {
  const auto heads_first = [](const Tensor& t) { return t.transpose(1, 2); };
  const Tensor q = heads_first(in.q) / std::sqrt(double{kHeadDim});
  const Tensor weights =
      at::dropout(at::matmul(q, heads_first(in.k).transpose(2, 3)).softmax(-1), kRate, true);
  in.backward(at::matmul(weights, heads_first(in.v)).transpose(1, 2));
}

int print_memory(const std::string& side) {
  const Inputs in;
  // Where the kernel does not allow the reset, the peak so far is still that of the inputs.
  reset_peak_resident_bytes();
  const int64_t before = peak_resident_bytes();
  side == "ours" ? run_ours(in) : run_library(in);
  std::printf("%ld\n", peak_resident_bytes() - before);
  return 0;
}

double measured_memory(const std::string& program, const char* side) {
  const std::string command = "'" + program + "' memory " + side;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  LRA_CHECK(pipe != nullptr);
  double bytes = 0;
  LRA_CHECK_EQ(std::fscanf(pipe.get(), "%lf", &bytes), 1);
  return bytes;
}

void compare(const std::string& program) {
  std::printf("attention with dropout %.1f, B %ld H %ld E %ld L %ld, float32, %d threads\n", kRate,
              kBatch, kHeads, kHeadDim, kLength, at::get_num_threads());
  const double ours_bytes = measured_memory(program, "ours");
  const double library_bytes = measured_memory(program, "library");
  std::printf("peak memory beyond the inputs: ours %.0f MiB, library %.0f MiB, %.3f of it\n",
              ours_bytes / 1048576, library_bytes / 1048576, ours_bytes / library_bytes);
  const Inputs in;
  const auto times = side_by_side(
      kRounds, [&] { run_ours(in); }, [&] { run_library(in); });
  std::printf("forward + backward: ours %.2f s, library %.2f s, %.2fx\n", times.ours_s,
              times.theirs_s, times.ratio());
}

}  // namespace
}  // namespace lra

int main(int argc, char** argv) {
  at::manual_seed(1);
  if (argc == 3 && argv[1] == std::string("memory")) return lra::print_memory(argv[2]);
  lra::compare(argv[0]);
}
