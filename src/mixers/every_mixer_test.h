// The conformance test of mixers runs over the table kAllMixers. A mixer with a ConformanceRow in
// its test file is compared with the row's dense oracle, which shares no code with it, any other
// with itself in float64; float64 is compared with its definition in tests/parity/layers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mixers/sequence_layer.h"
#include "ops/attention/attention.h"
#include "ops/test_tensors.h"

namespace lra::mixers {

// Everything in float64.
struct OracleInput {
  std::map<std::string, at::Tensor> parameters;  // and buffers, by name: "qkv.weight"
  LayerShape shape;
  ConfigTable config;  // the test settings
  at::Tensor x_BLD;
  at::Tensor valid_BL;  // bool, always defined
  ops::AttentionDropout dropout;
};

// The definition with explicit L x L arrays -> [B, L, D]; padded rows may hold anything.
using Oracle = at::Tensor (*)(const OracleInput& in);

struct Conformance {
  std::string_view name;
  Oracle oracle;  // nullptr: the mixer itself in float64
  // TOML of [mixer] with every setting the oracle reads: blocks and ranks small enough for short
  // sequences to have many.
  const char* config;
  // The mixer commutes with a permutation of groups of this many tokens; 0: with none.
  int64_t interchangeable;
};

// Puts a row into the table of the conformance tests; one constant in the test file of each mixer.
struct ConformanceRow {
  ConformanceRow(std::string_view name, Oracle oracle, const char* config, int64_t interchangeable);
};

// The mixer's row, or default settings and no oracle.
Conformance conformance_of(const LayerSpec& spec);

// A mixer and how to run it as a function of its input and parameters.
struct TestedMixer {
  const LayerSpec& spec;
  const Conformance& conformance;
  LayerShape shape;

  std::shared_ptr<SequenceLayer> make(at::ScalarType type, uint64_t seed = 1) const;
  // x, then every parameter in the order of named_parameters(), float64.
  std::vector<at::Tensor> inputs(const at::Tensor& x_BLD) const;
  // {x, parameters...} -> the output, zero at padded positions.
  ops::TensorFunction function(const layers::Context& context, at::ScalarType type) const;
  ops::TensorFunction oracle(const layers::Context& context) const;
};

// uint8 [3, length] with valid lengths `length`, about half of it, and 0.
at::Tensor ragged_mask(int64_t length);
// x where mask is 1 (everywhere when undefined), else 0.
at::Tensor zero_padding(const at::Tensor& x_BLD, const at::Tensor& mask_BL);

// The fixture of all conformance tests: one instance per mixer.
class EveryMixer : public testing::TestWithParam<const LayerSpec*> {
 protected:
  // Model width 6, which is no multiple of anything; heads * head_dim differs from it.
  TestedMixer tested(int64_t max_length, int64_t heads = 2, int64_t head_dim = 5) const {
    return {*GetParam(),
            conformance_,
            {.model_dim = 6,
             .attention = {.heads = heads, .head_dim = head_dim},
             .max_length = max_length}};
  }
  const Conformance conformance_ = conformance_of(*GetParam());
};

}  // namespace lra::mixers
