// The paper's Tables 2 to 5 with our figures beside the paper's, and what its Figures 2 to 5 are
// drawn from, as plain tables.
#pragma once

#include <vector>

#include "report/formats.h"
#include "report/tables.h"

namespace lra::report {

// Which of the paper's tables it is.
std::string efficiency_title(const SpeedGrid& grid);

// Table 2 or 4, one for each set of measurements that compare.
Table efficiency_table(const SpeedGrid& grid);
Table generalization_table(const std::vector<Analysis>& analyses);  // Table 3
Table convergence_table(const std::vector<Analysis>& analyses);     // Table 5
Table span_table(const std::vector<Analysis>& analyses);            // Figure 2
Table similarity_table(const std::vector<Analysis>& analyses);      // Figure 4
Table rollout_table(const std::vector<Analysis>& analyses);         // Figure 5
Table controls_table(const std::vector<Analysis>& analyses);        // and transfer
Table claims_table(const ReportInput& input);

// report_tables() of the leaderboard and all of these; tables without rows are left out.
std::vector<Table> all_tables(const ReportInput& input);

// "Transformer, small preset, last weights, step 3,000": whose analysis it is.
std::string analysis_label(const AnalysisRecord& record);

// In the paper's order of models and tasks, else as they came.
std::vector<const AnalysisRecord*> analyses_of(const std::vector<Analysis>& analyses,
                                               std::string_view kind);

}  // namespace lra::report
