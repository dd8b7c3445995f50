// Settings of the task custom: how files are read, and facts that the data states of itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/config.h"
#include "data/manifest.h"
#include "data/python_reader.h"

namespace lra::tasks {

struct CustomConfig : ReadSettings {
  std::string name;
  bool standardize = true;
  int64_t split_seed = 0;
  int64_t length = 1024, shortest = 0, longest = 0;
  int64_t vocabulary = 257, classes = 2, towers = 1, channels = 1;
  int64_t num_train = 0, num_val = 0, num_test = 0;
  std::string labels, scaling;

  void fields(auto& f) {
    f("name", name, "name of the data set: that of its folder");
    f("sequences", sequences,
      "import: column with the sequences, or two as a,b; empty: usual names");
    f("label", label, "import: column with the labels; empty: label, class, y and the like");
    f("split", split, "import: column with train, val or test; empty: split, if there is one");
    f("ignore", ignore, "import: columns to leave out, as a,b");
    f("input", input,
      "text: bytes; tokens: whole numbers; values: real numbers; auto: decided by the files",
      one_of({"auto", "text", "tokens", "values"}));
    f("standardize", standardize,
      "import: standardize each channel of values to mean 0, deviation 1");
    f("split_seed", split_seed, "import: seed of drawn splits", at_least(0));
    f("length", length, "positions per sequence; longer ones are cut. Default: the longest",
      between(1, kMaxLength));
    f("shortest", shortest, "fact of the data: positions of the shortest sequence", at_least(0));
    f("longest", longest, "fact of the data: positions of the longest sequence", at_least(0));
    f("vocabulary", vocabulary, "fact of the data: number of token ids, padding included",
      at_least(0));
    f("classes", classes, "fact of the data: number of labels", between(2, kMaxClasses));
    f("towers", towers, "fact of the data: sequences per example", between(1, 2));
    f("channels", channels, "fact of the data: values at each position", between(1, 4096));
    f("num_train", num_train, "fact of the data: examples for training", at_least(0));
    f("num_val", num_val, "fact of the data: examples for validation", at_least(0));
    f("num_test", num_test, "fact of the data: examples for the test", at_least(0));
    f("labels", labels, "fact of the data: names of the labels, or a hash of many");
    f("scaling", scaling,
      "fact of the data: mean and deviation of each channel, or a hash of many");
  }

  static constexpr std::string_view kImportSettings[] = {"sequences", "label",       "split",
                                                         "ignore",    "standardize", "split_seed"};
  static constexpr int64_t kMaxClasses = 10000, kMaxLength = int64_t{1} << 30;
};

// The settings as a manifest states them, text by name, and back.
std::map<std::string, std::string> manifest_settings(const CustomConfig& config);
CustomConfig config_of(const Manifest& manifest);

}  // namespace lra::tasks
