#include "training/run/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>

#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/parsed_number.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/safetensors.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;

// There for runs that began with trained weights: going back to the beginning, and making the run
// again, need them.
constexpr int64_t kInitialStep = 0;

using Dtypes = std::pair<at::ScalarType, Dtype>;  // of a tensor and of a file
constexpr Dtypes kDtypes[] = {{at::kFloat, Dtype::kF32}, {at::kDouble, Dtype::kF64},
                              {at::kHalf, Dtype::kF16},  {at::kBFloat16, Dtype::kBF16},
                              {at::kLong, Dtype::kI64},  {at::kInt, Dtype::kI32},
                              {at::kShort, Dtype::kI16}, {at::kChar, Dtype::kI8},
                              {at::kByte, Dtype::kU8},   {at::kBool, Dtype::kBool}};

Dtype dtype_of(const at::Tensor& t) {
  const auto* found = std::ranges::find(kDtypes, t.scalar_type(), &Dtypes::first);
  LRA_CHECK(found != std::end(kDtypes));
  return found->second;
}

// Tensors of a model by their names in a file.
using NamedTensors = std::vector<models::Parameter>;

// A tensor as files hold it: complex numbers as pairs of real ones, [..., 2].
at::Tensor as_real(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach();
  return plain.is_complex() ? at::view_as_real(plain) : plain;
}

// The tensors that files hold, on any device; the views are valid as long as `kept`.
std::vector<TensorView> views_of(const NamedTensors& tensors, std::vector<at::Tensor>& kept) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor, group] : tensors) {
    const at::Tensor& host = kept.emplace_back(as_real(tensor).cpu().contiguous());
    const auto* data = static_cast<const std::byte*>(host.const_data_ptr());
    views.push_back({name, dtype_of(host), host.sizes().vec(), {data, host.nbytes()}});
  }
  return views;
}

// The moments of a model, named "m." or "v." + the parameter's name.
NamedTensors moments_of(const FlatParameters& parameters) {
  NamedTensors moments;
  for (const auto& [prefix, flat] :
       {std::pair("m.", parameters.m), std::pair("v.", parameters.v)}) {
    for (const auto& part : parameters.parts()) {
      moments.push_back(
          {prefix + part.name, flat.narrow(0, part.offset, part.count).view(part.shape)});
    }
  }
  return moments;
}

void copy_data(const TensorView& from, const at::Tensor& to) {
  const at::Tensor real = as_real(to);
  const at::Tensor host = at::empty(real.sizes(), real.options().device(at::kCPU));
  LRA_CHECK_EQ(from.data.size(), host.nbytes());
  std::ranges::copy(from.data, static_cast<std::byte*>(host.mutable_data_ptr()));
  real.copy_(host);
}

// Copies the tensors of `file` with these names, after all were found.
void read_into(const SafetensorsFile& file, const NamedTensors& tensors) {
  for (const auto& [name, tensor, group] : tensors) {
    const TensorView* found = file.find(name);
    if (!found) refuse_weights(file, "tensor '" + name + "' is missing", "");
    const at::Tensor real = as_real(tensor);
    if (real.sizes() != found->shape || found->dtype != dtype_of(real)) {
      refuse_weights(file, "tensor '" + name + "' has another shape or type", "");
    }
  }
  for (const auto& [name, tensor, group] : tensors) copy_data(*file.find(name), tensor);
}

void check_count(const SafetensorsFile& file, size_t num_tensors) {
  if (file.tensors().size() == num_tensors) return;
  refuse_weights(file, std::to_string(file.tensors().size()) + " tensors",
                 std::to_string(num_tensors));
}

// Copies all that model.safetensors holds; files of earlier versions lack buffers of other dtypes.
void read_weights(const SafetensorsFile& file, const FlatParameters& parameters) {
  NamedTensors all = parameters.saved();
  if (file.tensors().size() == parameters.num_flat()) all.resize(parameters.num_flat());
  check_count(file, all.size());
  read_into(file, all);
}

// The two files of a checkpoint and its folder belong to the same moment of the run.
void check_progress(const SafetensorsFile& moments, const TrainProgress& of_weights, int64_t step) {
  const TrainProgress progress = progress_in(moments);
  if (progress == of_weights && progress.step == step) return;
  refuse_weights(moments, "lra.progress is that of step " + std::to_string(progress.step),
                 "the one of model.safetensors, step " + std::to_string(of_weights.step) +
                     ", in folder step_" + std::to_string(step));
}

void rename_folder(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw io_error(to, "cannot rename", errno);
}

// Points the link `path` at `target` in one step.
void replace_link(const std::string& path, const std::string& target) {
  const std::string temporary = path + ".tmp";
  ::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0)
    throw io_error(temporary, "cannot create the link", errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    throw io_error(path, "cannot replace the link", errno);
}

// Renames a complete folder to its name. One that exists already (the same step, saved again after
// its validation) is exchanged atomically, so that the name always has a checkpoint. On file
// systems that cannot exchange (NFS) the old one is moved aside first: after a crash in between,
// the previous checkpoint remains. The replaced folder is in `partial` afterwards.
void put_in_place(const std::string& partial, const std::string& final_path) {
  std::error_code ignored;
  if (!fs::exists(final_path, ignored)) return rename_folder(partial, final_path);
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, final_path.c_str(), RENAME_EXCHANGE) == 0) {
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    throw io_error(final_path, "cannot replace the checkpoint", errno);
  }
  const std::string aside = final_path + ".replaced.partial";
  rename_folder(final_path, aside);
  rename_folder(partial, final_path);
  rename_folder(aside, partial);
}

}  // namespace

CheckpointStore::CheckpointStore(std::string folder, int64_t keep, std::vector<RunIdentity> runs)
    : folder_(std::move(folder)), keep_(keep), runs_(std::move(runs)) {
  LRA_CHECK(!runs_.empty());
}

std::string CheckpointStore::save(const FlatParameters& parameters, const TrainProgress& progress,
                                  bool is_best, int64_t also_kept) {
  const std::string name = step_name(progress.step), final_path = folder_of(name),
                    partial = final_path + ".partial";
  remove_unfinished();
  make_folder(partial);
  // Files do not depend on the device that wrote them, and can be read on any.
  std::vector<at::Tensor> kept;
  const std::string hash = write_weights(
      partial + "/model.safetensors", views_of(parameters.saved(), kept), progress, runs_.front());
  write_weights(partial + "/optimizer.safetensors", views_of(moments_of(parameters), kept),
                progress, runs_.front());
  put_in_place(partial, final_path);
  replace_link(folder_of("latest"), name);
  if (is_best) replace_link(folder_of("best"), name);
  sync_folder(folder_);
  // Files that cannot be removed, here and below, cost space, not results.
  remove_tree(partial);
  remove_old(progress, also_kept);
  return hash;
}

void CheckpointStore::remove_unfinished() const {
  for (const std::string& name : names_in(folder_)) {
    if (name.ends_with(".partial")) remove_tree(folder_of(name));
  }
}

void CheckpointStore::repair_links(const TrainProgress& progress) const {
  const auto weights_in = [](const std::string& folder) {
    const std::string file = folder + "/model.safetensors";
    return fs::exists(file) ? hash128(read_file(file, fs::file_size(file))) : Hash128{};
  };
  for (const char* name : {"latest", "best"}) {  // copies that follow links make folders of them
    const std::string copy = folder_of(name);
    if (!fs::is_directory(fs::symlink_status(copy))) continue;
    const Hash128 weights = weights_in(copy);
    const bool is_kept = std::ranges::any_of(
        steps(), [&](int64_t step) { return weights_in(folder_of(step_name(step))) == weights; });
    if (!is_kept) {
      throw Error({.where = copy,
                   .what = "is a folder whose weights no step_N has",
                   .expected = "a link to one of them",
                   .advice = "move it away"});
    }
    remove_tree(copy);
  }
  replace_link(folder_of("latest"), step_name(progress.step));
  const std::string best = step_name(progress.best_step);
  if (fs::exists(folder_of(best))) {
    replace_link(folder_of("best"), best);
  } else if (::unlink(folder_of("best").c_str()) != 0 && errno != ENOENT) {
    throw io_error(folder_of("best"), "cannot be removed", errno);
  }
  sync_folder(folder_);
}

TrainProgress CheckpointStore::load_weights_of(int64_t step, FlatParameters& parameters) const {
  const auto file = SafetensorsFile::open(weights_of(step));
  const TrainProgress progress = describe_weights(file, runs_, "").progress;
  if (progress.step != step) {
    refuse_weights(file, "holds the weights of step " + std::to_string(progress.step),
                   "those of step " + std::to_string(step));
  }
  read_weights(file, parameters);
  return progress;
}

bool CheckpointStore::has(int64_t step) const {
  std::error_code ignored;
  return fs::exists(folder_of(step_name(step)), ignored);
}

std::vector<int64_t> CheckpointStore::steps() const {
  std::vector<int64_t> found;
  for (const std::string& name : names_in(folder_)) {
    if (!name.starts_with(kStepPrefix)) continue;
    const auto step =
        parsed_number<int64_t>(std::string_view(name).substr(std::strlen(kStepPrefix)));
    if (step) found.push_back(*step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

void CheckpointStore::remove_old(const TrainProgress& progress, int64_t also_kept) const {
  std::vector<int64_t> all = steps();
  std::erase_if(all, [&](int64_t step) { return step > progress.step; });
  const auto removable = static_cast<int64_t>(all.size()) - keep_;
  for (int64_t i = 0; i < removable; ++i) {
    const int64_t step = all[static_cast<size_t>(i)];
    if (step == kInitialStep || step == progress.best_step || step == also_kept) continue;
    // Renamed first: a kill while it is removed must not leave half of it under its name.
    const std::string path = folder_of(step_name(step));
    if (::rename(path.c_str(), (path + ".partial").c_str()) == 0) {
      remove_tree(path + ".partial");
    }
  }
}

TrainProgress CheckpointStore::load(int64_t step, FlatParameters& parameters) const {
  const auto moments = SafetensorsFile::open(folder_of(step_name(step)) + "/optimizer.safetensors");
  (void)describe_weights(moments, runs_, "");
  check_count(moments, 2 * parameters.parts().size());
  const TrainProgress progress = load_weights_of(step, parameters);
  check_progress(moments, progress, step);
  read_into(moments, moments_of(parameters));
  return progress;
}

std::optional<TrainProgress> CheckpointStore::load_latest(
    FlatParameters& parameters, std::vector<std::string>* problems) const {
  const std::vector<int64_t> all = steps();
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    try {
      return load(*step, parameters);
    } catch (const Error& error) {
      if (error.code() == ExitCode::kIoError) throw;
      problems->push_back(error.what());
    }
  }
  return std::nullopt;
}

LoadedWeights load_weights(const std::string& path, FlatParameters& parameters,
                           std::span<const RunIdentity> expected) {
  const auto file = SafetensorsFile::open(path);
  LoadedWeights loaded = describe_weights(
      file, expected, "'lra eval' and 'lra analyze' accept them with --foreign-weights");
  read_weights(file, parameters);
  return loaded;
}

namespace {

// Training would continue from such weights, with a meaningless result.
void refuse_useless(const SafetensorsFile& file, const NamedTensors& weights) {
  bool is_zero = true;
  for (const auto& [name, tensor, group] : weights) {
    if (!tensor.isfinite().all().item<bool>()) {
      refuse_weights(file, "a weight is NaN or infinite", "trained weights");
    }
    is_zero = is_zero && !tensor.any().item<bool>();
  }
  if (is_zero) refuse_weights(file, "all weights are zero", "trained weights");
}

void refuse_other_dtype(const SafetensorsFile& file, const TensorView& tensor, Dtype wanted) {
  if (tensor.dtype == wanted) return;
  throw Error({.where = file.path(),
               .what = in_quotes(tensor.name) + " is " + to_string(tensor.dtype),
               .expected = to_string(wanted) + " weights",
               .advice = "convert it in Python with safetensors.torch.load_file and save_file "
                         "(t.float() is F32)"});
}

}  // namespace

MatchedWeights load_matching_weights(const std::string& path, FlatParameters& parameters) {
  const auto file = SafetensorsFile::open(path);
  if (has_weights_hash(file)) (void)check_weights_hash(file);
  MatchedWeights found{.run = find_identity(file.metadata(), path)};
  std::set<std::string> taken;
  NamedTensors places, read;
  for (const auto& [name, tensor, group] : parameters.saved()) {
    const TensorView* stored = file.find(name);
    const at::Tensor real = as_real(tensor);
    if (!stored || real.sizes() != stored->shape) {
      found.fresh.push_back(name);
      continue;
    }
    refuse_other_dtype(file, *stored, dtype_of(real));
    taken.insert(name);
    places.push_back({name, real});
    copy_data(*stored, read.emplace_back(name, at::empty_like(real)).tensor);
  }
  for (const TensorView& tensor : file.tensors()) {
    if (!taken.contains(tensor.name)) found.unused.push_back(tensor.name);
  }
  if (taken.empty()) {
    refuse_weights(file, "none of its tensors fits the model",
                   "tensors with the model's names and shapes");
  }
  refuse_useless(file, read);
  for (size_t i = 0; i < places.size(); ++i) places[i].tensor.copy_(read[i].tensor);
  return found;
}

std::string weights_hash(const FlatParameters& parameters) {
  std::vector<at::Tensor> kept;
  return hash_of_tensors(views_of(parameters.saved(), kept));
}

namespace {

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
  if (step >= train.steps) return 0;
  // Multiples of `every` after the step and before the last one.
  const auto between = [&](int64_t every) {
    return every > 0 ? (train.steps - 1) / every - step / every : 0;
  };
  const int64_t a = train.eval_every, b = train.checkpoint_every;
  const int64_t of_b = b > 0 ? a / std::gcd(a, b) : 0;  // the multiple of b that is one of a
  const int64_t of_both = of_b > 0 && of_b <= train.steps / b ? of_b * b : 0;
  return 1 + between(a) + between(b) - between(of_both);
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
