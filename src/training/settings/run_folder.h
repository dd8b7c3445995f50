// The files of a run: one folder, laid out as in docs and --help; and which of its weights a
// command asks for.
#pragma once

#include <string>

namespace lra::training {

struct RunFolder {
  std::string path;
  std::string config() const { return path + "/config.toml"; }
  std::string record() const { return path + "/record.json"; }
  std::string metrics() const { return path + "/metrics.jsonl"; }
  // Holds the path of the run's data, for later commands: see data_root.h.
  std::string data_root() const { return path + "/.data_root"; }
  // Modules of a layer that a notebook defined, written by Python before the run begins.
  std::string source() const { return path + "/source"; }
  std::string lock() const { return path + "/.lock"; }
  std::string checkpoints() const { return path + "/checkpoints"; }
  std::string analysis() const { return path + "/analysis"; }
};

struct WeightsChoice {
  // "last", "best", "step_N" or the path of a model.safetensors; empty: those that the run tested.
  std::string checkpoint = {};
  bool foreign = false;  // weights of another run are allowed
};

}  // namespace lra::training
