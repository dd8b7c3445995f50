// The paper's claims, each compared with figures: our own where runs and
// measurements allow it, and the paper's own tables.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/tables/tables.h"

namespace lra::report {

// A number alone is exact.
struct Measured {
  double value;
  double noise;  // two values differ when they are further apart than both noises, squared and
                 // added, make up
  Measured(double value, double noise = 0) : value(value), noise(noise) {}
};
using Finding = std::optional<Measured>;  // nothing: not measured

// Figures of analyses.
enum class Analysed {
  kGap,              // training accuracy less test accuracy, percent
  kStepsTo35,        // infinite: never
  kSpan,             // as a part of the length
  kGrayCorrelation,  // of similarity and distance of two grays
  kVerticalLead,     // similarity of positions one pixel apart in a column less that in a row
};

// Models by the paper's names, see paper_models().
struct Evidence {
  virtual ~Evidence() = default;
  virtual Finding average(std::string_view model) const = 0;  // of the five tasks, percent
  virtual Finding accuracy(std::string_view model, PaperTask task) const = 0;  // percent
  // Steps per second over the Transformer's, byte-level text; mode "train" or "infer".
  virtual Finding speed(std::string_view model, std::string_view mode, int64_t length) const = 0;
  virtual Finding memory(std::string_view model, int64_t length) const = 0;  // training, GB
  virtual Finding analysed(Analysed figure, std::string_view model, PaperTask task) const = 0;
};

// The tables of the paper, version 0.
std::unique_ptr<const Evidence> paper_evidence();

// Evidence from runs of the whole budget with the preset, and from measurements that compare; or
// without a preset from any run, even shortened ones, the highest figure of each model: it decides
// nothing. `input` must outlive it.
std::unique_ptr<const Evidence> record_evidence(const ReportInput& input,
                                                std::optional<std::string> preset);

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
