// LinOSS (Rusch and Rus 2024, arXiv:2410.03943, sections 2 and 3): P forced oscillators x'' = -A x
// + B u with A = relu(a) and steps dt = sigmoid(step), both learned for each oscillator,
//
//   IM    z = s (z - dt A x + dt B u),  x = s (x + dt z_before + dt^2 B u),  s = 1 / (1 + dt^2 A),
//   IMEX  z = z - dt A x + dt B u,      x = x + dt z,
//
// and y = Re(C x) + D u. Initially a and step are uniform in [0, 1).
//
// The matrix that advances (z, x) has the eigenvalues lambda and conj(lambda), so that x answers an
// impulse of B u by Re(c lambda^n), and is the sum of two states with the poles lambda and
// conj(lambda) and the inputs c B u / 2 and conj(c) B u / 2: a state space as LRU's, of 2 P states.
// With m = dt^2 A and g = sqrt(m), from the first two answers,
//
//   IM    lambda = s (1 + i g),     c = dt^2 s (1 - i / g),
//   IMEX  lambda = exp(i phi),      c = dt^2 (1 - i / tan(phi)),   cos(phi) = 1 - m / 2.
//
// Where an eigenvalue comes twice, at m = 0 and in IMEX at m = 4, beyond which its states explode,
// there is no such c: m is at least 1e-6, and at most 3.99 in IMEX. A second direction runs from
// the end of the sequence with the same oscillators and B; its states have their own columns of C.
// Then GELU, the block's dropout and a gated linear unit (GatedOutput).
#include "mixers/specs/linoss.h"
#include "layers/gated_output.h"
#include "mixers/sequence_layer.h"
#include "mixers/state_space.h"
#include "ops/pointwise/activation.h"
#include "ops/precision.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr double kLeastSquare = 1e-6, kLargestSquare = 3.99;  // of dt sqrt(A)

class Linoss : public SequenceLayer {
 public:
  using Config = LinossConfig;

  Linoss(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : is_implicit_(config.discretization == "im") {
    const int64_t dim = shape.model_dim, states = config.states;
    const auto from_0_to_1 = [&](const char* name) {
      return register_in_group("ssm", name, init.of(name).uniform({states}, 0.5) + 0.5);
    };
    a_ = from_0_to_1("a");
    step_ = from_0_to_1("step");
    b_ = register_in_group("b", "b",
                           init.of("b").uniform({2, states, dim}, layers::inverse_root(dim)));
    c_ =
        register_parameter("c", init.of("c").uniform({dim, config.bidirectional ? 2 : 1, 2, states},
                                                     layers::inverse_root(states)));
    skip_ = add_normal("skip", init, {dim}, 1);
    output_ = add<layers::GatedOutput>("output", init, dim, config.output);
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    const auto type = ops::wide_type(u_BLD);
    const Modes modes = modes_of(a_.to(at::kDouble), step_.to(at::kDouble));
    const auto both = [&](const Tensor& re, const Tensor& im) {  // [2, P] and the conjugate
      return at::stack({at::cat({re, re}), at::cat({im, -im})}).to(type);
    };
    const Tensor gain = both(modes.c_re / 2, modes.c_im / 2).unsqueeze(2);
    const Tensor b = b_.repeat({1, 2, 1});
    const MimoStateSpace system{
        .a_2P = both(modes.lambda_re, modes.lambda_im),
        .b_2PD = at::stack({gain[0] * b[0] - gain[1] * b[1], gain[0] * b[1] + gain[1] * b[0]}),
        .c_DK2P = c_.repeat({1, 1, 1, 2}),
        .skip_D = skip_};
    // In float32, since the two states of an oscillator cancel in part, which bfloat16 would round.
    const Tensor y = mimo_state_space(u_BLD.to(type), system, context.mask_BL);
    return output_->forward(y.to(u_BLD.scalar_type()), context);
  }

 private:
  struct Modes {
    Tensor lambda_re, lambda_im, c_re, c_im;  // [P]
  };

  Modes modes_of(const Tensor& a, const Tensor& step) const {
    const Tensor dt = ops::sigmoid(step), dt_square = dt.square();
    Tensor m = dt_square * a.relu();
    m = m.masked_fill(m.le(kLeastSquare), kLeastSquare);  // NaN stays NaN
    if (is_implicit_) {
      const Tensor s = 1 / (1 + m), root = m.sqrt();
      return {s, s * root, dt_square * s, -dt_square * s / root};
    }
    m = m.masked_fill(m.ge(kLargestSquare), kLargestSquare);
    const Tensor cosine = 1 - m / 2, sine = (m * (1 - m / 4)).sqrt();
    return {cosine, sine, dt_square, -dt_square * cosine / sine};
  }

  bool is_implicit_;
  Tensor a_, step_;  // [P]
  Tensor b_;         // [2, P, D]
  Tensor c_;         // [D, directions, 2, P]
  Tensor skip_;      // D of the recurrence, [D]
  std::shared_ptr<layers::GatedOutput> output_;
};

}  // namespace

constinit const LayerMaker kMakeLinoss = make_layer<Linoss>;

}  // namespace lra::mixers
