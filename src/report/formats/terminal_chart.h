// Learning curves in a terminal.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"

namespace lra::report {

struct TerminalLook {
  bool color = false;    // escape sequences
  bool braille = false;  // points of which a character has eight, which needs UTF-8; else letters
};

struct TerminalCurve {
  std::string name;
  std::vector<Evaluation> points;  // at least one
};

// Validation accuracy in percent against training steps, 80 columns wide. The name and the last
// accuracy of each curve stand at its end, the best on top. A curve is drawn over those that are
// worse.
std::string terminal_chart(std::vector<TerminalCurve> curves, const TerminalLook& look);

}  // namespace lra::report
