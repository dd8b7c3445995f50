#include "training/settings/later_settings.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace lra::training {
namespace {

struct LaterSetting {
  std::string_view section, of, key;
};
constexpr LaterSetting kLaterSettings[] = {
    {"train", "", "class_weights"},     {"train", "", "label_smoothing"},
    {"task", "listops", "min_args"},    {"task", "listops", "tree"},
    {"task", "listops", "operators"},   {"task", "listops", "filler"},
    {"mixer", "transformer", "causal"}, {"mixer", "local", "causal"},
    {"mixer", "bigbird", "causal"},     {"mixer", "linear_transformer", "causal"},
    {"mixer", "performer", "causal"},   {"mixer", "min_gru", "forget_gate"}};

}  // namespace

bool is_later_setting(std::string_view key) {
  const size_t dot = std::min(key.find('.'), key.size());
  const std::string_view section = key.substr(0, dot),
                         name = key.substr(std::min(dot + 1, key.size()));
  return std::ranges::any_of(kLaterSettings, [&](const LaterSetting& later) {
    return later.section == section && later.key == name;
  });
}

void erase_later_settings(ConfigTable& settings, const ConfigTable& usual, std::string_view section,
                          std::string_view of) {
  for (const LaterSetting& later : kLaterSettings) {
    if (later.section != section || later.of != of) continue;
    const auto text = [&](const ConfigTable& table) {
      ConfigTable one;
      if (const ConfigValue* value = table.find(later.key)) one.set("value", *value);
      return canonical_text(one);
    };
    if (text(settings) == text(usual)) settings.erase(later.key);
  }
}

}  // namespace lra::training
