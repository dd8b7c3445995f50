// The paper's claims, each compared with figures: our own where runs and
// measurements allow it, and the paper's own tables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/tables/evidence.h"

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
  Judgement small = {};   // by shortened runs and small presets, if full runs decide nothing
};

// Judges our figures by runs with the preset "paper", else by those with "release".
std::vector<JudgedClaim> judge_claims(const ReportInput& input);

// "confirmed", or if only small runs show something: "full scale: not tested; small scale:
// confirmed".
std::string scaled_verdict_text(const JudgedClaim& judged);
// The comparison that decides, at full scale or else at small scale; empty for none.
std::string scaled_finding(const JudgedClaim& judged);

}  // namespace lra::report
