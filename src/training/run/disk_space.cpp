#include "training/run/disk_space.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/text_format.h"
#include "io/atomic_file.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;

// Two headers without their tensors, two files and a folder rounded up to whole blocks.
constexpr uint64_t kFixedBytes = 16 << 10;
// The entry of a tensor in a header, without its name and shape.
constexpr uint64_t kEntryBytes = 100;

// Bytes of the files below `folder`, which need not exist.
uint64_t bytes_below(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code failed;
  fs::recursive_directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    std::error_code none;
    const uintmax_t size = entry->is_regular_file(none) ? entry->file_size(none) : 0;
    if (!none) bytes += size;
  }
  return bytes;
}

}  // namespace

uint64_t checkpoint_bytes(const FlatParameters& parameters) {
  constexpr uint64_t kCopies = 3;  // weights and two moments
  uint64_t bytes = kFixedBytes + parameters.m.nbytes() + parameters.v.nbytes();
  for (const auto& [name, tensor, group] : parameters.saved()) {
    const auto dimensions = static_cast<uint64_t>(tensor.dim());
    bytes += tensor.nbytes() + kCopies * (kEntryBytes + name.size() + 20 * dimensions);
  }
  return bytes;
}

int64_t saves_ahead(const TrainConfig& train, int64_t step) {
  const int64_t last = train.steps, evaluate = train.eval_every, save = train.checkpoint_every;
  if (step >= last) return 0;
  const auto multiples = [&](int64_t n) { return n > last ? 0 : last / n - step / n; };
  int64_t count = multiples(evaluate);
  bool includes_last = last % evaluate == 0;
  if (save > 0) {
    count += multiples(save);
    // Below `last` both are at most 10^9, so their least common multiple fits.
    if (evaluate <= last && save <= last) count -= multiples(std::lcm(evaluate, save));
    includes_last |= last % save == 0;
  }
  return includes_last ? count : count + 1;
}

void refuse_without_room(const RunFolder& folder, const FlatParameters& parameters,
                         const TrainConfig& train, int64_t step, bool keeps_first) {
  const uint64_t first = keeps_first ? 1 : 0;
  const uint64_t kept = static_cast<uint64_t>(train.keep_checkpoints) + 2 + first;
  const uint64_t ahead = static_cast<uint64_t>(saves_ahead(train, step)) + (step == 0 ? first : 0);
  const uint64_t one = checkpoint_bytes(parameters), there = bytes_below(folder.checkpoints());
  const uint64_t most = std::min(kept, ahead + (there + one / 2) / one);
  const uint64_t free = free_bytes(folder.path);
  if (static_cast<double>(most) * static_cast<double>(one) <=
      static_cast<double>(there) + static_cast<double>(free)) {
    return;
  }
  throw Error({.where = folder.path,
               .what = "only " + human_bytes(free) + " are free",
               .expected = "room for " +
                           (most == 1 ? "a checkpoint"
                                      : thousands(static_cast<int64_t>(most)) + " checkpoints") +
                           " of " + human_bytes(one),
               .advice = "make room, choose another --out, or lower train.keep_checkpoints"});
}

}  // namespace lra::training
