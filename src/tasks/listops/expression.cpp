#include "tasks/listops/expression.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace lra::tasks {
namespace {

constexpr std::array<std::string_view, 19> kSymbolText = {
    "?", "[MIN", "[MAX", "[MED", "[SM", "]", "0", "1",      "2",     "3",
    "4", "5",    "6",    "7",    "8",   "9", "?", "[FIRST", "[LAST",
};

int median(std::span<const uint8_t> values) {
  std::array<int32_t, 10> counts{};
  for (const uint8_t value : values) ++counts[value];
  const auto num = static_cast<int64_t>(values.size());
  const auto ranked = [&](int64_t rank) {
    int value = 0;
    for (int64_t below = counts[0]; below <= rank; below += counts[++value]) {
    }
    return value;
  };
  return (ranked((num - 1) / 2) + ranked(num / 2)) / 2;
}

int apply(uint8_t op, std::span<const uint8_t> values) {
  switch (op) {
    case kListOpsMin:
      return *std::min_element(values.begin(), values.end());
    case kListOpsMax:
      return *std::max_element(values.begin(), values.end());
    case kListOpsMed:
      return median(values);
    case kListOpsFirst:
      return values.front();
    case kListOpsLast:
      return values.back();
    default: {
      LRA_CHECK_EQ(int{op}, int{kListOpsSumMod});
      int64_t sum = 0;
      for (const uint8_t value : values) sum += value;
      return static_cast<int>(sum % 10);
    }
  }
}

ListOpsResult problem_at(const char* problem, size_t position) {
  return {.value = -1, .problem = problem, .position = static_cast<int64_t>(position)};
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_paren(char c) { return c == '(' || c == ')'; }

// The symbol of one token; kListOpsUnknown when there is none.
uint8_t symbol_of(std::string_view token) {
  if (token.size() == 1) {
    if (token[0] >= '0' && token[0] <= '9') {
      return static_cast<uint8_t>(kListOpsDigit0 + (token[0] - '0'));
    }
    return token[0] == ']' || token[0] == 'X' ? kListOpsClose : kListOpsUnknown;
  }
  for (const uint8_t op :
       {kListOpsMin, kListOpsMax, kListOpsMed, kListOpsSumMod, kListOpsFirst, kListOpsLast}) {
    if (token == kSymbolText[op]) return op;
  }
  return kListOpsUnknown;
}

// Takes the next token or parenthesis, and the white space in front of it, off `rest`; empty at the
// end.
std::string_view take_token(std::string_view& rest) {
  size_t begin = 0;
  while (begin < rest.size() && is_space(rest[begin])) ++begin;
  size_t end = begin;
  while (end < rest.size() && !is_space(rest[end]) && !is_paren(rest[end])) ++end;
  if (end == begin && end < rest.size()) ++end;  // a parenthesis
  const std::string_view token = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return token;
}

// Tokens and parentheses separated by single spaces, `]` for X.
std::string normal_text(std::string_view text) {
  std::string out;
  while (true) {
    const std::string_view token = take_token(text);
    if (token.empty()) return out;
    if (!out.empty()) out += ' ';
    out += token == "X" ? "]" : token;
  }
}

// Arguments of each operator, by symbol index. False when brackets do not match.
bool count_arguments(std::span<const uint8_t> symbols, std::vector<uint32_t>& counts) {
  counts.assign(symbols.size(), 0);
  std::vector<size_t> open;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] == kListOpsClose) {
      if (open.empty()) return false;
      open.pop_back();
      continue;
    }
    if (!open.empty()) ++counts[open.back()];
    if (is_listops_operator(symbols[i])) open.push_back(i);
  }
  return open.empty();
}

}  // namespace

std::string_view listops_symbol_text(uint8_t symbol) {
  return symbol < kSymbolText.size() ? kSymbolText[symbol] : "?";
}

int64_t listops_depth(std::span<const uint8_t> symbols) {
  int64_t open = 0, deepest = 0;
  for (const uint8_t symbol : symbols) {
    open += is_listops_operator(symbol) - (symbol == kListOpsClose);
    deepest = std::max(deepest, open);
  }
  return deepest;
}

ListOpsResult evaluate_listops(std::span<const uint8_t> symbols, const ArityLimits& limits,
                               std::vector<int8_t>* node_values) {
  struct Frame {
    size_t symbol, first_value;
  };
  std::vector<Frame> frames;
  std::vector<uint8_t> values;
  if (node_values) node_values->assign(symbols.size(), -1);
  for (size_t i = 0; i < symbols.size(); ++i) {
    const uint8_t symbol = symbols[i];
    if (frames.empty() && i > 0) return problem_at("something follows the expression", i);
    if (is_listops_operator(symbol)) {
      frames.push_back({i, values.size()});
    } else if (is_listops_digit(symbol)) {
      values.push_back(static_cast<uint8_t>(symbol - kListOpsDigit0));
    } else if (symbol != kListOpsClose) {
      return problem_at("not a ListOps symbol", i);
    } else {
      if (frames.empty()) return problem_at("closing bracket without an operator", i);
      const Frame frame = frames.back();
      frames.pop_back();
      const std::span<const uint8_t> arguments = std::span(values).subspan(frame.first_value);
      const auto count = static_cast<int64_t>(arguments.size());
      if (count < std::max<int64_t>(1, limits.least)) {
        return problem_at("operator with too few arguments", frame.symbol);
      }
      if (count > limits.most) return problem_at("operator with too many arguments", frame.symbol);
      const int value = apply(symbols[frame.symbol], arguments);
      if (node_values) (*node_values)[frame.symbol] = static_cast<int8_t>(value);
      values.resize(frame.first_value);
      values.push_back(static_cast<uint8_t>(value));
    }
  }
  if (symbols.empty()) return problem_at("empty expression", 0);
  if (!frames.empty())
    return problem_at("operator without a closing bracket", frames.back().symbol);
  return {.value = values.front()};
}

ListOpsResult parse_listops(std::string_view text, std::vector<uint8_t>& symbols) {
  symbols.clear();
  bool has_parens = false;
  for (std::string_view rest = text;;) {
    const std::string_view token = take_token(rest);
    if (token.empty()) break;
    if (is_paren(token[0])) {
      has_parens = true;
      continue;
    }
    const uint8_t symbol = symbol_of(token);
    if (symbol == kListOpsUnknown) {
      return problem_at("not a ListOps token", text.size() - rest.size() - token.size());
    }
    symbols.push_back(symbol);
  }
  if (symbols.empty()) return problem_at("empty expression", 0);
  if (!has_parens) return {};
  std::vector<uint32_t> counts;
  if (!count_arguments(symbols, counts)) return problem_at("unbalanced bracket", text.size());
  std::string curried;
  append_curried_listops(symbols, curried);
  if (text == curried) return {};
  const std::string normal = normal_text(text);
  if (normal == curried) return {};
  const auto differ = std::mismatch(normal.begin(), normal.end(), curried.begin(), curried.end());
  return problem_at("parentheses do not follow the curried form",
                    static_cast<size_t>(differ.first - normal.begin()));
}

void append_curried_listops(std::span<const uint8_t> symbols, std::string& out) {
  std::vector<uint32_t> counts;
  LRA_CHECK(!symbols.empty() && count_arguments(symbols, counts));
  size_t depth = 0;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const uint8_t symbol = symbols[i];
    const bool is_operator = is_listops_operator(symbol);
    if (is_operator) {
      for (uint32_t k = 0; k <= counts[i]; ++k) out += "( ";
      ++depth;
    }
    out += kSymbolText[symbol];
    out += ' ';
    if (is_operator) continue;
    if (symbol == kListOpsClose) {
      out += ") ";
      --depth;
    }
    if (depth > 0) out += ") ";
  }
  out.pop_back();  // the space behind the last token
}

std::string render_listops(std::span<const uint8_t> symbols) {
  std::vector<int8_t> values;
  LRA_CHECK(evaluate_listops(symbols, {}, &values).ok());
  std::string out;
  size_t depth = 0;
  bool after_digit = false;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const uint8_t symbol = symbols[i];
    if (symbol == kListOpsClose) {
      --depth;
      after_digit = false;
      continue;
    }
    const bool is_digit = is_listops_digit(symbol);
    if (is_digit && after_digit) {
      out.back() = ' ';
    } else {
      out.append(depth * 2, ' ');
    }
    out += kSymbolText[symbol].substr(is_digit ? 0 : 1);
    if (!is_digit) {
      out += " = " + std::to_string(values[i]);
      ++depth;
    }
    out += '\n';
    after_digit = is_digit;
  }
  return out;
}

}  // namespace lra::tasks
