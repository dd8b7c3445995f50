#include "io/toml.h"
#include "mixers/sequence_layer.h"

#include <gtest/gtest.h>

#include <set>

namespace lra::mixers {
namespace {

TEST(MixerTable, NamesAreUniqueAndFoundAgain) {
  std::set<std::string_view> seen;
  for (const LayerSpec* spec : kAllMixers) {
    EXPECT_TRUE(seen.insert(spec->name).second) << spec->name;
    EXPECT_EQ(&find_mixer(std::string(spec->name)), spec);
    EXPECT_FALSE(spec->title.empty() || spec->paper.empty() || spec->cost.empty()) << spec->name;
  }
}

TEST(MixerTable, SuggestsTheNearestName) {
  try {
    find_mixer("linfomer");
    FAIL() << "found a mixer that does not exist";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "unknown model 'linfomer'; did you mean 'linformer'?");
    EXPECT_EQ(error.code(), ExitCode::kUserError);
  }
}

std::shared_ptr<SequenceLayer> make(const LayerSpec& spec, const ConfigTable& settings) {
  return spec.make(layers::Initializer(1), settings,
                   {.model_dim = 4, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

TEST(MixerTable, RefusesUnknownSettings) {
  const ConfigTable settings = parse_toml("no_such_setting = 3", "model.toml");
  for (const LayerSpec* spec : kAllMixers) EXPECT_THROW(make(*spec, settings), Error) << spec->name;
}

TEST(MixerTable, TakesTheDefaultsThatHelpDescribes) {
  for (const LayerSpec* spec : kAllMixers) {
    ConfigTable settings;
    for (const FieldInfo& field : spec->describe()) {
      EXPECT_FALSE(field.help.empty()) << spec->name << " " << field.name;
      apply_override(settings, field.name + "=" + field.default_value);
    }
    EXPECT_NO_THROW(make(*spec, settings)) << spec->name;
  }
}

TEST(MixerTable, RefusesSettingsOutOfRange) {
  EXPECT_THROW(make(kLocal, parse_toml("block = 0", "model.toml")), Error);
  EXPECT_THROW(make(kLinformer, parse_toml("rank = 0", "model.toml")), Error);
  EXPECT_THROW(make(kLinearTransformer, parse_toml("eps = -1.0", "model.toml")), Error);
}

}  // namespace
}  // namespace lra::mixers
