#include "cli/device.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/parsed_number.h"
#include "cli/compute.h"

namespace lra::cli {
namespace {

constexpr std::string_view kCuda = "cuda", kNumbered = "cuda:";

// N of "cuda:N"; nothing for other text.
std::optional<int> gpu_number(const std::string& text) {
  if (!text.starts_with(kNumbered)) return {};
  const auto number = parsed_number<int>(std::string_view(text).substr(kNumbered.size()));
  return number >= 0 ? number : std::nullopt;
}

}  // namespace

std::string gpu_model() {
  constexpr std::string_view kModel = "Model:";
  std::set<std::string> models;
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    std::ifstream in(gpu.path() / "information");
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with(kModel)) continue;
      const size_t begin = line.find_first_not_of(" \t", kModel.size());
      if (begin != std::string::npos) models.insert(line.substr(begin));
    }
  }
  return models.size() == 1 ? *models.begin() : "";
}

void check_device_name(const std::string& text) {
  if (text != "cpu" && text != kCuda && !gpu_number(text))
    refuse("--device " + text, "is not a device", "cpu, cuda or cuda:N");
}

std::string find_device(const std::string& text) {
  check_device_name(text);
  return text == "cpu" ? text : find_gpu(text, gpu_number(text));
}

std::string device_title(const std::string& device) {
  const std::string model = device == "cpu" ? "" : gpu_model();
  return device + (model.empty() ? "" : " " + model);
}

}  // namespace lra::cli
