// The operators that an interpreter implements are implemented here in C++.
#include "mixers/python_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include "io/toml.h"
#include "mixers/sequence_layer.h"

namespace lra::mixers {
namespace {

using ::testing::HasSubstr;

constexpr const char* kClass = "package.module:Class";

std::tuple<int64_t, std::vector<at::Tensor>, std::vector<at::Tensor>, std::string, std::string>
make_scale(const std::string&, const std::string& settings, const std::string&, int64_t) {
  if (settings != "{\"start\":2}") return {-1, {}, {}, "", "TypeError: " + settings};
  return {7,
          {at::full({4}, 2.0), at::zeros({4})},
          {at::ones({1})},
          R"({"parameters": ["inner.0.scale", "shift"], "groups": ["optim1", ""],
              "buffers": ["inner.state"]})",
          ""};
}

std::tuple<at::Tensor, std::string> forward_twice(int64_t layer, const at::Tensor& x,
                                                  const std::optional<at::Tensor>&,
                                                  const std::optional<at::Tensor>&, bool training,
                                                  double, double, bool, int64_t, int64_t, int64_t,
                                                  int64_t) {
  if (training) return {x, "ValueError: not in training"};
  return {x * static_cast<double>(layer), ""};
}

// An interpreter, as long as it lives.
class FakeInterpreter {
 public:
  FakeInterpreter()
      : library_(torch::Library::IMPL, "lra_python", c10::DispatchKey::CompositeImplicitAutograd,
                 __FILE__, __LINE__) {
    library_.impl("make", make_scale);
    library_.impl("forward", forward_twice);
    library_.impl("drop", [](int64_t) { return std::string(); });
  }

 private:
  torch::Library library_;
};

std::shared_ptr<SequenceLayer> make(const std::string& settings) {
  return kPythonLayer.make(
      layers::Initializer(1),
      parse_toml("class = '" + std::string(kClass) + "'\n" + settings, "model.toml"),
      {.model_dim = 4, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PythonLayer, IsFoundByANameWithAColon) {
  EXPECT_EQ(&find_mixer(kClass), &kPythonLayer);
  EXPECT_FALSE(is_python_class("linformer"));
}

TEST(PythonLayer, NeedsAnInterpreter) {
  EXPECT_FALSE(has_interpreter());
  EXPECT_THROW(make("start = 2"), NeedsInterpreter);
  EXPECT_THAT(error_of([] { make("start = 2"); }), HasSubstr("python -m lra"));
}

TEST(PythonLayer, HoldsTheTensorsUnderTheirNamesAndGroups) {
  const FakeInterpreter interpreter;
  const auto layer = make("start = 2");
  const auto parameters = layer->named_parameters();
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters["inner.0.scale"].numel(), 4);
  EXPECT_TRUE(parameters["shift"].requires_grad());
  EXPECT_TRUE(layer->named_buffers().contains("inner.state"));
  const auto* inner = dynamic_cast<const layers::Layer*>(layer->named_modules()["inner.0"].get());
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(inner->groups().at("scale"), "optim1");
}

TEST(PythonLayer, ReportsWhatTheClassReports) {
  const FakeInterpreter interpreter;
  EXPECT_THAT(error_of([] { make("start = 3"); }), HasSubstr("package.module:Class: TypeError"));
  const auto layer = make("start = 2");
  const at::Tensor x = at::ones({1, 2, 4});
  EXPECT_TRUE(layer->forward(x, {}).equal(x * 7));
  EXPECT_THROW(layer->forward(x, {.training = true}), PythonError);
}

TEST(PythonLayer, WantsTheNameOfAClass) {
  EXPECT_THAT(error_of([] { kPythonLayer.resolve({}); }), HasSubstr("mixer.class: is missing"));
}

}  // namespace
}  // namespace lra::mixers
