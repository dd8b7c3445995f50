// [sweep] of a suite: the settings that every model tries, and which of them go on. Not an
// optimizer: settings are drawn before anything is trained, so that every model gets the same ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"

namespace lra::cli {

struct SweepSettings {
  int64_t tries = 0, seed = 0, halving = 0;
  void fields(auto& f) {
    f("tries", tries, "settings that each model tries; 0: every combination of the lists",
      between(0, 10000));
    f("seed", seed, "seed of the draws", at_least(0));
    f("halving", halving,
      "stop hopeless settings early: at each of a few validations, the better one in this many "
      "goes on; 0: train all to the end",
      between(0, 1000));
  }
};

// One setting that a sweep varies: a list, or a range that is drawn from.
struct Varied {
  std::string name = {};   // "train.learning_rate"
  std::string where = {};  // file and line, or the option
  ConfigList values = {};
  double low = 0, high = 0;  // of a range
  bool is_range = false, is_log = false, is_whole = false;
};

struct Sweep {
  SweepSettings settings;
  std::vector<Varied> varied;
};

// One value for every setting that a sweep varies; empty: the suite has no sweep.
struct Try {
  std::string text;    // "learning_rate=0.001", for people
  std::string name;    // the same, or a hash of it where that is no name of a folder
  ConfigTable values;  // overrides, as in [set]
};

// True for the text of a range or a list: what `lra tune --set NAME=TEXT` varies.
bool is_varied(const ConfigValue& value);

// Reads [sweep], whose sections name the settings as those of [set] do. Throws lra::Error for an
// empty list, a range without extent or a logarithm of 0, a range without `tries`, more tries than
// there are combinations, and settings of the task or of what the score is measured on: scores that
// are no measure of the same would be compared.
Sweep read_sweep(ConfigTable table, const std::string& file);

// All tries, in order. A function of the sweep alone: of its seed, and for each setting of its name
// and the number of the try. Another setting that is varied too does not change the draws. Throws
// lra::Error if the ranges do not have that many different settings.
std::vector<Try> tries_of(const Sweep& sweep);

// The names of the varied settings.
std::vector<std::string> varied_names(const Sweep& sweep);

// Steps at which the tries are compared before the end, ascending: steps / halving^k, rounded up to
// a validation. After each of them the kept_of() best go on.
std::vector<int64_t> milestones(int64_t steps, int64_t eval_every, int64_t halving, size_t tries);
size_t kept_of(size_t tries, int64_t halving);  // one in so many, rounded up

// The score of a setting by the accuracies of its seeds, nothing for one that diverged: their mean,
// and below all settings of which fewer seeds diverged (then it is negative).
double score_of_seeds(const std::vector<std::optional<double>>& accuracies);

// The `keep` best of `entrants` (indices into `scores`), best first; of equal scores the earlier
// try.
std::vector<size_t> best_of(std::vector<size_t> entrants, const std::vector<double>& scores,
                            size_t keep);

}  // namespace lra::cli
