// The TOML reader: toml++ behind ConfigTable, so that only this file pays for its headers.
#include <toml++/toml.h>
#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/config.h"

namespace lra {
namespace {

// toml++ frees nested tables by recursion, and a dotted key nests one with every dot: 32,000 of
// them use up a stack of 8 MiB before the depth can be looked at.
constexpr std::ptrdiff_t kMaxDots = 10000;
constexpr size_t kMaxBytes = 64 << 10;

ConfigTable convert_table(const toml::table& table, const std::string& name, int depth);

ConfigValue convert(const toml::node& node, const std::string& name, int depth) {
  const std::string where =
      name.starts_with("--") ? name : name + ":" + std::to_string(node.source().begin.line);
  if (depth > kMaxConfigDepth) {
    throw Error({.where = where,
                 .what = "nested deeper than " + std::to_string(kMaxConfigDepth) + " levels",
                 .expected = "",
                 .advice = ""});
  }
  if (const auto* v = node.as_boolean()) return {v->get(), where};
  if (const auto* v = node.as_integer()) return {v->get(), where};
  if (const auto* v = node.as_floating_point()) return {v->get(), where};
  if (const auto* v = node.as_string()) return {v->get(), where};
  if (const auto* v = node.as_table()) return {convert_table(*v, name, depth), where};
  if (const auto* v = node.as_array()) {
    ConfigList list;
    for (const auto& item : *v) list.push_back(convert(item, name, depth + 1));
    return {std::move(list), where};
  }
  throw Error(
      {.where = where, .what = "dates and times have no use here", .expected = "", .advice = ""});
}

ConfigTable convert_table(const toml::table& table, const std::string& name, int depth) {
  // toml++ sorts keys; the order of the file is the order of the source lines.
  std::vector<std::pair<toml::source_position, std::string>> order;
  for (const auto& [key, node] : table)
    order.emplace_back(key.source().begin, std::string(key.str()));
  std::sort(order.begin(), order.end());
  ConfigTable result;
  for (const auto& [position, key] : order)
    result.set(key, convert(*table.get(key), name, depth + 1));
  return result;
}

}  // namespace

ConfigTable parse_toml(std::string_view text, const std::string& name) {
  if (text.size() > kMaxBytes) {
    throw Error({.where = name,
                 .what = "file is larger than 64 KiB",
                 .expected = "a config",
                 .advice = ""});
  }
  if (std::count(text.begin(), text.end(), '.') > kMaxDots) {
    throw Error({.where = name,
                 .what = "has more than " + std::to_string(kMaxDots) + " dots",
                 .expected = "a config",
                 .advice = ""});
  }
  try {
    return convert_table(toml::parse(text), name, 0);
  } catch (const toml::parse_error& e) {
    throw Error({.where = name + ":" + std::to_string(e.source().begin.line),
                 .what = "not valid TOML: " + std::string(e.description()),
                 .expected = "",
                 .advice = ""});
  }
}

ConfigTable parse_toml_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw Error({.where = path, .what = "cannot be read", .expected = "a TOML file", .advice = ""});
  }
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return parse_toml(text, path);
}

}  // namespace lra
