// The user's examples while they are in memory: read from files, told apart into splits, counted
// and written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tasks/own/custom_config.h"
#include "tasks/own/examples.h"

namespace lra {
class Progress;
}

namespace lra::tasks {

struct GatheredExamples {
  std::vector<OwnExample> examples;
  std::vector<std::string> label_names;  // sorted, as numbers where all are; the class is the place
  std::map<std::string, std::vector<size_t>> splits;  // places of the examples, in order of files
  CustomConfig config;      // with the facts of the data: input, length, classes and so on
  std::string source_hash;  // of the files
  std::vector<double> means, deviations;  // of each channel on train, if values are standardized
  std::map<std::string, std::string> reading;  // what was read, for people: "columns", "splits" ...
  std::vector<std::string> doubts;             // one sentence each
};

// Reads the files (.npz and what read_table() takes; of a folder, all such files in it). The split
// of an example is named by its row, or else by the name of its file, such as train.csv or
// test-00000.parquet, if there are several; missing splits are drawn from train, a tenth each, by
// config.split_seed. Texts that are all lists of numbers, as "[3, 17]", are these numbers. Throws
// lra::Error for examples of different kinds, token ids that are mixed with other numbers, labels
// that occur only outside train, a single class, empty sequences and errors of the readers.
GatheredExamples gather_examples(const std::vector<std::string>& sources,
                                 const CustomConfig& config, Progress& progress);

}  // namespace lra::tasks
