#include "tasks/listops/tsv.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/parallel.h"
#include "base/quoted.h"
#include "data/files.h"
#include "data/manifest.h"

namespace lra::tasks {
namespace {

constexpr size_t kBlockLines = 1024;       // parsed together, at most
constexpr size_t kMaxLineBytes = 1 << 20;  // an official line has at most 20 kB
constexpr std::string_view kHeader = "Source\tTarget";

// The three files that were named one by one, in the order of the splits; an empty path for a split
// that none of the names fits.
std::array<std::string, 3> named_files(const std::vector<std::string>& sources) {
  std::array<std::string, 3> files;
  for (const std::string& source : sources) {
    const std::string name = std::filesystem::path(source).filename().string();
    for (size_t i = 0; i < files.size(); ++i) {
      if (name.ends_with(std::string("_") + kSplitNames[i] + ".tsv")) files[i] = source;
    }
  }
  return files;
}

struct ParsedLine {
  std::vector<uint8_t> symbols;
  int label = -1;
  std::string problem, expected;  // problem empty when all is well
};

void check_header(std::string_view header, const std::string& name) {
  if (header == kHeader || header == "\"Source\"\t\"Target\"") return;
  const bool is_example = header.starts_with('(') || header.starts_with('[');
  throw Error({.where = name + ":1",
               .what = is_example ? "the file has no header: its first line is an example"
                                  : "header is " + in_quotes(header),
               .expected = "Source TAB Target",
               .advice = "is this an official listops-1000 file?"});
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
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) return refuse("line has no TAB", "expression TAB target");
  const std::string_view target = unquoted(line.substr(tab + 1));
  if (target.size() != 1 || target[0] < '0' || target[0] > '9') {
    return refuse("target is " + in_quotes(target), "one digit");
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

// Lines that are parsed together, by all threads.
class Block {
 public:
  explicit Block(const ListOpsTsvLimits& limits) : limits_(limits) {}

  void add(std::string_view line) {
    text_ += line;
    ends_.push_back(text_.size());
  }
  size_t num_lines() const { return ends_.size(); }
  bool is_full() const { return num_lines() >= kBlockLines || text_.size() >= limits_.block_bytes; }
  // Gives the lines to the sink in order, and is empty then. `number` is that of the first line.
  void parse(const std::string& name, int64_t number, const ListOpsLineSink& sink) {
    std::vector<ParsedLine> parsed(num_lines());
    parallel_for_each(static_cast<int64_t>(num_lines()), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      const size_t begin = at == 0 ? 0 : ends_[at - 1];
      parsed[at] = parse_line(std::string_view(text_).substr(begin, ends_[at] - begin), limits_);
    });
    for (const ParsedLine& line : parsed) {
      if (!line.problem.empty()) {
        throw Error({.where = name + ":" + std::to_string(number),
                     .what = line.problem,
                     .expected = line.expected});
      }
      sink(line.symbols, line.label);
      ++number;
    }
    text_.clear();
    ends_.clear();
  }

 private:
  const ListOpsTsvLimits& limits_;
  std::string text_;
  std::vector<size_t> ends_;  // of the lines in text_
};

}  // namespace

std::array<std::string, 3> listops_source_files(const std::vector<std::string>& sources) {
  std::string found;
  if (sources.size() == 1 && is_folder(sources[0])) {
    const std::vector<std::string> files = find_listops_files(sources[0]);
    if (!files.empty()) return {files[0], files[1], files[2]};
    found = "the folder holds " + quoted_list(data_names_in(sources[0]));
  } else {
    const std::array<std::string, 3> files = named_files(sources);
    if (sources.size() == 3 && std::ranges::none_of(files, &std::string::empty)) return files;
    found = "given " + quoted_list(sources);
  }
  throw Error({.where = sources[0],
               .what = "no official ListOps files; " + found,
               .expected =
                   "a folder with basic_train.tsv, basic_val.tsv and basic_test.tsv, or one "
                   "above it, or these three files",
               .advice = "'lra data make listops --out FOLDER' generates the data"});
}

std::vector<std::string> find_listops_files(const std::string& root) {
  return find_file_set(root, {.title = "the official ListOps files",
                              .folders = {".", "listops-1000", "lra_release/listops-1000",
                                          "lra_release/lra_release/listops-1000"},
                              .files = {"basic_train.tsv", "basic_val.tsv", "basic_test.tsv"}});
}

void read_listops_tsv(const ReadAt& read_at, const std::string& name,
                      const ListOpsTsvLimits& limits, const ListOpsLineSink& sink) {
  Block block(limits);
  int64_t num_lines = 0;
  const auto parse_block = [&] {
    block.parse(name, num_lines - static_cast<int64_t>(block.num_lines()) + 1, sink);
  };
  read_lines(read_at, name,
             [&](std::string_view line, int64_t number, uint64_t) {
               num_lines = number;
               if (number == 1) return check_header(line, name);
               block.add(line);
               if (block.is_full()) parse_block();
             },
             {.block_bytes = limits.block_bytes, .line_bytes = kMaxLineBytes});
  if (num_lines == 0) check_header("", name);
  parse_block();
}

void append_listops_line(std::span<const uint8_t> symbols, int label, std::string& out) {
  append_curried_listops(symbols, out);
  out += '\t';
  out += static_cast<char>('0' + label);
  out += "\r\n";
}

}  // namespace lra::tasks
