// lra mixer run: one mixer on a tensor from a file, for checking another implementation against
// this one, or this one against any oracle. docs/mixers.md lists the tensors of each mixer.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/stop_flag.h"
#include "cli/compute.h"
#include "io/atomic_file.h"
#include "io/overwrite.h"
#include "io/safetensors.h"
#include "mixers/sequence_layer.h"
#include "ops/precision.h"

namespace lra::cli {
namespace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

constexpr const char* kInput = "x";
constexpr const char* kMask = "mask";
constexpr const char* kOutput = "y";

// "[2, 8, 4]"
std::string shape_text(at::IntArrayRef shape) { return c10::str(shape); }

// A copy of a tensor of the file.
at::Tensor copied(const TensorView& view, at::ScalarType type) {
  at::Tensor t = at::empty(view.shape, type);
  if (!view.data.empty()) {
    std::memcpy(t.mutable_data_ptr(), view.data.data(), view.data.size());
  }
  return t;
}

std::string place(const SafetensorsFile& file, const std::string& name) {
  return file.path() + ": tensor '" + name + "'";
}

void refuse_not_finite(const std::string& where, const at::Tensor& t,
                       const std::string& advice = "") {
  if (t.isfinite().all().item<bool>()) return;
  refuse(where, "holds a number that is not finite", "", advice);
}

using InputType = std::pair<Dtype, at::ScalarType>;
constexpr InputType kInputTypes[] = {
    {Dtype::kF32, at::kFloat}, {Dtype::kBF16, at::kBFloat16}, {Dtype::kF64, at::kDouble}};

Dtype dtype_of(const at::Tensor& t) {
  const auto* found = std::ranges::find(kInputTypes, t.scalar_type(), &InputType::second);
  LRA_CHECK(found != std::end(kInputTypes));
  return found->first;
}

at::Tensor read_input(const SafetensorsFile& file) {
  const TensorView* view = file.find(kInput);
  if (!view) refuse(place(file, kInput), "is missing", "the input, [B, L, D]");
  const auto* type = std::ranges::find(kInputTypes, view->dtype, &InputType::first);
  if (type == std::end(kInputTypes)) {
    refuse(place(file, kInput), "is " + to_string(view->dtype), "F32, BF16 or F64");
  }
  const at::Tensor x = copied(*view, type->second);
  if (x.dim() != 3 || x.numel() == 0) {
    refuse(place(file, kInput), "has shape " + shape_text(x.sizes()), "[B, L, D], each at least 1");
  }
  refuse_not_finite(place(file, kInput), x, "put 0 where there is padding");
  return x;
}

// uint8 [B, L], or undefined when the file has none.
at::Tensor read_mask(const SafetensorsFile& file, const at::Tensor& x_BLD) {
  const TensorView* view = file.find(kMask);
  if (!view) return {};
  if (view->dtype != Dtype::kU8 && view->dtype != Dtype::kBool) {
    refuse(place(file, kMask), "is " + to_string(view->dtype), "U8 or BOOL");
  }
  const at::Tensor mask = copied(*view, at::kByte);
  if (mask.sizes() != x_BLD.sizes().slice(0, 2)) {
    refuse(place(file, kMask), "has shape " + shape_text(mask.sizes()),
           shape_text(x_BLD.sizes().slice(0, 2)) + " as of 'x'");
  }
  if (mask.gt(1).any().item<bool>()) {
    refuse(place(file, kMask), "holds a value above 1", "1 for a token, 0 for padding");
  }
  const int64_t others = mask.size(1) - 1;
  if (mask.narrow(1, 1, others).gt(mask.narrow(1, 0, others)).any().item<bool>()) {
    refuse(place(file, kMask), "has tokens after padding", "padding on the right");
  }
  return mask;
}

mixers::LayerShape shape_of(const MixerArguments& a, const at::Tensor& x_BLD) {
  const int64_t dim = x_BLD.size(2), length = x_BLD.size(1);
  if (a.head_dim == 0 && dim % a.heads != 0) {
    refuse("--heads",
           std::to_string(a.heads) + " heads do not divide the width " + std::to_string(dim), "",
           "give --head-dim");
  }
  if (a.max_length != 0 && a.max_length < length) {
    refuse("--max-length", std::to_string(a.max_length) + " is below the length of 'x'",
           "at least " + std::to_string(length));
  }
  return {.model_dim = dim,
          .attention = {.heads = a.heads, .head_dim = a.head_dim != 0 ? a.head_dim : dim / a.heads},
          .max_length = a.max_length != 0 ? a.max_length : length};
}

// Everything the mixer computes with: parameters, then drawn features and the like.
NamedTensors state_of(const mixers::SequenceLayer& mixer) {
  NamedTensors state;
  for (const auto& item : mixer.named_parameters()) state.emplace_back(item.key(), item.value());
  for (const auto& item : mixer.named_buffers()) state.emplace_back(item.key(), item.value());
  return state;
}

void refuse_unknown_tensors(const SafetensorsFile& file, const NamedTensors& state) {
  std::vector<std::string> known = {kInput, kMask};
  for (const auto& [name, tensor] : state) known.push_back(name);
  for (const TensorView& view : file.tensors()) {
    if (std::ranges::count(known, view.name) > 0) continue;
    refuse(place(file, view.name), "is not a tensor of this mixer", "",
           suggestion(view.name, known));
  }
}

// Puts the file's weights into the mixer. The file has all of them or none: then false.
bool load_weights(const SafetensorsFile& file, const NamedTensors& state) {
  if (std::ranges::none_of(state, [&](const auto& item) { return file.find(item.first); }))
    return false;
  for (const auto& [name, tensor] : state) {
    const TensorView* view = file.find(name);
    if (!view) {
      refuse(place(file, name), "is missing", shape_text(tensor.sizes()),
             "give all weights, or none for fresh ones");
    }
    if (const Dtype dtype = dtype_of(tensor); view->dtype != dtype) {
      refuse(place(file, name), "is " + to_string(view->dtype),
             to_string(dtype) + ", as 'x', or F32 with BF16");
    }
    if (tensor.sizes() != at::IntArrayRef(view->shape)) {
      refuse(place(file, name), "has shape " + shape_text(view->shape), shape_text(tensor.sizes()),
             "see --heads, --head-dim, --max-length and --set");
    }
    const at::Tensor given = copied(*view, tensor.scalar_type());
    refuse_not_finite(place(file, name), given);
    tensor.copy_(given);
  }
  return true;
}

void write_result(const MixerArguments& a, const NamedTensors& tensors) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    LRA_CHECK(tensor.is_contiguous() && tensor.is_cpu());
    views.push_back({.name = name,
                     .dtype = dtype_of(tensor),
                     .shape = tensor.sizes().vec(),
                     .data = {static_cast<const std::byte*>(tensor.const_data_ptr()),
                              static_cast<size_t>(tensor.nbytes())}});
  }
  make_folder(folder_of(a.out));
  write_safetensors(a.out, views, {{"mixer", a.name}, {"heads", std::to_string(a.heads)}});
}

ExitCode print_tensors(const Program& program, const MixerArguments& a, const NamedTensors& tensors,
                       bool loaded) {
  const std::string source = loaded ? "of the file" : "fresh";
  Json rows = Json::array();
  std::string text = a.name + ", weights " + source + "; wrote " + a.out + "\n";
  for (const auto& [name, tensor] : tensors) {
    rows.push_back({{"name", name}, {"shape", tensor.sizes().vec()}});
    text += "  " + name + " " + shape_text(tensor.sizes()) + "\n";
  }
  return print_result(
      program, {{"mixer", a.name}, {"out", a.out}, {"weights", source}, {"tensors", rows}}, text);
}

}  // namespace

ExitCode run_mixer(const Program& program, const MixerArguments& a) {
  end_at_first_signal();
  std::error_code ignored;
  if (std::filesystem::equivalent(a.in, a.out, ignored)) {
    refuse("--out", a.out + " is the input file", "another file");
  }
  refuse_to_overwrite(a.out, {.name = "a result of a mixer", .marks = {"", "\"mixer\""}}, "--out");
  const at::NoGradGuard no_grad;
  const mixers::LayerSpec& spec = mixers::find_mixer(a.name);
  const auto file = SafetensorsFile::open(a.in);
  const at::Tensor x_BLD = read_input(file), mask_BL = read_mask(file, x_BLD);
  const at::Device device(program.common.device);
  const layers::Initializer init(static_cast<uint64_t>(a.seed.value_or(0)), device);
  const auto mixer = spec.make(init, a.settings, shape_of(a, x_BLD));
  mixer->to(ops::wide_type(x_BLD));
  NamedTensors tensors = state_of(*mixer);
  refuse_unknown_tensors(file, tensors);
  const bool loaded = load_weights(file, tensors);
  if (loaded && a.seed) {
    refuse("--seed", "the file has its own weights", "", "leave out --seed or the weights");
  }
  layers::Context context;
  if (mask_BL.defined()) context.mask_BL = mask_BL.to(device);
  const at::Tensor y_BLD = mixer->forward(x_BLD.to(device), context).contiguous();
  tensors.insert(tensors.begin(), {kOutput, y_BLD});
  for (auto& [name, tensor] : tensors) tensor = tensor.cpu();
  write_result(a, tensors);
  return print_tensors(program, a, tensors, loaded);
}

}  // namespace lra::cli
