// The model of a run for sequences or a view that it was not trained with: longer texts, larger
// images, blocks instead of the whole.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "training/run/loaded_run.h"

namespace lra::analysis {

struct Adaptation {
  TaskShape shape;              // vocabulary, classes and towers as the run's
  int64_t receptive_field = 0;  // model.receptive_field; 0: all tokens
  // "continued": place p is encoded as p; learned positions allow this only up to their number.
  // "stretched": as the proportional place of the run's own sequence, in images by row and column;
  // step sizes of state spaces are smaller in proportion (in images by the length of rows).
  std::string positions = "continued";
};

// A parameter of the run belongs to the length it was trained with: learned positions that are
// continued, projections along the sequence (Linformer), learned scores of blocks (Sinkhorn) and
// of positions (Synthesizer); or the mechanism does (LayerFacts::bound_to_length).
class BoundToLength : public Error {
 public:
  using Error::Error;
};

// Throws lra::Error when examples of this shape have other token ids, classes or towers than the
// run's.
void refuse_other_examples(const training::LoadedRun& run, const TaskShape& shape);

// A model with the weights of the run. Throws BoundToLength.
models::SequenceClassifier adapted_model(const training::LoadedRun& run, const Adaptation& to);

}  // namespace lra::analysis
