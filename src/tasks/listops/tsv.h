// The official files of Long ListOps: listops-1000/basic_{train,val,test}.tsv.
//
// First line `Source` TAB `Target`, then one example a line: the expression in its curried form,
// TAB, one digit. Written with CR LF, nothing quoted, as by Python's csv module. Read with LF or CR
// LF, quoted or not. Every line is checked: tokens, brackets, parentheses, arity, length and
// target.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/text_lines.h"
#include "tasks/listops/expression.h"

namespace lra::tasks {

// The arguments of an import, a folder with the three files or the files, as the paths of train,
// val and test. Throws lra::Error for anything else.
std::array<std::string, 3> listops_source_files(const std::vector<std::string>& sources);

// The paths of train, val and test under a root: in the root itself or in listops-1000, alone or in
// lra_release; none when there are none. Throws lra::Error for a folder that has some of them:
// generated data must not take their place unnoticed.
std::vector<std::string> find_listops_files(const std::string& root);

struct ListOpsTsvLimits {
  ArityLimits arity{.least = 2, .most = 10};
  int64_t max_tokens = 2000;             // per expression
  size_t block_bytes = size_t{4} << 20;  // of text, read and parsed at a time
};

using ListOpsLineSink = std::function<void(std::span<const uint8_t> symbols, int label)>;

// Calls sink(symbols, label) for every example in order. The file is read from front to back, each
// byte once, and memory does not grow with it. Throws lra::Error that names `name`:line;
// a line over 1 MiB may be named before a mistake in a line shortly before it.
void read_listops_tsv(const ReadAt& read_at, const std::string& name,
                      const ListOpsTsvLimits& limits, const ListOpsLineSink& sink);

inline constexpr const char* kListOpsTsvHeader = "Source\tTarget\r\n";
// Appends one line, CR LF included.
void append_listops_line(std::span<const uint8_t> symbols, int label, std::string& out);

}  // namespace lra::tasks
