#include "tasks/listops/tsv.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/parallel.h"
#include "base/quoted.h"
#include "base/text_format.h"

namespace lra::tasks {
namespace {

constexpr size_t kBlockLines = 1024;       // parsed together, at most
constexpr size_t kMaxLineBytes = 1 << 20;  // an official line has at most 20 kB
constexpr std::string_view kHeader = "Source\tTarget";

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
