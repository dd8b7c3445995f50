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

// Why no test runs this implementation; empty if tests do.
inline std::string why_untested(Isa isa) {
  return isa_available(isa) ? "" : std::string("this processor has no ") + isa_name(isa);
}

// Runs a test with each of the implementations that LRA_INSTANTIATE_IMPLEMENTATIONS names, where
// the processor has it.
class ImplementationTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!why_untested_.empty()) GTEST_SKIP() << why_untested_;
  }

 private:
  const std::string why_untested_ = why_untested(GetParam());
  const KernelsVariable forced_{isa_name(GetParam())};
};

#define LRA_INSTANTIATE_IMPLEMENTATIONS(Suite, ...)                              \
  INSTANTIATE_TEST_SUITE_P(Implementations, Suite, testing::Values(__VA_ARGS__), \
                           [](const auto& info) { return isa_name(info.param); })

}  // namespace lra::kernels
