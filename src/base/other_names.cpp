#include "base/other_names.h"

#include <algorithm>
#include <utility>

namespace lra {
namespace {

constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"lr", "learning_rate"},
    {"wd", "weight_decay"},
    {"bs", "batch_size"},
    {"batch", "batch_size"},
    {"epoch", "epochs"},
    {"step", "steps"},
    {"max_steps", "steps"},
    {"num_steps", "steps"},
    {"num_epochs", "epochs"},
    {"warmup", "warmup_steps"},
    {"grad_clip", "clip_norm"},
    {"max_grad_norm", "clip_norm"},
    {"scheduler", "schedule"},
    {"dim", "embed_dim"},
    {"hidden_size", "embed_dim"},
    {"d_model", "embed_dim"},
    {"width", "embed_dim"},
    {"depth", "layers"},
    {"num_layers", "layers"},
    {"n_layers", "layers"},
    {"num_heads", "heads"},
    {"n_heads", "heads"},
    {"max_length", "length"},
    {"seq_len", "length"},
    {"gradient_accumulation", "accumulate"}};

}  // namespace

std::string own_name(const std::string& name) {
  for (const auto& [other, own] : kOtherNames) {
    if (is_same_name(name, other)) return own;
  }
  return name;
}

bool is_same_name(std::string a, std::string b) {
  for (std::string* name : {&a, &b})
    std::erase_if(*name, [](char c) { return c == '_' || c == '-'; });
  return a == b;
}

}  // namespace lra
