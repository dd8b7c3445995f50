// How far a sequence layer reaches, defined alike for every layer, with attention weights or
// without, in two ways.
//
// Gradients. f is the score of the class that the model predicts, summed over the places where it
// predicts several. For a layer with inputs x_j and outputs y_i, u_i = df/dy_i is what f asks of
// place i, and the norm of d(u_i . y_i)/dx_j is how much of that the layer takes from place j.
// Divided by their sum over j, these are shares by distance |i - j|. Places i are drawn from each
// sequence with probabilities proportional to the norm of u_i, and their shares are averaged. The
// reach is the least distance within which 90 % of the shares lie. For all layers together, x is
// the input of the encoder and y its output. CLS counts as the token before the first.
//
// Windows. The accuracy when a layer, or all of them, gets windows of some tokens as sequences of
// their own (layer_views.h).
#pragma once

#include <vector>

#include "analysis/layer_views.h"
#include "base/rng.h"
#include "models/classifier.h"
#include "records/analysis_record.h"
#include "training/settings/run_config.h"

namespace lra::analysis {

inline constexpr double kReachShare = 0.9;
inline constexpr double kPointLost = 0.01;  // the accuracy that a sufficient window may cost
inline constexpr int64_t kReachPlaces = 4;  // drawn from each sequence, for each layer

// Sums of shares over examples, for each layer and for all together.
class ReachSums {
 public:
  // The model computes in float32, without recomputation, and outlives this object. Throws
  // lra::Error for one whose receptive field is bounded; `name` is the run in messages.
  ReachSums(const models::SequenceClassifier& model, const models::ModelConfig& config,
            const std::string& name);
  // Adds the sequences of one example, which is number `example` of its split.
  void add(const models::ModelInput& input, int64_t example);
  // Figures of layer 0, 1, ... and of all layers, without windows. Needs a sequence of a token.
  std::vector<ReachFigures> figures() const;

 private:
  // By distance: the shares of gradients, and of equal norms at all places.
  struct Histogram {
    std::vector<double> gradient = {}, equal = {};
  };
  struct Stretch {
    int64_t first = 0, count = 0;  // positions of a sequence among those of all
  };

  // Appends the sequences of rows of `length` positions, the first of which is position `first`.
  // Returns the position behind them.
  static int64_t append_stretches(std::vector<Stretch>& to, int64_t first, int64_t rows,
                                  int64_t length, const at::Tensor& lengths_B);
  void add_passage(const at::Tensor& in, const at::Tensor& out, const at::Tensor& asked,
                   const std::vector<Stretch>& sequences, RandomStream& random, Histogram& to);
  static void add_place(const at::Tensor& norms, const Stretch& sequence, int64_t place,
                        Histogram& to);

  const models::SequenceClassifier& model_;
  std::vector<Histogram> layers_;  // the last one: of all
};

// Sets the smallest window of each layer: of those in `scores`, named by window_change() and a
// number of tokens, the smallest one that costs at most kPointLost, as do all larger ones.
void set_windows(const std::vector<ChangedInput>& scores, std::vector<ReachFigures>& layers);
// "layer 0 in windows of"
std::string window_change(const std::string& layer);

// Names what makes the sequence layers of a run's model other functions on shorter sequences:
// "what ChordMixer computes", or a parameter whose shape depends on the length. Empty if nothing
// does.
std::string bound_by(const training::RunConfig& run, const models::SequenceClassifier& model,
                     int64_t width);

}  // namespace lra::analysis
