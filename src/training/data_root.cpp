#include "training/data_root.h"

#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "tasks/files.h"

namespace lra::training {

std::string data_root(const std::string& given) {
  if (!given.empty()) return given;
  const char* variable = std::getenv("LRA_DATA");
  return variable && *variable ? variable : "data";
}

std::string data_root_of(const RunFolder& run, const std::string& given) {
  if (!given.empty() || !tasks::is_file(run.data_root())) return data_root(given);
  constexpr uint64_t kMaxBytes = 1 << 16;
  const std::string remembered = read_file(run.data_root(), kMaxBytes);
  return tasks::is_folder(remembered) ? remembered : data_root(given);
}

void remember_data_root(const RunFolder& run, const std::string& root) {
  write_file_atomically(run.data_root(),
                        std::filesystem::absolute(root).lexically_normal().string());
}

}  // namespace lra::training
