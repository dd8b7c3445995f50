#include "compute/predictions.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iomanip>
#include <sstream>

#include "base/text_format.h"
#include "data/new_folder.h"
#include "io/atomic_file.h"
#include "training/loop/breakdown.h"

namespace lra::cli {
namespace {

// The shortest digits that read back as the same number.
std::string digits(float value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << std::quoted(text, '"', '"');
  return out.str();
}

std::string column_name(std::string name) {
  std::ranges::replace(name, ' ', '_');
  return name;
}

}  // namespace

void refuse_predictions_file(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".csv") {
    throw Error({.where = "--predictions",
                 .what = printable(path) + " has another ending than .csv",
                 .expected = "a CSV file",
                 .advice = "pandas.read_csv(FILE).to_parquet(...) makes Parquet of it"});
  }
  refuse_existing(path, "a file", "--predictions");
}

void write_predictions(const std::string& path, const training::EvaluationResult& result,
                       const training::LoadedRun& run, const Dataset& dataset,
                       const std::string& split_name) {
  const Split split = run.stored.config.split_of(*run.task, dataset, split_name);
  const std::vector<std::string> names = run.task->label_names(dataset);
  const auto name_of = [&](int64_t label) {
    return names.empty() ? std::to_string(label) : names.at(static_cast<size_t>(label));
  };
  auto properties = training::properties_of(run.stored.config, *run.task, dataset, split_name);
  const std::vector<std::string> lengths = std::move(properties.front().values);
  properties.erase(properties.begin());
  std::string csv = "index,length,label,prediction";
  for (int64_t c = 0; c < run.task->shape().num_classes; ++c) {
    csv += "," + quoted("probability_" + name_of(c));
  }
  for (const auto& property : properties) csv += "," + quoted(column_name(property.name));
  csv += "\n";
  for (size_t i = 0; i < result.predictions.size(); ++i) {
    csv += std::to_string(i) + "," + lengths.at(i) + "," +
           quoted(name_of(split.label(static_cast<int64_t>(i)))) + "," +
           quoted(name_of(result.predictions[i].label));
    for (const float probability : result.probabilities.at(i)) csv += "," + digits(probability);
    for (const auto& property : properties) csv += "," + quoted(property.values.at(i));
    csv += "\n";
  }
  write_file_atomically(path, csv);
}

}  // namespace lra::cli
