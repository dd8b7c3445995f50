// toml++ behind ConfigTable, so that only this file pays for its headers.
#include "io/toml.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "base/text_format.h"
#include "base/utf8.h"

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
                 .what = "nested deeper than " + std::to_string(kMaxConfigDepth) + " levels"});
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
  throw Error({.where = where, .what = "dates and times are not supported"});
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
    throw Error({.where = name, .what = "file is larger than 64 KiB", .expected = "a config"});
  }
  if (std::count(text.begin(), text.end(), '.') > kMaxDots) {
    throw Error({.where = name,
                 .what = "has more than " + std::to_string(kMaxDots) + " dots",
                 .expected = "a config"});
  }
  try {
    return convert_table(toml::parse(text), name, 0);
  } catch (const toml::parse_error& e) {
    throw Error({.where = name + ":" + std::to_string(e.source().begin.line),
                 .what = "not valid TOML: " + std::string(e.description())});
  }
}

ConfigTable parse_toml_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw Error({.where = path, .what = "cannot be read", .expected = "a TOML file"});
  }
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return parse_toml(text, path);
}

void apply_override(ConfigTable& table, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error({.where = "--set " + assignment,
                 .what = "there is no key=value",
                 .expected = "for example --set train.steps=100"});
  }
  if (!is_utf8(assignment)) {
    throw Error({.where = "--set " + printable(assignment),
                 .what = "is not UTF-8",
                 .expected = "text that a config file can hold"});
  }
  const std::string key = assignment.substr(0, equals), text = assignment.substr(equals + 1);
  const std::string where = "--set " + key;
  if (std::count(key.begin(), key.end(), '.') >= kMaxConfigDepth) {
    throw Error({.where = "--set",
                 .what = "a key of over " + std::to_string(kMaxConfigDepth) + " parts",
                 .expected = "for example --set train.steps=100"});
  }
  ConfigTable* target = &table;
  size_t begin = 0;
  for (size_t dot; (dot = key.find('.', begin)) != std::string::npos; begin = dot + 1) {
    ConfigTable& inner = target->table(key.substr(begin, dot - begin));
    target = &inner;
  }
  ConfigValue value{text, where};
  if (!is_bare_key(text) || text == "true" || text == "false" || text == "inf" || text == "nan" ||
      std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-') {
    try {
      const ConfigTable parsed = parse_toml("value = " + text + "\n", where);
      // A line end in the text would start a second key.
      if (parsed.size() == 1) value.value = parsed.find("value")->value;
    } catch (const Error&) {
      // Text that is not TOML is a path or a name, taken literally.
    }
  }
  target->set(key.substr(begin), std::move(value));
}

}  // namespace lra
