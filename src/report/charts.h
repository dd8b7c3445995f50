// Charts that the page's script draws: what they show stands beside them as JSON, and as a table
// for readers without the script.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/formats.h"
#include "report/trade_off.h"

namespace lra::report {

// "<div class=chart>" with `data` in it, fit to stand in a page. `kind`: "specification", of
// Vega-Lite, or "curves", of tools/web/charts.js.
std::string chart_html(const std::string& kind, const Json& data);

// A <figure>: heading, the chart, a caption, and `table` to unfold.
std::string chart_figure(const std::string& title, const std::string& caption,
                         const Json& specification, const std::string& table);

// Vega-Lite specifications. Texts in them are cleaned.
Json trade_off_chart(const TradeOff& trade_off);
// Bars of Figure 2, one group for each analysis. Null when no span was analysed.
Json span_chart(const std::vector<Analysis>& analyses);

}  // namespace lra::report
