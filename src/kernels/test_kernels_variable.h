// LRA_KERNELS, set or unset for one test; the old value comes back at its end.
#pragma once

#include <cstdlib>
#include <string>

namespace lra::kernels {

class KernelsVariable {
 public:
  // Null: unset.
  explicit KernelsVariable(const char* value) {
    const char* before = std::getenv("LRA_KERNELS");
    was_set_ = before != nullptr;
    if (was_set_) before_ = before;
    set(value);
  }
  ~KernelsVariable() { set(was_set_ ? before_.c_str() : nullptr); }
  KernelsVariable(const KernelsVariable&) = delete;
  KernelsVariable& operator=(const KernelsVariable&) = delete;

 private:
  static void set(const char* value) {
    value ? setenv("LRA_KERNELS", value, 1) : unsetenv("LRA_KERNELS");
  }
  bool was_set_ = false;
  std::string before_;
};

}  // namespace lra::kernels
