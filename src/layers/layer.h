// The base of everything that has parameters: modules made under names, which decide the initial
// weights; parameters with optimizer settings of their own.
//
// Goals of the room `layers`: the parts that all models share, initialized by name, so that adding
// a parameter changes no other. Non-goals: movement of information along the sequence, parts of a
// single model.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "layers/initializer.h"

namespace lra::layers {

// Buffers of a module (register_buffer) are state: they are saved, hashed and restored with the
// parameters. Values that can be recomputed are plain members. Both are float32.
class Layer : public torch::nn::Module {
 public:
  // The group of each own parameter that is not in the main one, by name: training/group_config.h.
  const std::map<std::string, std::string>& groups() const { return groups_; }

 protected:
  // A part of this, M(init.of(name), args...).
  template <typename M, typename... Args>
  std::shared_ptr<M> add(const std::string& name, const Initializer& init, Args&&... args) {
    return register_module(name, std::make_shared<M>(init.of(name), std::forward<Args>(args)...));
  }
  // Parameters drawn from init.of(name).
  at::Tensor add_normal(const std::string& name, const Initializer& init, at::IntArrayRef sizes,
                        double deviation) {
    return register_parameter(name, init.of(name).normal(sizes, deviation));
  }
  at::Tensor add_xavier(const std::string& name, const Initializer& init, int64_t rows,
                        int64_t columns) {
    return register_parameter(name, init.of(name).xavier(rows, columns));
  }
  at::Tensor register_in_group(const std::string& group, const std::string& name,
                               at::Tensor initial) {
    groups_[name] = group;
    return register_parameter(name, std::move(initial));
  }

 private:
  std::map<std::string, std::string> groups_;
};

}  // namespace lra::layers
