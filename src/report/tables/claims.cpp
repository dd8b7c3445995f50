#include "report/tables/claims.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text_format.h"

namespace lra::report {
namespace {

std::string figure_of(const Measured& m, const std::string& unit) {
  if (std::isinf(m.value)) return "(never reached)";
  const auto number = [&](double value) {
    if (unit == "steps") return thousands(std::llround(value));
    return fixed(value, 2);
  };
  std::string text = number(m.value);
  if (m.noise > 0) text += " ± " + number(m.noise);
  return unit.empty() ? text : text + " " + unit;
}

// Difference of the left and the right figure, in units of the noise.
double margin(const Comparison& c) {
  const double difference = c.left->value - c.right->value;
  if (std::isnan(difference)) return 0;  // neither was ever reached
  const double noise = std::hypot(c.left->noise, c.right->noise);
  if (difference == 0) return 0;
  return noise > 0 ? difference / noise : std::copysign(HUGE_VAL, difference);
}

// Orders comparisons by how close they are to being wrong; the closest is shown.
std::pair<double, double> leeway(const Comparison& c) {
  return {margin(c), c.left->value - c.right->value};
}

std::string sentence(const Comparison& c) {
  const double by = margin(c);
  const char* relation = by > 1 ? " above " : by < -1 ? " below " : " as good as ";
  return c.left_name + " " + figure_of(*c.left, c.unit) + relation + c.right_name + " " +
         figure_of(*c.right, c.unit);
}

constexpr int kUntested = 2;

// Decided ones first, then those that small runs say something about.
int place_of(const JudgedClaim& judged) {
  if (judged.ours.verdict != Verdict::kNotTested) return 0;
  return scaled_finding(judged).empty() ? kUntested : 1;
}

// "Of 24 claims 2 are confirmed, 7 contradicted, ...".
std::string counts_text(const std::vector<JudgedClaim>& claims) {
  std::vector<std::string> counts;
  for (const Verdict verdict :
       {Verdict::kConfirmed, Verdict::kContradicted, Verdict::kUndecided, Verdict::kNotTested}) {
    const auto count = std::ranges::count(
        claims, verdict, [](const JudgedClaim& judged) { return judged.ours.verdict; });
    counts.push_back(std::to_string(count) + " " + std::string(verdict_text(verdict)));
  }
  return "Of " + std::to_string(claims.size()) + " claims, at full scale: " + joined(counts) + ".";
}

}  // namespace

std::string_view verdict_text(Verdict verdict) {
  constexpr std::string_view kNames[] = {"confirmed", "contradicted", "undecided", "not tested"};
  return kNames[static_cast<size_t>(verdict)];
}

Judgement judge(const std::vector<Comparison>& comparisons) {
  std::vector<Comparison> made = comparisons;
  std::erase_if(made, [](const Comparison& c) { return !c.left || !c.right; });
  if (made.empty()) return {};
  const Comparison& closest = *std::ranges::min_element(made, {}, leeway);
  if (margin(closest) < -1) return {Verdict::kContradicted, sentence(closest)};
  if (made.size() < comparisons.size()) {
    return {Verdict::kNotTested, std::to_string(made.size()) + " of " +
                                     std::to_string(comparisons.size()) +
                                     " comparisons can be made; the closest: " + sentence(closest)};
  }
  return {margin(closest) > 1 ? Verdict::kConfirmed : Verdict::kUndecided, sentence(closest)};
}

std::vector<JudgedClaim> judge_claims(const ReportInput& input) {
  const auto paper = paper_evidence(), weak = record_evidence(input, {});
  const std::unique_ptr<const Evidence> full[] = {record_evidence(input, "paper"),
                                                  record_evidence(input, "release")};
  std::vector<JudgedClaim> judged;
  for (const Claim& claim : paper_claims()) {
    JudgedClaim result{.claim = &claim, .ours = {}, .paper = judge(claim.comparisons(*paper))};
    for (const auto& evidence : full) {
      const Judgement found = judge(claim.comparisons(*evidence));
      if (result.ours.verdict == Verdict::kNotTested && !found.finding.empty()) result.ours = found;
    }
    if (result.ours.finding.empty()) result.small = judge(claim.comparisons(*weak));
    judged.push_back(std::move(result));
  }
  return judged;
}

std::string scaled_verdict_text(const JudgedClaim& judged) {
  const std::string full(verdict_text(judged.ours.verdict));
  if (judged.small.finding.empty()) return full;
  return "full scale: " + full +
         "; small scale: " + std::string(verdict_text(judged.small.verdict));
}

std::string scaled_finding(const JudgedClaim& judged) {
  if (judged.small.finding.empty()) return judged.ours.finding;
  return "small scale: " + judged.small.finding;
}

Table claims_table(const ReportInput& input) {
  std::vector<JudgedClaim> claims = judge_claims(input);
  const auto num_untested = static_cast<size_t>(std::ranges::count(claims, kUntested, place_of));
  if (num_untested == claims.size()) return {};
  std::ranges::stable_sort(claims, {}, place_of);
  std::vector<std::string> measured;
  for (const auto& [mode, what] :
       {std::pair{"train", "training speed and memory"}, {"infer", "inference speed"}}) {
    const SpeedGrid* grid = paper_grid(input.grids, mode);
    if (grid) measured.push_back(std::string(what) + " on " + grid->name());
  }
  Table table{
      .title = "The paper's claims",
      .caption =
          counts_text(claims) +
          " Full scale: runs over the whole budget with the paper or release preset, and "
          "comparable measurements. Small scale: shortened runs and small presets, which are a "
          "hint, not a test. Confirmed: every comparison holds by more than the noise (95 % "
          "intervals, spread of timed windows); contradicted: one fails by more; undecided: one is "
          "within it. The last two columns ask the same of the paper's own tables." +
          (measured.empty() ? "" : " Measured: " + joined(measured, "; ") + "."),
      .num_left = 6,
      .num_keys = 2,
      .is_list = true,
      .num_folded = num_untested,
      .folded = "claims that nothing here can test"};
  for (const JudgedClaim& judged : claims) {
    const auto emphasis = place_of(judged) == 0 ? Emphasis::kBest : Emphasis::kQuiet;
    const std::string by_paper = judged.paper.finding.empty()
                                     ? "no figures"
                                     : std::string(verdict_text(judged.paper.verdict));
    table.add({{"Place", {std::string(judged.claim->place)}},
               {"Claim", {std::string(judged.claim->statement)}},
               {"Verdict", {scaled_verdict_text(judged), emphasis}},
               {"By our figures", {or_dash(scaled_finding(judged))}},
               {"Paper's tables", {by_paper, Emphasis::kQuiet}},
               {"By its figures", {or_dash(judged.paper.finding), Emphasis::kQuiet}}});
  }
  return table;
}

}  // namespace lra::report
