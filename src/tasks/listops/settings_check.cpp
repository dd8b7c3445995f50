#include "tasks/listops/settings_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/rng.h"
#include "base/text_format.h"
#include "data/drawn_examples.h"
#include "tasks/listops/expression.h"
#include "tasks/split_checks.h"
#include "tasks/split_shift.h"

namespace lra::tasks {
namespace {

constexpr int64_t kMostRead = 1000, kNumDrawn = 300;

constexpr std::array<const char*, 3> kExpressionTraits = {"tokens", "levels of operators",
                                                          "arguments per operator"};
using ExpressionTraits = std::array<std::vector<double>, kExpressionTraits.size()>;

// `symbols` is a well-formed expression.
void add_traits(std::span<const uint8_t> symbols, ExpressionTraits& traits) {
  int64_t depth = 0, deepest = 0, num_operators = 0, num_items = 0;
  for (const uint8_t symbol : symbols) {
    const bool opens = is_listops_operator(symbol), closes = symbol == kListOpsClose;
    num_items += !closes;
    num_operators += opens;
    depth += opens ? 1 : closes ? -1 : 0;
    deepest = std::max(deepest, depth);
  }
  traits[0].push_back(static_cast<double>(symbols.size()));
  traits[1].push_back(static_cast<double>(deepest));
  if (num_operators == 0) return;
  // All but the root are arguments.
  traits[2].push_back(static_cast<double>(num_items - 1) / static_cast<double>(num_operators));
}

// The traits of expressions as the task draws them; nullopt if it refuses a million trees.
std::optional<ExpressionTraits> drawn_traits(const ListOpsSettings& settings) {
  ExpressionTraits traits;
  std::vector<uint8_t> symbols;
  try {
    for (uint32_t i = 0; i < kNumDrawn; ++i) {
      draw_listops(settings, derive_key(0, RandomUse::kAnalysis, i), symbols);
      add_traits(symbols, traits);
    }
  } catch (const Error& error) {
    if (error.code() == ExitCode::kStopped) throw;
    return std::nullopt;
  }
  return traits;
}

ExpressionTraits read_traits(const Split& split) {
  ExpressionTraits traits;
  for (const int64_t i : drawn_examples(split.size(), kMostRead)) {
    add_traits(split.stored_bytes(i), traits);
  }
  return traits;
}

}  // namespace

std::vector<std::string> doubts_of_settings(const Dataset& dataset,
                                            const ListOpsSettings& settings) {
  std::vector<std::string> doubts;
  const std::optional<ExpressionTraits> drawn = drawn_traits(settings);
  if (!drawn) return doubts;
  for (const char* name : kSplitNames) {
    if (!dataset.has(name) || dataset.split(name).size() < kFewestToJudge) continue;
    const ExpressionTraits read = read_traits(dataset.split(name));
    for (size_t t = 0; t < kExpressionTraits.size(); ++t) {
      const Spread wanted = Spread::of((*drawn)[t]), found = Spread::of(read[t]);
      if (!is_shifted(wanted, found)) continue;
      doubts.push_back(std::string("expressions of ") + name + " have " + fixed(found.mean, 1) +
                       " " + kExpressionTraits[t] + " on average, those of the task's settings " +
                       fixed(wanted.mean, 1));
      break;
    }
  }
  return doubts;
}

}  // namespace lra::tasks
