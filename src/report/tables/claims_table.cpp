// The paper's claims as a table.
#include <algorithm>
#include <utility>

#include "report/tables/claims.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

// Decided ones first, then those that small runs say something about.
int place_of(const JudgedClaim& judged) {
  if (judged.ours.verdict != Verdict::kNotTested) return 0;
  return scaled_finding(judged).empty() ? 2 : 1;
}

// "Of 24 claims 2 are confirmed, 7 contradicted, ...".
std::string counts_text(const std::vector<JudgedClaim>& claims) {
  std::string text = "Of " + std::to_string(claims.size()) + " claims, at full scale:";
  const char* between = " ";
  for (const Verdict verdict :
       {Verdict::kConfirmed, Verdict::kContradicted, Verdict::kUndecided, Verdict::kNotTested}) {
    const auto count = std::count_if(claims.begin(), claims.end(), [&](const JudgedClaim& judged) {
      return judged.ours.verdict == verdict;
    });
    text += between + std::to_string(count) + " " + std::string(verdict_text(verdict));
    between = ", ";
  }
  return text + ".";
}

}  // namespace

Table claims_table(const ReportInput& input) {
  std::vector<JudgedClaim> claims = judge_claims(input);
  if (std::ranges::all_of(claims,
                          [](const auto& judged) { return scaled_finding(judged).empty(); })) {
    return {};
  }
  std::stable_sort(claims.begin(), claims.end(),
                   [](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
  std::string measured;
  for (const auto& [mode, what] :
       {std::pair{"train", "training speed and memory"}, {"infer", "inference speed"}}) {
    if (const SpeedGrid* grid = paper_grid(input.grids, mode)) {
      measured +=
          std::string(measured.empty() ? " Measured: " : "; ") + what + " on " + grid->name();
    }
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
          (measured.empty() ? "" : measured + "."),
      .header = {"Place", "Claim", "Verdict", "By our figures", "Paper's tables", "By its figures"},
      .num_left = 6,
      .num_keys = 2,
      .is_list = true};
  for (const JudgedClaim& judged : claims) {
    const std::string ours = scaled_finding(judged);
    table.rows.push_back(
        {{std::string(judged.claim->place)},
         {std::string(judged.claim->statement)},
         {scaled_verdict_text(judged), place_of(judged) == 0 ? Emphasis::kBest : Emphasis::kQuiet},
         {ours.empty() ? "-" : ours},
         {judged.paper.finding.empty() ? "no figures"
                                       : std::string(verdict_text(judged.paper.verdict)),
          Emphasis::kQuiet},
         {judged.paper.finding.empty() ? "-" : judged.paper.finding, Emphasis::kQuiet}});
  }
  table.num_folded = static_cast<size_t>(
      std::ranges::count_if(claims, [](const auto& judged) { return place_of(judged) == 2; }));
  table.folded = "claims that nothing here can test";
  return table;
}

}  // namespace lra::report
