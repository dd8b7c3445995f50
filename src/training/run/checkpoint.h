// Checkpoints: weights and optimizer state as safetensors with PyTorch-style names.
//
// checkpoints/step_N/model.safetensors holds parameters and buffers (complex ones as pairs of real
// numbers), optimizer.safetensors "m.NAME" and "v.NAME"; both carry which run they are of and its
// progress as metadata, and an XXH3 of all that they say: names, types, shapes, metadata and data.
// It is checked when they are read. A step's folder is written under another name and renamed when
// complete. `latest` and `best` are links to step folders.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "training/ranks/flat_parameters.h"
#include "training/settings/run_folder.h"
#include "training/settings/train_config.h"
#include "training/settings/weights_file.h"

namespace lra::training {

class CheckpointStore {
 public:
  // `folder` is checkpoints/ of a run with the identities `runs` (identities_of): new checkpoints
  // name the first, and checkpoints of runs not among them are treated as damaged. The `keep`
  // newest ones are kept, plus the best and that of step 0. Those of later steps than the one just
  // saved were skipped by a resume and do not count.
  CheckpointStore(std::string folder, int64_t keep, std::vector<RunIdentity> runs);

  // Returns the hash of the weights, 32 hex digits. Throws lra::Error (exit code 74) when the
  // checkpoint is not durable; those before it are untouched then. The checkpoint of step
  // `also_kept` stays, however old it is.
  std::string save(const FlatParameters& parameters, const TrainProgress& progress, bool is_best,
                   int64_t also_kept = -1);

  // Loads the newest readable checkpoint into `parameters`; a damaged one is added to `problems`
  // and the one before it is used. Empty if there is none, or none that can be read; in the second
  // case `problems` is not empty and `parameters` may hold anything. Throws lra::Error (exit code
  // 74) if the device fails: that is not damage, and an older checkpoint would not help.
  std::optional<TrainProgress> load_latest(FlatParameters& parameters,
                                           std::vector<std::string>* problems) const;

  // Puts weights and moments of one step into `parameters`. Throws lra::Error when they cannot be
  // read or are those of another step.
  TrainProgress load(int64_t step, FlatParameters& parameters) const;

  // The weights of one step. Throws lra::Error when they cannot be read or are those of another
  // step; `parameters` are as before then.
  TrainProgress load_weights_of(int64_t step, FlatParameters& parameters) const;

  // True if there is a checkpoint of that step, readable or not.
  bool has(int64_t step) const;

  // Points `latest` and `best` at the steps in `progress`: a run that was killed while saving may
  // not have updated them. If the best checkpoint is gone, because a later one, now damaged,
  // replaced it, there is no link: the run will produce the later one again. Throws lra::Error for
  // folders in their place, which a copy that followed links made.
  void repair_links(const TrainProgress& progress) const;

  // Folder of step_N, "latest" or "best", and the weights of one step.
  std::string folder_of(const std::string& name) const { return folder_ + "/" + name; }
  std::string weights_of(int64_t step) const {
    return folder_of(step_name(step)) + "/" + kWeightsFile;
  }

 private:
  void remove_old(const TrainProgress& progress, int64_t also_kept) const;
  void remove_unfinished() const;      // leftovers of a run that was killed while saving
  std::vector<int64_t> steps() const;  // ascending

  std::string folder_;
  int64_t keep_;
  std::vector<RunIdentity> runs_;
};

// Loads the weights of one model.safetensors by name. Unless `expected` is empty, they are refused
// when they are those of no run in it, or of another step than their folder is named by. Throws
// lra::Error naming the tensor that is missing, left over, or of another shape or type, and when
// the hash does not match; `parameters` are as before then.
LoadedWeights load_weights(const std::string& path, FlatParameters& parameters,
                           std::span<const RunIdentity> expected);

// The result of matching the tensors of a file with those of a model.
struct MatchedWeights {
  std::optional<RunIdentity> run = {};   // nothing: the file does not say
  std::vector<std::string> fresh = {};   // tensors of the model that keep their values
  std::vector<std::string> unused = {};  // tensors of the file without a place
};

// Copies every tensor of a safetensors file that has name, shape and type of one of the model's, of
// any origin. Throws lra::Error for a damaged file, when no tensor fits, and for
// weights that are all zero or of which one is not finite.
MatchedWeights load_matching_weights(const std::string& path, FlatParameters& parameters);

// XXH3-128 over all weights in order.
std::string weights_hash(const FlatParameters& parameters);

// Bytes of one checkpoint, both files; an upper bound, at most 16 KiB plus 600 bytes per parameter
// tensor above the actual size.
uint64_t checkpoint_bytes(const FlatParameters& parameters);

// Steps after `step`, up to the last, at which a run will save.
int64_t saves_ahead(const TrainConfig& train, int64_t step);

// Throws lra::Error (exit code 2) if the device has no room for the checkpoints that the run keeps
// at one time: train.keep_checkpoints, the best, the one being written and, with `keeps_first`,
// that of step 0. Space of checkpoints that the run has saved already counts as free.
void refuse_without_room(const RunFolder& folder, const FlatParameters& parameters,
                         const TrainConfig& train, int64_t step, bool keeps_first);

}  // namespace lra::training
