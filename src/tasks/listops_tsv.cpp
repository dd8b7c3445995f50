#include "tasks/listops_tsv.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/parallel.h"
#include "base/text_format.h"
#include "tasks/files.h"
#include "tasks/stopping.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 1024;            // lines parsed together
constexpr size_t kMaxLineBytes = 1 << 20;  // an official line has at most 20 kB
constexpr std::string_view kHeader = "Source\tTarget";

struct ParsedLine {
  std::vector<uint8_t> symbols;
  int label = -1;
  std::string problem, expected;  // problem empty when all is well
};

// Takes the next line off `rest`, without its line end.
std::string_view take_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The field without the quotes around it. No field of these files holds a quote of its own.
std::string_view unquoted(std::string_view field) {
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
    return field.substr(1, field.size() - 2);
  }
  return field;
}

std::string describe(const ListOpsResult& result, const std::string& unit) {
  return std::string(result.problem) + " at " + unit + " " + std::to_string(result.position + 1);
}

ParsedLine parse_line(std::string_view line, const ListOpsTsvLimits& limits) {
  ParsedLine parsed;
  const auto refuse = [&](std::string problem, std::string expected) {
    parsed.problem = std::move(problem);
    parsed.expected = std::move(expected);
    return std::move(parsed);
  };
  if (line.size() > kMaxLineBytes) {
    return refuse("line has " + std::to_string(line.size()) + " bytes",
                  "at most " + std::to_string(kMaxLineBytes));
  }
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) return refuse("line has no TAB", "expression TAB target");
  const std::string_view target = unquoted(line.substr(tab + 1));
  if (target.size() != 1 || target[0] < '0' || target[0] > '9') {
    return refuse("target is '" + printable(target.substr(0, 40)) + "'", "one digit");
  }
  const ListOpsResult text = parse_listops(unquoted(line.substr(0, tab)), parsed.symbols);
  if (!text.ok()) return refuse(describe(text, "character"), "a ListOps expression");
  const auto length = static_cast<int64_t>(parsed.symbols.size());
  if (length > limits.max_tokens) {
    return refuse("expression has " + std::to_string(length) + " tokens",
                  "at most " + std::to_string(limits.max_tokens));
  }
  const ListOpsResult result = evaluate_listops(parsed.symbols, limits.arity);
  if (!result.ok()) return refuse(describe(result, "token"), "a ListOps expression");
  for (const uint8_t symbol : parsed.symbols) {
    if (symbol >= kListOpsVocabulary) {
      return refuse("operator " + std::string(listops_symbol_text(symbol)) + "",
                    "[MIN, [MAX, [MED or [SM");
    }
  }
  parsed.label = target[0] - '0';
  if (result.value != parsed.label) {
    return refuse("target is " + std::string(target) + ", the expression evaluates to " +
                      std::to_string(result.value),
                  "the value of the expression");
  }
  return parsed;
}

}  // namespace

void parse_listops_tsv(std::string_view text, const std::string& name,
                       const ListOpsTsvLimits& limits, const ListOpsLineSink& sink) {
  std::string_view rest = text;
  const std::string_view header = take_line(rest);
  if (header != kHeader && header != "\"Source\"\t\"Target\"") {
    throw Error({.where = name + ":1",
                 .what = "header is '" + printable(header.substr(0, 40)) + "'",
                 .expected = "Source TAB Target",
                 .advice = "is this an official listops-1000 file?"});
  }
  int64_t line_number = 1;
  while (!rest.empty()) {
    throw_if_stopped();
    std::vector<std::string_view> lines;
    while (lines.size() < kBlock && !rest.empty()) lines.push_back(take_line(rest));
    std::vector<ParsedLine> parsed(lines.size());
    parallel_for_each(static_cast<int64_t>(lines.size()), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      parsed[at] = parse_line(lines[at], limits);
    });
    for (const ParsedLine& line : parsed) {
      ++line_number;
      if (!line.problem.empty()) {
        throw Error({.where = name + ":" + std::to_string(line_number),
                     .what = line.problem,
                     .expected = line.expected,
                     .advice = ""});
      }
      sink(line.symbols, line.label);
    }
  }
}

void read_listops_tsv(const std::string& path, const ListOpsTsvLimits& limits,
                      const ListOpsLineSink& sink) {
  const MappedFile file(path);
  parse_listops_tsv({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path,
                    limits, sink);
}

void append_listops_line(std::span<const uint8_t> symbols, int label, std::string& out) {
  append_curried_listops(symbols, out);
  out += '\t';
  out += static_cast<char>('0' + label);
  out += "\r\n";
}

std::array<std::string, 3> find_listops_files(const std::string& folder) {
  for (const char* below : {".", "listops-1000", "listops", "lra_release/listops-1000",
                            "lra_release/lra_release/listops-1000"}) {
    const fs::path base = fs::path(folder) / below;
    std::array<std::string, 3> files;
    for (size_t i = 0; i < files.size(); ++i) {
      constexpr std::array<const char*, 3> kNames = {"basic_train.tsv", "basic_val.tsv",
                                                     "basic_test.tsv"};
      files[i] = (base / kNames[i]).lexically_normal().string();
    }
    const auto exists = [](const std::string& file) { return is_file(file); };
    if (std::all_of(files.begin(), files.end(), exists)) return files;
  }
  return {};
}

}  // namespace lra::tasks
