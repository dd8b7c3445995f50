// ListOps expressions: symbols, text forms and the one evaluator of the program.
//
// Nangia and Bowman: ListOps: A Diagnostic Dataset for Latent Tree Learning, NAACL 2018 (SRW). Tay
// et al. (2021) use longer ones with the operators MIN, MAX, MED and SM. An expression is kept
// flat, as the model reads it: operator, arguments, closing bracket. Nothing here is recursive, so
// depth is bounded only by memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lra::tasks {

// Token ids. The released pipeline numbers its symbols in the order of a Python set, which changes
// from process to process; this order is fixed. 0 is padding, 16 means "out of vocabulary" (it
// never occurs in our data). FIRST and LAST occur in Nangia and Bowman's files only, never in a
// model's vocabulary.
enum ListOpsSymbol : uint8_t {
  kListOpsPad = 0,
  kListOpsMin = 1,
  kListOpsMax = 2,
  kListOpsMed = 3,
  kListOpsSumMod = 4,
  kListOpsClose = 5,
  kListOpsDigit0 = 6,  // .. 15: digit 9
  kListOpsUnknown = 16,
  kListOpsFirst = 17,
  kListOpsLast = 18,
};
inline constexpr int64_t kListOpsVocabulary = 17;
inline constexpr int kNumListOpsClasses = 10;

constexpr bool is_listops_operator(uint8_t symbol) {
  return (symbol >= kListOpsMin && symbol <= kListOpsSumMod) || symbol == kListOpsFirst ||
         symbol == kListOpsLast;
}
constexpr bool is_listops_digit(uint8_t symbol) {
  return symbol >= kListOpsDigit0 && symbol < kListOpsDigit0 + 10;
}

// "[MIN", "]", "7"; "?" for padding and unknown symbols.
std::string_view listops_symbol_text(uint8_t symbol);

// Bounds of the number of arguments of an operator, both included.
struct ArityLimits {
  int64_t least = 1;
  int64_t most = INT64_MAX;
};

// The value of an expression, or why it is invalid.
struct ListOpsResult {
  int value = -1;                 // 0..9
  const char* problem = nullptr;  // "unbalanced bracket"; null when all is well
  int64_t position = 0;           // of the problem: index of a symbol, or offset of a character
  bool ok() const { return problem == nullptr; }
};

// MIN, MAX; MED, the median, for an even count the mean of the two middle values rounded down; SM,
// the sum modulo 10; FIRST, LAST. With `node_values`, entry i becomes the value of the operator at
// symbol i (-1 for other symbols and for operators without a value).
ListOpsResult evaluate_listops(std::span<const uint8_t> symbols, const ArityLimits& limits = {},
                               std::vector<int8_t>* node_values = nullptr);

// Operators around the innermost digit: 1 for [MAX 1 2 ], 0 for a digit. `symbols` must be well
// formed.
int64_t listops_depth(std::span<const uint8_t> symbols);

// Reads text into symbols: tokens at white space, both `]` and `X` close. With parentheses the text
// must have exactly the curried form below (any white space); without any it is taken as it is.
// Says nothing about brackets and arity: the evaluator does.
ListOpsResult parse_listops(std::string_view text, std::vector<uint8_t>& symbols);

// Appends the curried form of the official files, ( ( ( [MAX 1 ) 2 ) ] ): each ( ) applies what has
// been built so far to one more argument, at last to the bracket. `symbols` must be well formed.
void append_curried_listops(std::span<const uint8_t> symbols, std::string& out);

// The tree for people: one operator a line with its value, arguments indented below, neighboring
// digits on one line. `symbols` must be well formed.
std::string render_listops(std::span<const uint8_t> symbols);

}  // namespace lra::tasks
