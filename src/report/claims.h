// What the paper says in words, each sentence held against figures: our own where runs and
// measurements allow it, and the paper's own tables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/evidence.h"

namespace lra::report {

enum class Verdict { kConfirmed, kContradicted, kUndecided, kNotTested };
// "confirmed", "contradicted", "undecided" (within the noise), "not tested".
std::string_view verdict_text(Verdict verdict);

// "left is above right" of two figures.
struct Comparison {
  Finding left, right;
  std::string left_name, right_name, unit;
};

struct Judgement {
  Verdict verdict = Verdict::kNotTested;
  std::string finding;  // the comparison that decides, with its figures
};

// Contradicted when one comparison is; not tested when none is and one cannot be made; undecided
// when one is within the noise; else confirmed.
Judgement judge(const std::vector<Comparison>& comparisons);

struct Claim {
  std::string_view place, statement;  // of the paper; in parentheses how it is judged
  std::vector<Comparison> (*comparisons)(const Evidence& evidence);
};

std::span<const Claim> paper_claims();

struct JudgedClaim {
  const Claim* claim;
  Judgement ours, paper;  // paper: by the paper's own tables
};

// Ours: by runs with the preset "paper", else by those with "release". Where neither decides, the
// finding says what shortened runs and other presets show; the verdict stays "not tested".
std::vector<JudgedClaim> judge_claims(const ReportInput& input);

}  // namespace lra::report
