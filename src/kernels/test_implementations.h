// Tests that choose the implementation of kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "kernels/choice.h"

namespace lra::kernels {

// LRA_KERNELS, set or unset for one test; the old value comes back at its end.
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

// Runs a test with each of the implementations that LRA_INSTANTIATE_IMPLEMENTATIONS names, where
// the processor has it.
class ImplementationTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!isa_available(GetParam())) {
      GTEST_SKIP() << "this processor has no " << isa_name(GetParam());
    }
  }

 private:
  const KernelsVariable forced_{isa_name(GetParam())};
};

#define LRA_INSTANTIATE_IMPLEMENTATIONS(Suite, ...)                              \
  INSTANTIATE_TEST_SUITE_P(Implementations, Suite, testing::Values(__VA_ARGS__), \
                           [](const auto& info) { return isa_name(info.param); })

}  // namespace lra::kernels
